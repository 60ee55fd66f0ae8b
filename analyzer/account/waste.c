#include "analyzer/account/waste.h"

#include "analyzer/base/array.h"
#include "analyzer/base/parallel.h"
#include "analyzer/base/sort.h"
#include "analyzer/kinds/kind_key.h"
#include "analyzer/kinds/signatures.h"

#include <string.h>

/* Ids in a chunk of work: whole words of bitmaps. */
enum { SHARE = 1 << 14 };

/* The zeros at the end of what is not all zero. */
struct tail {
	allocation_id id;
	uint64_t bytes;
};

/* One for each thread. */
struct looker {
	struct extents extents;
	ARRAY(struct tail) tails;
	struct set_total looked_at, absent, known_spare, known_slack;
};

struct search {
	struct analysis *analysis;
	struct bitmap members; /* the used ones */
	struct looker *lookers;
	unsigned int threads;
	struct duplicate_finder *duplicates;
	struct bitmap partial;			 /* allocations with spare room or slack */
	struct tally_table tallies[WASTE_KINDS]; /* by type */
	struct waste *found;
};

static void search_deinit(struct search *search)
{
	for (unsigned int i = 0; search->lookers && i < search->threads; i++)
		array_release(&search->lookers[i].tails);
	free(search->lookers);
	if (search->duplicates)
		duplicate_finder_destroy(search->duplicates);
	bitmap_deinit(&search->members);
	bitmap_deinit(&search->partial);
	for (size_t i = 0; i < WASTE_KINDS; i++)
		table_release(&search->tallies[i]);
}
DEFINE_DEINIT(search_deinit, struct search)

/* Whole pages of zeros at the end: only these could be given back. */
static uint64_t whole_pages(const struct extent *extent, uint64_t zeros)
{
	uint64_t end = extent->start + extent->size;
	uint64_t start = page_above(end - zeros);

	return end - start <= zeros && end - start >= PAGE ? end - start : 0;
}

static struct error *add_tail(struct looker *looker, allocation_id id, uint64_t bytes)
{
	if (bytes == 0)
		return NULL;
	return array_append(&looker->tails, (struct tail){ id, bytes });
}

static struct error *read_contents(struct search *search, unsigned int thread, allocation_id id,
				   const struct extent *extent)
{
	struct looker *looker = &search->lookers[thread];
	struct digest digest;

	if (extent->size == 0 || extent->is_mixed)
		return NULL;
	if (!contents_digest(&looker->extents.view, extent->start, extent->size, &digest)) {
		set_total_add(&looker->absent, (struct set_total){ 1, extent->given });
		return NULL;
	}
	if (digest.zeros == extent->size) {
		bitmap_set(&search->found->zeros, id);
		return NULL;
	}
	if (extent->size >= LEAST_DUPLICATE)
		duplicate_finder_add(search->duplicates, thread, digest.hash, id);
	return add_tail(looker, id, whole_pages(extent, digest.zeros));
}

static struct error *look_at(struct search *search, unsigned int thread, allocation_id id)
{
	struct looker *looker = &search->lookers[thread];
	struct extent extent = extent_of(&looker->extents, id);

	set_total_add(&looker->looked_at, (struct set_total){ 1, extent.given });
	if (extent.knows_spare)
		set_total_add(&looker->known_spare, (struct set_total){ 1, extent.given });
	if (extent.knows_slack)
		set_total_add(&looker->known_slack, (struct set_total){ 1, extent.given });
	if (extent.spare || extent.slack)
		bitmap_set(&search->partial, id);
	return read_contents(search, thread, id, &extent);
}

static struct error *look_at_share(void *data, size_t turn, unsigned int thread)
{
	struct search *search = data;
	const struct bitmap *members = &search->members;
	size_t end = (turn + 1) * SHARE;

	for (size_t id = bitmap_next(members, turn * SHARE); id < end && id < members->count;
	     id = bitmap_next(members, id + 1))
		TRY(look_at(search, thread, (allocation_id)id));
	return progress_check(analysis_progress(search->analysis), SHARE);
}

