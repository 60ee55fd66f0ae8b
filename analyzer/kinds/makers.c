#include "analyzer/kinds/makers.h"

#include "analyzer/base/sort.h"
#include "analyzer/heap/debug_header.h"
#include "analyzer/kinds/kind_key.h"
#include "analyzer/kinds/tally.h"
#include "analyzer/kinds/types.h"

#include <inttypes.h>
#include <string.h>

/*
 * A group's key: its type in the lower half, who made it in the upper one; or, of those of which
 * neither is known, their size with the upper bit.
 */
static const uint64_t SIZE_BIT = UINT64_C(1) << 63;
enum { MAKER_SHIFT = 32, FILE_SHIFT = 17, MOST_LINES = 1 << FILE_SHIFT };
static const uint64_t LEAST_FILE = UINT64_C(1) << 32; /* of makers by file and line */

struct grouping {
	struct analysis *analysis;
	const struct maker_calls *calls; /* or NULL */
	const struct types *types;
	struct tally_table makers; /* by recorded calls, or by file and line */
	struct tally_table groups; /* by key */
};

/* The number of who made it, from 1 on; 0: that is not known. */
static struct error *find_maker(struct grouping *grouping, allocation_id id, bool is_collectable,
				uint64_t *ret)
{
	const struct allocation_index *index = analysis_index(grouping->analysis);
	struct debug_header header;
	struct tally tally = { .count = 1 };
	uint32_t number;

	*ret = 0;
	if (grouping->calls)
		tally.key =
			grouping->calls->find(grouping->calls->data, allocation_start(index, id));
	/* Addresses have 47 bits, and files fewer lines than fit beside. */
	if (!tally.key && is_collectable &&
	    debug_header_read(analysis_image(grouping->analysis), allocation_start(index, id),
			      &header))
		tally.key = header.file << FILE_SHIFT | header.line % MOST_LINES;
	if (!tally.key)
		return NULL;
	TRY(tally_add_numbered(&grouping->makers, tally, &number));
	*ret = 1 + (uint64_t)number;
	return NULL;
}

static struct error *add_member(struct grouping *grouping, allocation_id id,
				const struct bitmap *collectable)
{
	uint64_t size = allocation_size(analysis_index(grouping->analysis), id);
	uint32_t type = types_of(grouping->types, id);
	struct tally tally = { .count = 1, .bytes = size };
	uint64_t maker = 0;

	TRY(find_maker(grouping, id, collectable && bitmap_get(collectable, id), &maker));
	tally.key = maker << MAKER_SHIFT | type;
	if (type == NO_GROUP && maker == 0)
		tally.key = SIZE_BIT | size;
	return tally_add(&grouping->groups, tally);
}

static struct error *add_members(struct grouping *grouping)
{
	struct progress *progress = analysis_progress(grouping->analysis);
	const struct bitmap *collectable =
		allocation_having(analysis_index(grouping->analysis), TRAIT_MANAGED);
	uint64_t reported = 0;

	progress_begin(progress, "grouping", grouping->types->live.count);
	bitmap_for_each(id, &grouping->types->live) {
		TRY(add_member(grouping, (allocation_id)id, collectable));
		TRY(progress_check_at(progress, id, &reported));
	}
	return NULL;
}

void made_list_deinit(struct maker_list *lines)
{
	for (size_t i = 0; i < lines->count; i++) {
		free(lines->list[i].type);
		free(lines->list[i].detail);
	}
	free(lines->list);
}
/* Name the calls that allocated it, or the source line of the call; to be freed. */
static char *name_maker(const struct grouping *grouping, uint64_t key)
{
	const struct debug_header header = {
		.file = key >> FILE_SHIFT,
		.line = (uint32_t)(key % MOST_LINES),
	};

	return key < LEAST_FILE ? grouping->calls->name(grouping->calls->data, key)
				: debug_header_text(analysis_image(grouping->analysis), &header);
}

