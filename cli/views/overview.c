#include "cli/views/overview.h"

#include "analyzer/account/bill.h"
#include "analyzer/account/hidden.h"
#include "analyzer/account/unexplained.h"
#include "analyzer/base/text.h"
#include "analyzer/diff/diff.h"
#include "analyzer/image/image.h"
#include "analyzer/kinds/allocated_by.h"
#include "analyzer/owners/owner_names.h"
#include "analyzer/owners/owner_roots.h"
#include "cli/views/rows.h"

#include <inttypes.h>
#include <string.h>

static const char *const set_names[OVERVIEW_SETS] = {
	[OVERVIEW_USED] = "used",
	[OVERVIEW_LEAKED] = "leaked",
	[OVERVIEW_ROOTS] = "leakroots",
	[OVERVIEW_FREE] = "free",
};

static void first_screen_deinit(struct first_screen *screen)
{
	ending_deinit(&screen->ending);
	leak_root_kinds_deinit(&screen->leaks);
	for (size_t i = 0; i < OVERVIEW_LEAKS; i++)
		free(screen->allocated_by[i]);
}
DEFINE_DEINIT(first_screen_deinit, struct first_screen)

static struct error *select_set(struct analysis *analysis, const char *name, struct members *ret)
{
	_cleanup_(set_query_deinit) struct set_query query = { .any_order = true };

	TRY(query_take_word(&query, name));
	TRY(query_check(&query));
	return query_select(analysis, &query, ret);
}

static struct error *count_sets(struct first_screen *screen)
{
	for (size_t i = 0; i < OVERVIEW_SETS; i++) {
		_cleanup_(members_deinit) struct members members = { 0 };

		TRY(select_set(screen->analysis, set_names[i], &members));
		screen->sets[i] = allocations_total(analysis_index(screen->analysis), &members.set);
	}
	return NULL;
}

/* Count the leaked bytes that are resident. */
static uint64_t count_resident(const struct analysis *analysis, const struct residency *residency)
{
	const struct allocation_index *index = analysis_index(analysis);
	size_t hint = 0, near = 0;
	uint64_t sum = 0;

	bitmap_for_each(id, analysis_leaked(analysis)) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);

		sum += residency_sum(residency, range.start, range.end, &near).resident;
	}
	return sum;
}

static struct error *explain_memory(struct first_screen *screen)
{
	struct analysis *analysis = screen->analysis;
	struct overview_memory *memory = &screen->memory;
	_cleanup_(bill_destroy) struct bill *bill = NULL;
	struct heap_shares shares;
	uint64_t leaked;

	TRY(bill_create(analysis, BILL_SUMS, &bill));
	shares = bill_heap_shares(bill, analysis_heaps(analysis));
	leaked = count_resident(analysis, bill->residency);
	leaked = leaked < shares.used ? leaked : shares.used;
	*memory = (struct overview_memory){
		.resident = ledger_total(bill->ledger).resident,
		.used = shares.used - leaked,
		.leaked = leaked,
		.garbage = shares.garbage,
		.free = shares.free,
		.is_at_most = bill->residency->source == RESIDENCY_ZEROS,
	};
	memory->other = memory->resident - shares.used - shares.garbage - shares.free;
	return NULL;
}

static struct error *find_holders(struct first_screen *screen)
{
	return holders_find(screen->analysis, screen->holders, &screen->holder_count);
}

static struct error *find_leaks(struct first_screen *screen)
{
	struct analysis *analysis = screen->analysis;
	struct leak_root_kinds *leaks = &screen->leaks;
	_cleanup_(members_deinit) struct members roots = { 0 };

