#include "analyzer/account/waste.h"

#include "analyzer/base/parallel.h"
#include "analyzer/kinds/signatures.h"
#include "analyzer/kinds/type_key.h"

#include <string.h>

/* So many ids are looked at in one go: whole words of bitmaps. */
enum { SHARE = 1 << 14, PAGE = 4096 };

/* The zeros at the end of what is not all zero. */
struct tail {
	allocation_id id;
	uint64_t bytes;
};

/* One for each thread. */
struct looker {
	struct extents extents;
	struct memory tails;
	size_t tail_count;
	struct waste_sum absent, known_spare, known_slack;
};

struct search {
	struct analysis *analysis;
	struct bitmap members; /* the used ones */
	struct looker *lookers;
	unsigned int threads;
	struct memory numbers; /* of contents; see duplicates.h */
	size_t number_count;
	size_t *firsts;				 /* the place of each share's first number */
	struct bitmap partial;			 /* those with spare room or slack */
	struct tally_table tallies[WASTE_KINDS]; /* by type */
	struct waste *found;
};

/* No allocation has it. */
static const uint64_t NO_NUMBER = UINT64_MAX;

static void search_deinit(struct search *search)
{
	for (unsigned int i = 0; search->lookers && i < search->threads; i++)
		memory_release(&search->lookers[i].tails);
	free(search->lookers);
	free(search->firsts);
	memory_release(&search->numbers);
	bitmap_deinit(&search->members);
	bitmap_deinit(&search->partial);
	for (size_t i = 0; i < WASTE_KINDS; i++)
		tally_table_deinit(&search->tallies[i]);
}
DEFINE_DEINIT(search_deinit, struct search)

static void add_sum(struct waste_sum *sum, uint64_t bytes)
{
	sum->count++;
	sum->bytes += bytes;
}

/* Whole pages at the end, as only these could be done without. */
static uint64_t whole_pages(const struct extent *extent, uint64_t zeros)
{
	uint64_t end = extent->start + extent->size;
	uint64_t start = (end - zeros + PAGE - 1) / PAGE * PAGE;

	return end - start <= zeros && end - start >= PAGE ? end - start : 0;
}

static struct error *add_tail(struct looker *looker, allocation_id id, uint64_t bytes)
{
	struct error *error;

	if (bytes == 0)
		return NULL;
	error = memory_reserve(&looker->tails, (looker->tail_count + 1) * sizeof(struct tail));
	if (!error)
		((struct tail *)looker->tails.bytes)[looker->tail_count++] =
			(struct tail){ id, bytes };
	return error;
}

/* Look at the contents; their number goes to ret if they may have a duplicate.
 */
static struct error *read_contents(struct search *search, struct looker *looker, allocation_id id,
				   const struct extent *extent, uint64_t *ret)
{
	struct digest digest;

	if (extent->size == 0 || extent->is_mixed)
		return NULL;
	if (!contents_digest(&looker->extents.view, extent->start, extent->size, &digest)) {
		add_sum(&looker->absent, extent->given);
		return NULL;
	}
	if (digest.zeros == extent->size) {
		bitmap_set(&search->found->zeros, id);
		return NULL;
	}
	if (extent->size >= LEAST_DUPLICATE)
		*ret = content_number(digest.hash, id);
	return add_tail(looker, id, whole_pages(extent, digest.zeros));
}

static struct error *look_at(struct search *search, struct looker *looker, allocation_id id,
			     uint64_t *ret_number)
{
	struct extent extent = extent_of(&looker->extents, id);

	if (extent.knows_spare)
		add_sum(&looker->known_spare, extent.given);
	if (extent.knows_slack)
		add_sum(&looker->known_slack, extent.given);
	if (extent.spare || extent.slack)
		bitmap_set(&search->partial, id);
	return read_contents(search, looker, id, &extent, ret_number);
}

static struct error *look_at_share(void *data, size_t chunk, unsigned int thread)
{
	struct search *search = data;
	struct looker *looker = &search->lookers[thread];
	const struct bitmap *members = &search->members;
	uint64_t *number = (uint64_t *)search->numbers.bytes + search->firsts[chunk];
	size_t end = (chunk + 1) * SHARE;
	uint64_t bytes = 0;

	for (size_t id = bitmap_next(members, chunk * SHARE); id < end && id < members->count;
	     id = bitmap_next(members, id + 1)) {
		struct error *error;

		*number = NO_NUMBER;
		error = look_at(search, looker, (allocation_id)id, number++);
		if (error)
			return error;
		bytes += allocation_size(analysis_index(search->analysis), (allocation_id)id);
	}
	if (!progress_step(analysis_progress(search->analysis), bytes))
		return error_create(ERROR_INTERRUPTED, "interrupted");
	return NULL;
}

static size_t count_in(const struct bitmap *bitmap, size_t share)
{
	size_t first = share * SHARE / 64, end = first + SHARE / 64;
	size_t count = 0;

	if (end > bitmap_word_count(bitmap))
		end = bitmap_word_count(bitmap);
	for (size_t i = first; i < end; i++)
		count += bits_count(bitmap->words[i]);
	return count;
}