static struct error *look_at_all(struct search *search)
{
	struct memory_account *account = analysis_account(search->analysis);
	struct progress *progress = analysis_progress(search->analysis);
	size_t count = search->members.count;

	search->lookers = calloc(search->threads, sizeof(*search->lookers));
	TRY_MEMORY(search->lookers);
	for (unsigned int i = 0; i < search->threads; i++) {
		extents_init(&search->lookers[i].extents, search->analysis);
		search->lookers[i].tails.memory.account = account;
	}
	progress_begin(progress, "reading contents", count);
	return parallel_for((count + SHARE - 1) / SHARE, search->threads, look_at_share, search);
}

static struct error *init_search(struct search *search, const struct bitmap *members, size_t most)
{
	struct memory_account *account = analysis_account(search->analysis);
	struct waste *found = search->found;
	size_t count = members->count;

	TRY(bitmap_init(&search->members, count, account));
	TRY(bitmap_init(&search->partial, count, account));
	TRY(bitmap_init(&found->zeros, count, account));
	TRY(bitmap_init(&found->duplicates.copies, count, account));
	bitmap_copy(&search->members, members);
	bitmap_and(&search->members, allocation_used(analysis_index(search->analysis)));
	for (size_t i = 0; i < WASTE_KINDS; i++)
		search->tallies[i].memory.account = account;
	search->threads = parallel_threads_for(analysis_progress(search->analysis));
	return duplicate_finder_create(search->analysis, bitmap_weight(&search->members),
				       search->threads, most, &search->duplicates);
}

/* Allocations of unknown type count by size, all texts as one. */
enum { TEXT_KEY = 1 };

static kind_key find_key(const struct search *search, allocation_id id, const struct extent *extent)
{
	kind_key key = kind_type(search->analysis, analysis_patterns(search->analysis), id);

	if (key != KIND_UNKNOWN && !pattern_is_text(kind_pattern(key)))
		return key;
	return extent->is_text ? TEXT_KEY : kind_with_size(KIND_UNKNOWN, extent->given);
}

static struct error *count_waste(struct search *search, enum waste_kind kind, kind_key key,
				 uint64_t bytes)
{
	struct tally tally = { .key = key, .count = 1, .bytes = bytes };

	if (bytes == 0)
		return NULL;
	set_total_add(&search->found->sums[kind], (struct set_total){ 1, bytes });
	return tally_add(&search->tallies[kind], tally);
}

static struct error *count_allocation(struct search *search, allocation_id id)
{
	struct extent extent = extent_of(&search->lookers[0].extents, id);
	kind_key key = find_key(search, id, &extent);

	TRY(count_waste(search, WASTE_SPARE, key, extent.spare));
	TRY(count_waste(search, WASTE_SLACK, key, extent.slack));
	if (bitmap_get(&search->found->zeros, id))
		TRY(count_waste(search, WASTE_ZEROS, key, extent.size));
	if (bitmap_get(&search->found->duplicates.copies, id))
		TRY(count_waste(search, WASTE_DUPLICATES, key, extent.size));
	return NULL;
}

/* Duplicates are counted in full already. */
static struct error *count_tails(struct search *search, const struct looker *looker)
{
	const struct tail *tails = looker->tails.items;

	for (size_t i = 0; i < looker->tails.count; i++) {
		allocation_id id = tails[i].id;
		struct extent extent;

		if (bitmap_get(&search->found->duplicates.copies, id))
			continue;
		extent = extent_of(&search->lookers[0].extents, id);
		TRY(count_waste(search, WASTE_ZEROS, find_key(search, id, &extent),
				tails[i].bytes));
	}
	return NULL;
}

static struct error *count_all(struct search *search)
{
	struct progress *progress = analysis_progress(search->analysis);
	struct bitmap *wasteful = &search->partial;
	uint64_t reported = 0;

	bitmap_or(wasteful, &search->found->zeros);
	bitmap_or(wasteful, &search->found->duplicates.copies);
	TRY(signatures_need(search->analysis, wasteful));
	progress_begin(progress, "naming allocations", wasteful->count);
	bitmap_for_each(id, wasteful) {
		TRY(count_allocation(search, (allocation_id)id));
		TRY(progress_check_at(progress, id, &reported));
	}
	for (unsigned int i = 0; i < search->threads; i++)
		TRY(count_tails(search, &search->lookers[i]));
	return NULL;
}