	if (screen->sets[OVERVIEW_ROOTS].count == 0)
		return NULL;
	TRY(select_set(analysis, set_names[OVERVIEW_ROOTS], &roots));
	TRY(leak_root_kinds_count(analysis, &roots.set, leaks));
	array_sort(&leaks->tallies, tally_compare_bytes);
	for (size_t i = 0; i < leaks->tallies.count && i < OVERVIEW_LEAKS; i++) {
		const struct kind_samples *some =
			&leaks->samples.items[leaks->tallies.items[i].number].some;

		TRY(allocated_by_find_soon(analysis, some->ids, kind_samples_count(some),
					   &screen->allocated_by[i]));
		screen->leak_count++;
	}
	return NULL;
}

/* If much leaked, check a sample first to see whether a scan of all memory is worth it. */
static struct error *count_likely_held(struct first_screen *screen)
{
	struct analysis *analysis = screen->analysis;
	bool is_none = false;

	TRY(analysis_sample_disguised(analysis, &is_none));
	return is_none ? NULL
		       : rows_count_likely_held(analysis, analysis_leaked(analysis),
						&screen->sets[OVERVIEW_LEAKED],
						&screen->likely_held);
}

/* If memory is short, show the rest without this part. */
static struct error *do_without(struct analysis *analysis, struct error *error, bool *ret_missing)
{
	_cleanup_(error_destroy) struct error *owned = error;

	if (!error || error_code(error) != ERROR_NO_MEMORY)
		return take(owned);
	*ret_missing = true;
	owned = analysis_explain_shortage(analysis, "'info'", take(owned));
	analysis_doubt(analysis, error_message(owned));
	return NULL;
}

static struct error *find(struct first_screen *screen)
{
	struct analysis *analysis = screen->analysis;

	TRY(analysis_need(analysis, STAGE_HEAP));
	TRY(ending_find(analysis, &screen->ending));
	TRY(unexplained_note(analysis));
	TRY(count_sets(screen));
	TRY(explain_memory(screen));
	TRY(do_without(analysis, find_holders(screen), &screen->lacks_holders));
	TRY(do_without(analysis, find_leaks(screen), &screen->lacks_leaks));
	TRY(count_likely_held(screen));
	return hidden_note(analysis);
}

char *overview_kind_text(const struct first_screen *screen, kind_key kind, allocation_id id)
{
	const struct allocation_index *index = analysis_index(screen->analysis);
	char number[NUMBER_SIZE];

	if (kind == KIND_UNKNOWN || kind_tag(kind) == BY_SIZE)
		return format_text("%s bytes", grouped(allocation_size(index, id), number));
	return kind_text(screen->analysis, kind_without_word(kind));
}

/* The kind's name as other commands write it. */
static char *full_kind_text(const struct first_screen *screen, kind_key kind, allocation_id id)
{
	return owner_kind_text(screen->analysis, kind, id);
}

/* No global of a language owns what many of them share: one of the ways to it says more. */
static char *variable_text(const struct first_screen *screen, const struct report *report,
			   const struct holder *holder)
{
	const struct analysis *analysis = screen->analysis;
	const struct variable *variable = variables_at(analysis_variables(analysis), holder->root);
	allocation_id whole =
		holder->example == NO_ALLOCATION
			? NO_ALLOCATION
			: runtimes_whole(analysis_runtimes(analysis), holder->example);
	char path[ROWS_PATH_SIZE];

	if (variable->lasting == LASTING_GLOBAL && holder->example != NO_ALLOCATION &&
	    (rows_path(report, analysis, holder->example, path) ||
	     (whole != NO_ALLOCATION && rows_path(report, analysis, whole, path))))
		return format_text("%s (%s)", variable->name, path);
	return strdup(variable->name);
}

char *overview_way_text(const struct first_screen *screen, const struct report *report,
			const struct holder *holder)
{
	_cleanup_(free) char *kind = NULL;
	char path[ROWS_PATH_SIZE], count[NUMBER_SIZE];

	if (!rows_path(report, screen->analysis, holder->id, path))
		return NULL;
	if (holder->alike == 1)
		return strdup(path);
	kind = overview_kind_text(screen, holder->kind, holder->id);
	return kind ? format_text("%s %s such as %s", grouped(holder->alike, count), kind, path)
		    : NULL;
}