static struct error *init_lookers(struct search *search)
{
	struct memory_account *account = analysis_account(search->analysis);

	search->threads = parallel_threads_for(analysis_progress(search->analysis));
	search->lookers = calloc(search->threads, sizeof(*search->lookers));
	if (!search->lookers)
		return &error_no_memory;
	for (unsigned int i = 0; i < search->threads; i++) {
		extents_init(&search->lookers[i].extents, search->analysis);
		search->lookers[i].tails.account = account;
	}
	return NULL;
}

/* Close the gaps that contents leave which have no number. */
static void close_gaps(struct search *search, size_t count)
{
	uint64_t *numbers = search->numbers.bytes;

	for (size_t i = 0; i < count; i++)
		if (numbers[i] != NO_NUMBER)
			numbers[search->number_count++] = numbers[i];
}

static struct error *look_at_all(struct search *search)
{
	struct analysis *analysis = search->analysis;
	size_t shares = (search->members.count + SHARE - 1) / SHARE;
	size_t count = 0;
	struct error *error = init_lookers(search);

	if (error)
		return error;
	search->firsts = calloc(shares + 1, sizeof(*search->firsts));
	if (!search->firsts)
		return &error_no_memory;
	for (size_t i = 0; i < shares; i++) {
		search->firsts[i] = count;
		count += count_in(&search->members, i);
	}
	search->numbers.account = analysis_account(analysis);
	error = memory_resize(&search->numbers, (count + 1) * sizeof(uint64_t));
	if (error)
		return error;
	progress_begin(analysis_progress(analysis), "reading contents",
		       search->found->looked_at.bytes);
	error = parallel_for(shares, search->threads, look_at_share, search);
	if (!error)
		close_gaps(search, count);
	return error;
}

static struct error *init_search(struct search *search, const struct bitmap *members)
{
	struct analysis *analysis = search->analysis;
	struct memory_account *account = analysis_account(analysis);
	const struct allocation_index *index = analysis_index(analysis);
	size_t count = allocation_count(index), hint = 0;
	struct error *error = bitmap_init(&search->members, count, account);

	if (!error)
		error = bitmap_init(&search->partial, count, account);
	if (!error)
		error = bitmap_init(&search->found->zeros, count, account);
	if (error)
		return error;
	bitmap_copy(&search->members, members);
	bitmap_and(&search->members, allocation_used(index));
	for (size_t i = 0; i < WASTE_KINDS; i++)
		tally_table_init(&search->tallies[i], account);
	bitmap_for_each(id, &search->members) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);

		add_sum(&search->found->looked_at, range.end - range.start);
	}
	return NULL;
}

/* What nothing else is known of goes by size, and texts together. */
enum { TEXT_KEY = 1, SIZE_SHIFT = 1 };

/* No core holds so much, but one may say so. */
static uint64_t size_key(uint64_t size)
{
	static const uint64_t most = (FIRST_TYPE_KEY - 1) >> SIZE_SHIFT;

	return (size < most ? size : most) << SIZE_SHIFT;
}

static uint64_t find_key(const struct search *search, allocation_id id, const struct extent *extent)
{
	uint64_t key = type_key(search->analysis, analysis_patterns(search->analysis), id);

	if (key != NO_TYPE_KEY)
		return key;
	return extent->is_text ? TEXT_KEY : size_key(extent->given);
}

static struct error *count_waste(struct search *search, enum waste_kind kind, uint64_t key,
				 uint64_t bytes)
{
	struct tally tally = { .key = key, .count = 1, .bytes = bytes };

	if (bytes == 0)
		return NULL;
	add_sum(&search->found->sums[kind], bytes);
	return tally_add(&search->tallies[kind], tally);
}

static struct error *count_allocation(struct search *search, allocation_id id)
{
	struct extent extent = extent_of(&search->lookers[0].extents, id);
	uint64_t key = find_key(search, id, &extent);
	struct error *error = count_waste(search, WASTE_SPARE, key, extent.spare);

	if (!error)
		error = count_waste(search, WASTE_SLACK, key, extent.slack);
	if (!error && bitmap_get(&search->found->zeros, id))
		error = count_waste(search, WASTE_ZEROS, key, extent.size);
	if (!error && bitmap_get(&search->found->duplicates.copies, id))
		error = count_waste(search, WASTE_DUPLICATES, key, extent.size);
	return error;
}

/* Of a duplicate, all is counted already. */
static struct error *count_tails(struct search *search, const struct looker *looker)
{
	const struct tail *tails = looker->tails.bytes;
	struct error *error = NULL;

	for (size_t i = 0; !error && i < looker->tail_count; i++) {
		allocation_id id = tails[i].id;
		struct extent extent;

		if (bitmap_get(&search->found->duplicates.copies, id))
			continue;
		extent = extent_of(&search->lookers[0].extents, id);
		error = count_waste(search, WASTE_ZEROS, find_key(search, id, &extent),
				    tails[i].bytes);
	}
	return error;
}

