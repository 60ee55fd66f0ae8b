#include "analyzer/diff/diff.h"
#include "analyzer/base/text.h"
#include "analyzer/diff/bounded.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static void find_time(const struct image *image, struct lineage *lineage)
{
	struct stat status;

	lineage->time = image->origin.time;
	if (lineage->time) {
		lineage->source = TIME_CORE;
	} else if (stat(image->path, &status) == 0 && status.st_mtim.tv_sec > 0) {
		lineage->time = (uint64_t)status.st_mtim.tv_sec * UINT64_C(1000000000) +
				(uint64_t)status.st_mtim.tv_nsec;
		lineage->source = TIME_FILE;
	}
}

struct lineage lineage_of(const struct image *image)
{
	struct lineage lineage = {
		.random = image_random_hash(image),
		.process = image->origin.process,
		.program = image_auxiliary(image, AT_PHDR, 0),
		.vdso = image_auxiliary(image, AT_SYSINFO_EHDR, 0),
		.is_replaced = image_is_slim(image) && !image->origin.random,
	};

	find_time(image, &lineage);
	return lineage;
}

const char *lineage_time(const struct lineage *lineage, char buffer[static LINEAGE_TIME_SIZE])
{
	time_t seconds = (time_t)(lineage->time / 1000000000);
	struct tm time;

	if (lineage->source == TIME_UNKNOWN || !gmtime_r(&seconds, &time))
		return NULL;
	return strftime(buffer, LINEAGE_TIME_SIZE, "%Y-%m-%dT%H:%M:%SZ", &time) ? buffer : NULL;
}

enum kinship lineage_compare(const struct lineage *one, const struct lineage *other)
{
	bool is_replaced = one->is_replaced || other->is_replaced;

	if (!one->random || !other->random)
		return KIN_UNKNOWN;
	if (!is_replaced && one->random != other->random)
		return KIN_OTHER_RANDOM;
	if (one->process && other->process && one->process != other->process)
		return KIN_OTHER_ID;
	if (one->program != other->program || one->vdso != other->vdso)
		return KIN_OTHER_PLACE;
	return is_replaced ? KIN_SAME_PLACES : KIN_SAME_PROCESS;
}

const char *kinship_reason(enum kinship kinship)
{
	static const char *const reasons[] = {
		[KIN_SAME_PROCESS] = "AT_RANDOM, program and process id match",
		[KIN_SAME_PLACES] = "program, vdso and process id match",
		[KIN_OTHER_RANDOM] = "AT_RANDOM differs",
		[KIN_OTHER_ID] = "process ids differ",
		[KIN_OTHER_PLACE] = "the program is mapped elsewhere",
		[KIN_UNKNOWN] = "AT_RANDOM is missing",
	};

	return reasons[kinship];
}

static struct error *create(enum aspect aspect, struct memory_account *account, struct diff **ret)
{
	struct diff *diff = calloc(1, sizeof(*diff));

	TRY_MEMORY(diff);
	diff->aspect = aspect;
	diff->account = account;
	group_table_init(&diff->groups, account);
	group_table_init(&diff->holders, account);
	group_table_init(&diff->held, account);
	diff->oldest = (struct oldest){ .list.account = account, .groups.memory.account = account };
	*ret = diff;
	return NULL;
}

void diff_destroy(struct diff *diff)
{
	for (size_t i = 0; i < diff->core_count; i++)
		free(diff->cores[i].path);
	group_table_deinit(&diff->groups);
	group_table_deinit(&diff->holders);
	group_table_deinit(&diff->held);
	oldest_deinit(&diff->oldest);
	free(diff);
}

static struct error *add_core(struct diff *diff, const struct analysis *analysis)
{
	const struct image *image = analysis_image(analysis);
	struct diff_core *core = &diff->cores[diff->core_count];

	if (diff->core_count == MOST_CORES)
		return error_create(ERROR_USAGE, "more than %d cores cannot be compared",
				    MOST_CORES);
	core->path = strdup(image->path);
	TRY_MEMORY(core->path);
	core->lineage = lineage_of(image);
	diff->core_count++;
	if (kinship_is_same(diff->kinship) && diff->core_count > 1)
		diff->kinship = MAX(diff->kinship,
				    lineage_compare(&diff->cores[0].lineage, &core->lineage));
	/* Only cores of one process are matched. */
	if (!kinship_is_same(diff->kinship))
		oldest_deinit(&diff->oldest);
	return NULL;
}