static char *holder_text(const struct first_screen *screen, const struct report *report,
			 const struct holder *holder,
			 char *(*text_of)(const struct first_screen *, kind_key, allocation_id))
{
	const struct analysis *analysis = screen->analysis;
	const char *variable =
		holder->root == NO_ROOT
			? NULL
			: variables_at(analysis_variables(analysis), holder->root)->name;
	_cleanup_(free) char *kind = NULL, *top = NULL, *way = NULL;
	char count[NUMBER_SIZE], named[ROWS_PATH_SIZE];

	if (holder->id == NO_ALLOCATION)
		return variable ? variable_text(screen, report, holder)
				: owner_shared_text(analysis, holder->shared_by,
						    text_of != full_kind_text);
	kind = text_of(screen, holder->kind, holder->id);
	if (!kind)
		return NULL;
	way = overview_way_text(screen, report, holder);
	if (way)
		return holder->alike > 1 ? take(way) : format_text("%s (%s)", way, kind);
	if (holder->named != NO_ALLOCATION && rows_path(report, analysis, holder->named, named))
		variable = named;
	if (holder->alike > 1)
		return format_text(holder->kind == KIND_UNKNOWN ? "%s of %s in %s" : "%s %s in %s",
				   grouped(holder->alike, count), kind, variable);
	if (variable && holder->is_nearly_all)
		return strdup(variable);
	if (variable)
		return format_text("%s in %s", kind, variable);
	top = text_of == full_kind_text ? owner_top_text(analysis, holder->top)
					: owner_top_short_text(analysis, holder->top);
	return top ? format_text(bitmap_get(analysis_anchored(analysis), holder->top) ? "%s, %s"
										      : "%s in %s",
				 kind, top)
		   : NULL;
}

char *overview_holder_text(const struct first_screen *screen, const struct report *report,
			   const struct holder *holder)
{
	return holder_text(screen, report, holder, overview_kind_text);
}

allocation_id overview_holder_example(const struct holder *holder)
{
	return holder->id == NO_ALLOCATION ? holder->example : holder->id;
}

unsigned int overview_percent(const struct first_screen *screen, const struct holder *holder)
{
	return (unsigned int)(100 * rows_share(holder->bytes, screen->sets[OVERVIEW_USED].bytes));
}

static void write_core(const struct first_screen *screen, struct report *report)
{
	static const struct table table = TABLE(
		"core", NULL, { "core", VALUE_TEXT }, { "size", VALUE_BYTES },
		{ "threads", VALUE_COUNT }, { "process", VALUE_NUMBER }, { "command", VALUE_TEXT },
		{ "taken", VALUE_TEXT }, { "signal", VALUE_NUMBER }, { "reason", VALUE_TEXT },
		{ "message", VALUE_TEXT }, { "in", VALUE_TEXT });
	const struct image *image = analysis_image(screen->analysis);
	struct lineage lineage = lineage_of(image);
	const struct ending *ending = &screen->ending;
	char text[LINEAGE_TIME_SIZE];

	report_single(report, &table, image->path, image->size, image->thread_count,
		      value_nonzero(image->origin.process),
		      VALUE_IF(image->origin.command[0] != '\0',
			       report_content(report, image->origin.command)),
		      lineage_time(&lineage, text),
		      VALUE_IF(ending->signal, (uint64_t)ending->signal), ending->reason,
		      VALUE_IF(ending->message, report_content(report, ending->message)),
		      ending->place);
}

static void write_memory(const struct first_screen *screen, struct report *report)
{
	static const struct table table =
		TABLE("resident", NULL, { "resident", VALUE_BYTES }, { "used", VALUE_BYTES },
		      { "leaked", VALUE_BYTES }, { "garbage", VALUE_BYTES },
		      { "free", VALUE_BYTES }, { "other", VALUE_BYTES });
	const struct overview_memory *memory = &screen->memory;

	report_single(report, &table, memory->resident, memory->used, memory->leaked,
		      memory->garbage, memory->free, memory->other);
}