static struct error *count_all(struct search *search)
{
	struct progress *progress = analysis_progress(search->analysis);
	struct bitmap *wasteful = &search->partial;
	struct error *error = NULL;
	uint64_t told = 0;

	bitmap_or(wasteful, &search->found->zeros);
	bitmap_or(wasteful, &search->found->duplicates.copies);
	progress_begin(progress, "telling what things are", wasteful->count);
	bitmap_for_each(id, wasteful) {
		error = count_allocation(search, (allocation_id)id);
		if (error)
			return error;
		if (!progress_pass(progress, id, &told))
			return error_create(ERROR_INTERRUPTED, "interrupted");
	}
	for (unsigned int i = 0; !error && i < search->threads; i++)
		error = count_tails(search, &search->lookers[i]);
	return error;
}

static void add_sums(struct search *search)
{
	struct waste *found = search->found;

	for (unsigned int i = 0; i < search->threads; i++) {
		const struct looker *looker = &search->lookers[i];

		found->absent.count += looker->absent.count;
		found->absent.bytes += looker->absent.bytes;
		found->known_spare.count += looker->known_spare.count;
		found->known_spare.bytes += looker->known_spare.bytes;
		found->known_slack.count += looker->known_slack.count;
		found->known_slack.bytes += looker->known_slack.bytes;
	}
}

/* Those without a name by size. */
static int compare_names(const struct waste_row *left, const struct waste_row *right)
{
	if (left->name && right->name)
		return strcmp(left->name, right->name);
	if (left->name || right->name)
		return left->name ? -1 : 1;
	return (left->size > right->size) - (left->size < right->size);
}

static int compare_types(const void *a, const void *b)
{
	const struct waste_row *left = a, *right = b;

	if (left->kind != right->kind)
		return left->kind < right->kind ? -1 : 1;
	return compare_names(left, right);
}

static int compare_bytes(const void *a, const void *b)
{
	const struct waste_row *left = a, *right = b;

	if (left->sum.bytes != right->sum.bytes)
		return left->sum.bytes > right->sum.bytes ? -1 : 1;
	return compare_types(a, b);
}

static struct error *make_row(const struct search *search, enum waste_kind kind,
			      const struct tally *tally, struct waste_row *ret)
{
	*ret = (struct waste_row){
		.kind = kind,
		.sum = { tally->count, tally->bytes },
	};
	if (tally->key == TEXT_KEY)
		ret->name = strdup("text");
	else if (tally->key < FIRST_TYPE_KEY)
		ret->size = tally->key >> SIZE_SHIFT;
	else
		ret->name = type_key_name(search->analysis, tally->key);
	return ret->name || ret->size ? NULL : &error_no_memory;
}

/* Several signatures may be of one class. */
static void merge_rows(struct waste *waste)
{
	size_t kept = 0;

	qsort(waste->rows, waste->row_count, sizeof(*waste->rows), compare_types);
	for (size_t i = 0; i < waste->row_count; i++) {
		struct waste_row *last = kept ? &waste->rows[kept - 1] : NULL;
		struct waste_row row = waste->rows[i];

		if (!last || compare_types(last, &row) != 0) {
			waste->rows[kept++] = row;
			continue;
		}
		last->sum.count += row.sum.count;
		last->sum.bytes += row.sum.bytes;
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
	if (!found->rows)
		return &error_no_memory;
	for (enum waste_kind kind = 0; kind < WASTE_KINDS; kind++) {
		const struct tally_table *tallies = &search->tallies[kind];

		for (size_t i = 0; i < tallies->capacity; i++) {
			struct error *error;

			if (!tallies->slots[i].count)
				continue;
			error = make_row(search, kind, &tallies->slots[i],
					 &found->rows[found->row_count]);
			if (error)
				return error;
			found->row_count++;
		}
	}
	merge_rows(found);
	qsort(found->rows, found->row_count, sizeof(*found->rows), compare_bytes);
	return NULL;
}

struct error *waste_find(struct analysis *analysis, const struct bitmap *members,
			 enum waste_depth depth, size_t most, struct waste *ret)
{
	_cleanup_(search_deinit) struct search search = {
		.analysis = analysis,
		.found = ret,
	};
	struct error *error = extents_need(analysis);

	if (!error && depth == WASTE_ROWS)
		error = analysis_need(analysis, STAGE_CLASSES);
	if (!error && depth == WASTE_ROWS)
		error = signatures_need(analysis, members);
	if (!error)
		error = init_search(&search, members);
	if (!error)
		error = look_at_all(&search);
	if (!error)
		error = duplicates_find(analysis, search.numbers.bytes, search.number_count, most,
					&ret->duplicates);
	if (error)
		return error;
	memory_release(&search.numbers);
	add_sums(&search);
	if (depth == WASTE_SETS)
		return NULL;
	error = count_all(&search);
	return error ? error : make_rows(&search);
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