/* "in one of: make_order() at shop.cr:12, restore() at shop.cr:80"; to be freed. */
static char *name_makers(const struct grouping *grouping, uint64_t class)
{
	const char *makers[MOST_OBJECT_MAKERS];
	size_t count =
		class ? runtimes_find_makers(analysis_runtimes(grouping->analysis), class, makers)
		      : 0;
	char *text = NULL;
	size_t size;
	FILE *out = count ? open_memstream(&text, &size) : NULL;

	if (!out)
		return NULL;
	for (size_t i = 0; i < count; i++)
		fprintf(out, "%s%s", i ? ", " : "in one of: ", makers[i]);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static struct error *name_line(const struct grouping *grouping, uint64_t key,
			       struct maker_count *line)
{
	uint32_t type = (uint32_t)key;
	uint64_t maker = key >> MAKER_SHIFT;
	char unknown[CLASS_NAME_SIZE];

	class_number_name(0, unknown);
	if (key & SIZE_BIT) {
		line->type = strdup(unknown);
		if (asprintf(&line->detail, "%" PRIu64 " bytes each", key & ~SIZE_BIT) < 0)
			line->detail = NULL;
		return line->type && line->detail ? NULL : &error_no_memory;
	}
	line->type = strdup(type == NO_GROUP ? unknown : grouping->types->list[type].name);
	/* The file's name may be absent: then that is all. */
	if (maker)
		line->detail = name_maker(grouping, grouping->makers.items[maker - 1].key);
	else if (type != NO_GROUP)
		line->detail = name_makers(grouping, grouping->types->list[type].class);
	return line->type ? NULL : &error_no_memory;
}

static int compare_details(const struct maker_count *left, const struct maker_count *right)
{
	return left->detail && right->detail ? strcmp(left->detail, right->detail) : 0;
}

DEFINE_COMPARE(compare_lines, struct maker_count, DESCENDING(bytes), DESCENDING(count),
	       ALPHABETICAL(type), AS_BY(compare_details))
DEFINE_COMPARE(compare_makers, struct maker_count, ALPHABETICAL(type), AS_BY(compare_details))

static bool is_alike(const struct maker_count *left, const struct maker_count *right)
{
	return strcmp(left->type, right->type) == 0 && left->detail && right->detail &&
	       strcmp(left->detail, right->detail) == 0;
}

/* Make one line of those that read alike, and leave out those with fewer bytes. */
static void join_lines(struct maker_list *lines, uint64_t least)
{
	size_t kept = 0;

	SORT(lines->list, lines->count, compare_makers);
	for (size_t i = 0; i < lines->count; i++) {
		struct maker_count line = lines->list[i];

		for (; i + 1 < lines->count && is_alike(&line, &lines->list[i + 1]); i++) {
			line.count += lines->list[i + 1].count;
			line.bytes += lines->list[i + 1].bytes;
			free(lines->list[i + 1].type);
			free(lines->list[i + 1].detail);
		}
		if (line.bytes >= least) {
			lines->list[kept++] = line;
			continue;
		}
		free(line.type);
		free(line.detail);
	}
	lines->count = kept;
	SORT(lines->list, lines->count, compare_lines);
}

static struct error *make_lines(const struct grouping *grouping, struct maker_list *lines)
{
	lines->list = calloc(grouping->groups.count + 1, sizeof(*lines->list));
	TRY_MEMORY(lines->list);
	array_for_each(tally, &grouping->groups) {
		struct maker_count *line = &lines->list[lines->count++];

		line->count = tally->count;
		line->bytes = tally->bytes;
		TRY(name_line(grouping, tally->key, line));
	}
	return NULL;
}

struct error *made_list_find(struct analysis *analysis, const struct maker_calls *calls,
			     uint64_t least, struct maker_list *ret)
{
	_cleanup_(types_deinit) struct types types = { 0 };
	struct grouping grouping = {
		.analysis = analysis,
		.calls = calls,
		.types = &types,
	};
	struct error *error = types_find(analysis, TYPES_ALL, &types);

	arrays_use(analysis_account(analysis), &grouping.makers, &grouping.groups);
	if (error)
		return error;
	error = add_members(&grouping);
	if (!error)
		error = make_lines(&grouping, ret);
	if (!error)
		join_lines(ret, least);
	tables_release(&grouping.makers, &grouping.groups);
	return error;
}