static struct error *add_groups(const struct diff *diff, struct group_table *table,
				const struct census *census, struct group_numbers *ret)
{
	TRY(array_resize(ret, census->keys.count));
	for (size_t i = 0; i < census->keys.count; i++) {
		const struct tally *tally = &census->keys.items[i];
		const struct census_name name = census_name(census, tally->key);

		TRY(group_table_add(table, &name, diff->core_count - 1,
				    (struct set_total){ tally->count, tally->bytes },
				    ret->items + i));
	}
	return NULL;
}

/* Make sets of the newest core from what was matched with it. */
static struct error *make_sets(struct analysis *newest, struct matching *matching)
{
	struct named_sets *sets = analysis_named_sets(newest);
	struct bitmap set = take(matching->added);

	TRY(named_sets_assign(sets, NEW_SET, &set));
	set = take(matching->survived);
	return named_sets_assign(sets, SURVIVED_SET, &set);
}

/* The amounts of holders, by kind. */
struct holdings {
	const struct census *holders;
	struct bitmap bounded;	  /* allocations that do not count; or empty */
	struct tally_table pairs; /* by number of the holder, and of the kind */
};

static void holdings_deinit(struct holdings *holdings)
{
	table_release(&holdings->pairs);
	bitmap_deinit(&holdings->bounded);
}
DEFINE_DEINIT(holdings_deinit, struct holdings)

static struct error *count_held(void *data, allocation_id id, struct memory_range range,
				uint32_t kind)
{
	struct holdings *holdings = data;
	uint64_t holder = holdings->holders->numbers.items[id];

	if (holdings->bounded.count && bitmap_get(&holdings->bounded, id))
		holder = 0;
	return tally_add(&holdings->pairs, (struct tally){ .key = holder << 32 | kind,
							   .count = 1,
							   .bytes = range_size(range) });
}

static struct error *add_held(struct diff *diff, struct analysis *analysis,
			      const struct census *holders)
{
	_cleanup_(census_deinit) struct census kinds = { 0 };
	_cleanup_(holdings_deinit) struct holdings holdings = {
		.holders = holders,
		.pairs.memory.account = diff->account,
	};

	if (diff->with_holders == HOLDERS_UNBOUNDED)
		TRY(bounded_find(analysis, &holdings.bounded));
	TRY(census_need(analysis, ASPECT_KIND));
	TRY(census_take(analysis, ASPECT_KIND, count_held, &holdings, &kinds));
	array_for_each(pair, &holdings.pairs) {
		uint32_t holder = (uint32_t)(pair->key >> 32), kind = (uint32_t)pair->key, number;
		struct census_name name = census_name(&kinds, kinds.keys.items[kind - 1].key);
		struct census_name owner = { .text = "" };
		_cleanup_(free) char *text = NULL;

		if (holder)
			owner = census_name(holders, holders->keys.items[holder - 1].key);
		text = format_text("%s%s%c%s%s", owner.prefix, owner.text, HELD_BETWEEN,
				   name.prefix, name.text);
		TRY_MEMORY(text);
		name = (struct census_name){ .text = text, .size = name.size };
		TRY(group_table_add(&diff->held, &name, diff->core_count - 1,
				    (struct set_total){ pair->count, pair->bytes }, &number));
	}
	return NULL;
}

const struct diff_group *diff_most_held(const struct diff *diff, const struct diff_group *holder,
					const char **ret_kind)
{
	size_t length = strlen(holder->text);

	array_for_each(group, &diff->held.groups) {
		if (group->bytes < holder->bytes / 2 || group->bytes <= 0 ||
		    strncmp(group->text, holder->text, length) != 0 ||
		    group->text[length] != HELD_BETWEEN)
			continue;
		*ret_kind = group->text + length + 1;
		return group;
	}
	return NULL;
}

static struct error *count_holders(struct diff *diff, struct analysis *analysis)
{
	_cleanup_(census_deinit) struct census census = { 0 };
	_cleanup_(array_release) struct group_numbers groups = {
		.memory.account = diff->account,
	};

	TRY(census_need(analysis, ASPECT_OWNER));
	TRY(census_take(analysis, ASPECT_OWNER, NULL, NULL, &census));
	TRY(add_held(diff, analysis, &census));
	return add_groups(diff, &diff->holders, &census, &groups);
}