static void write_sets(const struct first_screen *screen, struct report *report)
{
	static const struct table table =
		TABLE("set", NULL, { "set", VALUE_TEXT }, { "allocations", VALUE_COUNT },
		      { "bytes", VALUE_BYTES });

	report_begin_table(report, &table);
	for (size_t i = 0; i < OVERVIEW_SETS; i++)
		report_row(report, set_names[i], screen->sets[i].count, screen->sets[i].bytes);
	report_end_table(report);
}

static struct error *write_holder(const struct first_screen *screen, struct report *report,
				  const struct holder *holder)
{
	_cleanup_(free) char *text = holder_text(screen, report, holder, full_kind_text);
	_cleanup_(free) char *content = NULL;
	bool has_content = holder->example != NO_ALLOCATION;
	allocation_id example = overview_holder_example(holder);

	if (has_content)
		content = full_kind_text(screen, holder->content, holder->example);
	if (!text || (has_content && !content))
		return &error_no_memory;
	report_row(report, text, holder->bytes, (uint64_t)overview_percent(screen, holder),
		   VALUE_IF(has_content, holder->content_count), content,
		   VALUE_IF(example != NO_ALLOCATION,
			    allocation_start(analysis_index(screen->analysis), example)));
	return NULL;
}

static struct error *write_holders(const struct first_screen *screen, struct report *report)
{
	static const struct table table =
		TABLE("suspect", NULL, { "owner", VALUE_TEXT }, { "retained", VALUE_BYTES },
		      { "percent", VALUE_NUMBER }, { "count", VALUE_COUNT }, { "kind", VALUE_TEXT },
		      { "example", VALUE_ADDRESS });

	report_begin_table(report, &table);
	for (size_t i = 0; i < screen->holder_count; i++)
		TRY(write_holder(screen, report, &screen->holders[i]));
	report_end_table(report);
	return NULL;
}

static struct error *write_leaks(const struct first_screen *screen, struct report *report)
{
	static const struct table table =
		TABLE("leaked kind", NULL, { "bytes", VALUE_BYTES }, { "allocations", VALUE_COUNT },
		      { "leak roots", VALUE_COUNT }, { "kind", VALUE_TEXT },
		      { "allocated by", VALUE_TEXT });

	report_begin_table(report, &table);
	for (size_t i = 0; i < screen->leak_count; i++) {
		const struct tally *tally = &screen->leaks.tallies.items[i];
		_cleanup_(free) char *kind = full_kind_text(
			screen, tally->key, screen->leaks.samples.items[tally->number].first);

		TRY_MEMORY(kind);
		report_row(report, tally->bytes, tally->owned, tally->count, kind,
			   screen->allocated_by[i]);
	}
	report_end_table(report);
	return NULL;
}

static struct error *write_tables(const struct first_screen *screen, struct report *report)
{
	write_core(screen, report);
	write_sets(screen, report);
	write_memory(screen, report);
	TRY(write_holders(screen, report));
	TRY(write_leaks(screen, report));
	rows_write_likely_held(report, screen->sets[OVERVIEW_LEAKED], screen->likely_held,
			       "leaked allocations");
	return NULL;
}

/* Each report by itself, for they differ. */
struct error *overview_write(struct analysis *analysis, struct report *report)
{
	_cleanup_(first_screen_deinit) struct first_screen screen = {
		.analysis = analysis,
		.leaks.tallies.memory.account = analysis_account(analysis),
		.leaks.samples.memory.account = analysis_account(analysis),
	};
	struct error *error = find(&screen);

	for (struct report *each = report, *next; each && !error; each = next) {
		next = each->next;
		each->next = NULL;
		error = strcmp(each->format->name, "text") == 0 ? overview_write_text(&screen, each)
								: write_tables(&screen, each);
		each->next = next;
	}
	return error;
}