/* Rows without a name are ordered by size. */
static int compare_names(const struct waste_row *left, const struct waste_row *right)
{
	if (left->name && right->name)
		return strcmp(left->name, right->name);
	if (left->name || right->name)
		return left->name ? -1 : 1;
	return (left->size > right->size) - (left->size < right->size);
}

DEFINE_COMPARE(compare_types, struct waste_row, ASCENDING(kind), AS_BY(compare_names))

DEFINE_COMPARE(compare_bytes, struct waste_row, DESCENDING(sum.bytes), AS_BY(compare_types))

static struct error *make_row(const struct search *search, enum waste_kind kind,
			      const struct tally *tally, struct waste_row *ret)
{
	*ret = (struct waste_row){
		.kind = kind,
		.sum = { tally->count, tally->bytes },
	};
	if (tally->key == TEXT_KEY)
		ret->name = strdup("text");
	else if (kind_tag(tally->key) == BY_SIZE)
		ret->size = kind_value(tally->key);
	else
		ret->name = kind_text(search->analysis, tally->key);
	return ret->name || ret->size ? NULL : &error_no_memory;
}

/* Several signatures may belong to one class. */
static void merge_rows(struct waste *waste)
{
	size_t kept = 0;

	SORT(waste->rows, waste->row_count, compare_types);
	for (size_t i = 0; i < waste->row_count; i++) {
		struct waste_row *last = kept ? &waste->rows[kept - 1] : NULL;
		struct waste_row row = waste->rows[i];

		if (!last || compare_types(last, &row) != 0) {
			waste->rows[kept++] = row;
			continue;
		}
		set_total_add(&last->sum, row.sum);
		free(row.name);
	}
	waste->row_count = kept;
}

static struct error *make_rows(struct search *search)
{
	struct waste *found = search->found;
	size_t count = 0;

	for (size_t i = 0; i < WASTE_KINDS; i++)
		count += search->tallies[i].count;
	found->rows = calloc(count + 1, sizeof(*found->rows));
	TRY_MEMORY(found->rows);
	for (enum waste_kind kind = 0; kind < WASTE_KINDS; kind++) {
		const struct tally_table *tallies = &search->tallies[kind];

		for (size_t i = 0; i < tallies->count; i++) {
			TRY(make_row(search, kind, &tallies->items[i],
				     &found->rows[found->row_count]));
			found->row_count++;
		}
	}
	merge_rows(found);
	SORT(found->rows, found->row_count, compare_bytes);
	return NULL;
}

struct error *waste_find(struct analysis *analysis, const struct bitmap *members,
			 enum waste_depth depth, size_t most, struct waste *ret)
{
	_cleanup_(search_deinit) struct search search = {
		.analysis = analysis,
		.found = ret,
	};

	TRY(extents_need(analysis));
	if (depth == WASTE_ROWS)
		TRY(analysis_need(analysis, STAGE_CLASSES));
	TRY(init_search(&search, members, most));
	TRY(look_at_all(&search));
	TRY(duplicate_finder_finish(search.duplicates, &ret->duplicates));
	duplicate_finder_destroy(take(search.duplicates));
	for (unsigned int i = 0; i < search.threads; i++) {
		set_total_add(&ret->looked_at, search.lookers[i].looked_at);
		set_total_add(&ret->absent, search.lookers[i].absent);
		set_total_add(&ret->known_spare, search.lookers[i].known_spare);
		set_total_add(&ret->known_slack, search.lookers[i].known_slack);
	}
	if (depth == WASTE_SETS)
		return NULL;
	TRY(count_all(&search));
	return make_rows(&search);
}

void waste_deinit(struct waste *waste)
{
	for (size_t i = 0; i < waste->row_count; i++)
		free(waste->rows[i].name);
	free(waste->rows);
	duplicates_deinit(&waste->duplicates);
	bitmap_deinit(&waste->zeros);
	*waste = (struct waste){ 0 };
}