static struct error *count_core(struct diff *diff, struct analysis *analysis, bool is_newest)
{
	_cleanup_(census_deinit) struct census census = { 0 };
	_cleanup_(array_release) struct group_numbers groups = {
		.memory.account = diff->account,
	};
	_cleanup_(matching_deinit) struct matching matching = {
		.oldest = &diff->oldest,
		.analysis = analysis,
		.groups = &diff->groups,
		.is_oldest = diff->core_count == 0,
		.is_newest = is_newest,
	};
	struct diff_core *core = &diff->cores[diff->core_count];
	bool matches;

	TRY(add_core(diff, analysis));
	TRY(census_need(analysis, diff->aspect));
	matches = kinship_is_same(diff->kinship);
	if (matches)
		TRY(matching_begin(&matching));
	TRY(census_take(analysis, diff->aspect, matches ? matching_visit : NULL, &matching,
			&census));
	TRY(add_groups(diff, &diff->groups, &census, &groups));
	if (matches)
		TRY(matching_end(&matching, &groups));
	if (matches && is_newest)
		TRY(make_sets(analysis, &matching));
	core->total = allocations_total(analysis_index(analysis),
					allocation_used(analysis_index(analysis)));
	return diff->with_holders ? count_holders(diff, analysis) : NULL;
}

/* Add the first incomplete finding of an older core to those of the newest. */
static void doubt(struct analysis *newest, const struct analysis *older)
{
	const struct findings *findings = analysis_findings(older);
	const char *path = analysis_image(older)->path;
	size_t count = findings->weighed[FINDING_INCOMPLETE];
	char *text;

	for (size_t i = 0; i < findings->count; i++) {
		if (findings->list[i].weight != FINDING_INCOMPLETE)
			continue;
		text = format_text("%s: %s%s", path, findings->list[i].message,
				   count > 1 ? " (and more like it)" : "");
		analysis_doubt(newest, text ? text : path);
		free(text);
		return;
	}
	if (count)
		analysis_doubt(newest, path);
}

static struct error *add_older(struct diff *diff, struct analysis *newest, const char *path,
			       struct error *(*visit)(void *data, struct analysis *older),
			       void *data)
{
	_cleanup_(analysis_destroy) struct analysis *older = NULL;
	struct error *error;

	if (access(path, R_OK) < 0)
		return error_create(ERROR_USAGE, "%s: %s", path, strerror(errno));
	error = analysis_open_beside(newest, path, &older);
	if (!error)
		error = count_core(diff, older, false);
	if (!error && visit)
		error = visit(data, older);
	if (error)
		return analysis_explain_shortage(older ? older : newest, path, error);
	doubt(newest, older);
	return NULL;
}

/* In the wrong order, shrinkage looks like growth. */
static void check_order(struct analysis *newest, const struct diff *diff)
{
	for (size_t i = 0; i + 1 < diff->core_count; i++) {
		const struct lineage *old = &diff->cores[i].lineage;
		const struct lineage *now = &diff->cores[i + 1].lineage;

		if (old->source == TIME_UNKNOWN || old->source != now->source ||
		    old->time <= now->time)
			continue;
		analysis_note(newest, "the cores are not in order of time; name the oldest first");
		return;
	}
}

static struct error *finish(struct diff *diff, struct analysis *newest)
{
	named_sets_forget(analysis_named_sets(newest), NEW_SET);
	named_sets_forget(analysis_named_sets(newest), SURVIVED_SET);
	TRY(count_core(diff, newest, true));
	group_table_sort(&diff->groups, diff->core_count);
	group_table_sort(&diff->holders, diff->core_count);
	group_table_sort(&diff->held, diff->core_count);
	oldest_deinit(&diff->oldest);
	check_order(newest, diff);
	return NULL;
}

struct error *compare_cores(struct analysis *newest, const char *const *paths, size_t count,
			    enum aspect aspect, enum diff_holders holders,
			    struct error *(*visit)(void *data, struct analysis *older), void *data,
			    struct diff **ret)
{
	_cleanup_(diff_destroy) struct diff *diff = NULL;

	TRY(create(aspect, analysis_account(newest), &diff));
	diff->with_holders = holders;
	for (size_t i = 0; i < count; i++)
		TRY(add_older(diff, newest, paths[i], visit, data));
	TRY(finish(diff, newest));
	*ret = take(diff);
	return NULL;
}

uint64_t diff_elapsed(const struct diff *diff)
{
	const struct lineage *old = &diff->cores[0].lineage;
	const struct lineage *now = &diff->cores[diff->core_count - 1].lineage;

	if (old->source == TIME_UNKNOWN || now->source == TIME_UNKNOWN || now->time < old->time)
		return 0;
	return now->time - old->time;
}
