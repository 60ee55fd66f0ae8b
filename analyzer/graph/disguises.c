#include "analyzer/graph/disguises.h"

#include "analyzer/base/array.h"
#include "analyzer/base/parallel.h"
#include "analyzer/base/sort.h"
#include "analyzer/graph/disguise_scan.h"
#include "analyzer/heap/work_chunks.h"

#include <stdlib.h>
#include <string.h>

enum {
	WORD = 8,
	LARGE = 1 << 20, /* from this size on, skipping holes pays */
};

/* The state of one thread. */
struct looker {
	struct disguise_scanner scanner;
	struct view view; /* of what is read in order */
	size_t hint;
	uint64_t words; /* that were looked at */
};

struct finder {
	const struct disguises_input *input;
	struct disguises *result;
	struct bitmap wanted; /* and not found yet */
	struct address_filter filter;
	struct wanted_ends ends;
	struct wanted_uppers uppers;
	ARRAY(allocation_id) pending; /* reached, to be looked at */
	struct work_chunks chunks;
	struct looker *lookers; /* by thread */
	unsigned int threads;
	struct split_work work; /* in bytes */
};

static struct error *push(struct finder *finder, allocation_id id)
{
	TRY(array_append(&finder->pending, id));
	bitmap_clear(&finder->wanted, id);
	bitmap_set(&finder->result->reached, id);
	return NULL;
}

/* The allocation is held by that, unless something before did. */
static struct error *keep(struct finder *finder, struct disguised disguised)
{
	struct disguises *result = finder->result;

	if (!bitmap_get(&finder->wanted, disguised.target))
		return NULL;
	TRY(array_append(&result->list, disguised));
	return push(finder, disguised.target);
}

static uint64_t align(uint64_t address)
{
	return (address + WORD - 1) & ~(uint64_t)(WORD - 1);
}

/* Look at all that the dump has of a range. */
static struct error *look_at_range(struct looker *looker, uint64_t place, uint64_t end)
{
	bool is_large = end - place >= LARGE;

	place = align(place);
	while (place < end) {
		uint64_t size;
		const uint8_t *bytes;

		if (is_large)
			place = image_next_data(looker->view.image, place);
		bytes = place < end ? view_bytes(&looker->view, place, &size) : NULL;
		if (!bytes)
			break;
		size = MIN(size, end - place);
		TRY(disguise_scan(&looker->scanner, bytes, size, place));
		looker->words += size / WORD;
		place += size;
	}
	return NULL;
}

/* Allocations one by one, as the dump does not have them in one piece. */
static struct error *look_at_each(struct finder *finder, struct looker *looker, allocation_id first,
				  allocation_id end)
{
	for (allocation_id id = first; id < end; id++) {
		struct memory_range range =
			allocation_range_near(finder->input->index, id, &looker->hint);

		if (bitmap_get(finder->input->in_use, id))
			TRY(look_at_range(looker, range.start, range.end));
	}
	return NULL;
}

/* Allocations in use, from first on, that lie close together. */
struct run {
	allocation_id first, end; /* ids */
	struct memory_range range;
	uint64_t words;
};

static struct error *look_at_run(struct finder *finder, struct looker *looker,
				 const struct run *run)
{
	uint64_t start = align(run->range.start), size = 0;
	const uint8_t *bytes;

	if (start < run->range.end) {
		bytes = view_bytes(&looker->view, start, &size);
		if (!bytes || size < run->range.end - start) {
			TRY(look_at_each(finder, looker, run->first, run->end));
		} else {
			looker->words += run->words;
			TRY(disguise_scan(&looker->scanner, bytes, run->range.end - start, start));
		}
	}
	return NULL;
}

/* In runs: what lies between is hardly more than the allocator's own. */
static struct error *look_at_allocations(struct finder *finder, struct looker *looker,
					 allocation_id first, allocation_id end)
{
	enum { MOST_GAP = 256 };
	const struct disguises_input *input = finder->input;
	struct run run = { first, first, { 0, 0 }, 0 };

	for (allocation_id id = first; id < end; id++) {
		struct memory_range range;

		if (!bitmap_get(input->in_use, id))
			continue;
		range = allocation_range_near(input->index, id, &looker->hint);
		if (range.start - run.range.end > MOST_GAP) {
			TRY(look_at_run(finder, looker, &run));
			run = (struct run){ id, id, range, 0 };
		}
		run.end = id + 1;
		run.range.end = range.end;
		if (range.end > align(range.start))
			run.words += (range.end - align(range.start)) / WORD;
	}
	return look_at_run(finder, looker, &run);
}

/* A word may reach from the part into the next. */
static struct error *look_at_part_of(struct finder *finder, struct looker *looker,
				     const struct work_chunk *chunk)
{
	struct memory_range range =
		allocation_range_near(finder->input->index, chunk->first, &looker->hint);
	uint64_t left = range.end - chunk->part.end;

	return look_at_range(looker, chunk->part.start,
			     chunk->part.end + (left < WORD ? left : WORD - 1));
}

static struct error *count_chunk(struct finder *finder, size_t chunk, unsigned int thread,
				 uint64_t words)
{
	return split_work_check(&finder->work, chunk, thread, finder->input->progress,
				(finder->lookers[thread].words - words) * WORD);
}

static struct error *look_at_chunk(void *data, size_t number, unsigned int thread)
{
	struct finder *finder = data;
	struct looker *looker = &finder->lookers[thread];
	const struct work_chunk *chunk = work_chunks_take(&finder->chunks, number);
	uint64_t words = looker->words;
	struct error *error;

	if (chunk->part.start < chunk->part.end)
		error = look_at_part_of(finder, looker, chunk);
	else
		error = look_at_allocations(finder, looker, chunk->first, chunk->end);
	work_chunk_release(&finder->chunks, chunk);
	return error ? error : count_chunk(finder, number, thread, words);
}

static struct error *look_at_allocations_in_use(struct finder *finder)
{
	const struct disguises_input *input = finder->input;

	TRY(work_chunks_init(&finder->chunks, input->image, input->index, input->in_use, NULL,
			     input->account));
	for (unsigned int i = 0; i < finder->threads; i++) {
		finder->lookers[i].scanner.root = NULL;
		finder->lookers[i].scanner.root_number = root_range_count(input->roots);
		finder->lookers[i].scanner.only = input->in_use;
	}
	return split_work_run(&finder->work, input->progress, finder->chunks.count, finder->threads,
			      look_at_chunk, finder);
}

/* The part of a root that one chunk covers. */
struct root_part {
	size_t number;
	struct root_range root;
	struct memory_range range;
};

struct root_parts {
	ARRAY(struct root_part) list;
	struct finder *finder;
};

/* Cut the root into parts; a word may reach from one into the next. */
static struct error *cut_root(struct root_parts *parts, struct root_part part)
{
	enum { BEHIND = WORD - 1 };
	const struct image *image = parts->finder->input->image;
	uint64_t place = align(part.root.start), end = part.root.end;
	bool is_large = end - part.root.start > LARGE;

	while (place < end) {
		if (is_large)
			place = image_next_data(image, place);
		if (place >= end)
			break;
		part.range = (struct memory_range){ place, end };
		if (end - place > LARGE + BEHIND)
			part.range.end = place + LARGE + BEHIND;
		TRY(array_append(&parts->list, part));
		if (end - place <= LARGE)
			break;
		place += LARGE;
	}
	return NULL;
}

static struct error *cut_roots(struct root_parts *parts)
{
	const struct roots *roots = parts->finder->input->roots;

	for (size_t i = 0; i < root_range_count(roots); i++) {
		struct root_part part = { i, root_range(roots, i), { 0, 0 } };

		if (!part.root.is_code)
			TRY(cut_root(parts, part));
	}
	return NULL;
}

static struct error *look_at_part(void *data, size_t number, unsigned int thread)
{
	const struct root_parts *parts = data;
	const struct root_part *part = &parts->list.items[number];
	struct finder *finder = parts->finder;
	struct looker *looker = &finder->lookers[thread];
	uint64_t words = looker->words;
	struct error *error;

	looker->scanner.root = &part->root;
	looker->scanner.root_number = part->number;
	error = look_at_range(looker, part->range.start, part->range.end);
	image_release(finder->input->image, part->range.start, part->range.end);
	return error ? error : count_chunk(finder, number, thread, words);
}

static struct error *look_at_roots(struct finder *finder)
{
	_cleanup_(array_release) struct root_parts parts = {
		.finder = finder,
		.list.memory.account = finder->input->account,
	};

	TRY(cut_roots(&parts));
	return split_work_run(&finder->work, finder->input->progress, parts.list.count,
			      finder->threads, look_at_part, &parts);
}

/* Keep what one found, in the order of where it stands. */
static struct error *keep_found(struct finder *finder, struct disguise_scanner *scanner)
{
	disguise_scanner_sort(scanner);
	for (size_t i = 0; i < scanner->list.count; i++)
		TRY(keep(finder, disguise_found(scanner, i)->disguised));
	return NULL;
}

/* Keep what the threads found, in the order of where it stands. */
static struct error *gather(struct finder *finder)
{
	struct disguise_scanner *all = &finder->lookers[0].scanner;

	for (unsigned int i = 0; i < finder->threads; i++)
		finder->result->words += finder->lookers[i].words;
	for (unsigned int i = 1; i < finder->threads; i++)
		TRY(disguise_scanner_join(all, &finder->lookers[i].scanner));
	return keep_found(finder, all);
}

static struct error *look_everywhere(struct finder *finder)
{
	finder->threads = parallel_threads_for(finder->input->progress);
	finder->lookers = calloc(finder->threads, sizeof(*finder->lookers));
	TRY_MEMORY(finder->lookers);
	for (unsigned int i = 0; i < finder->threads; i++) {
		disguise_scanner_init(&finder->lookers[i].scanner, finder->input, &finder->filter,
				      &finder->wanted, &finder->ends, &finder->uppers);
		finder->lookers[i].view.image = finder->input->image;
	}
	TRY(look_at_roots(finder));
	TRY(look_at_allocations_in_use(finder));
	return gather(finder);
}

/* The notes of the whole pass; searches from allocations reached later only read them. */
static struct offset_pointers *offsets_of(const struct finder *finder)
{
	return &finder->lookers[0].scanner.offsets;
}

static struct error *keep_offset(void *data, uint64_t place, allocation_id target)
{
	return keep(data, (struct disguised){ place, target, DISGUISE_OFFSET });
}

/* In roots and what is in use, what fields that are proven hold. */
static struct error *find_offsets(struct finder *finder)
{
	struct offset_pointers *offsets = offsets_of(finder);
	const struct disguises_input *input = finder->input;
	uint64_t span = finder->filter.last - finder->filter.first;

	TRY(offset_pointers_prove(offsets, input));
	if (offsets->proven == 0)
		return NULL;
	TRY(offset_pointers_visit_roots(offsets, input, span, keep_offset, finder));
	bitmap_for_each(id, input->in_use)
		TRY(offset_pointers_visit(offsets, input, (allocation_id)id, false, keep_offset,
					  finder));
	return NULL;
}

/* Look at one that was reached, all that may be left at once. */
static struct error *look_at_reached(struct finder *finder, struct looker *looker, allocation_id id)
{
	struct memory_range range = allocation_range_near(finder->input->index, id, &looker->hint);

	TRY(look_at_range(looker, range.start, range.end));
	TRY(keep_found(finder, &looker->scanner));
	looker->scanner.list.count = 0;
	return offset_pointers_visit(offsets_of(finder), finder->input, id, true, keep_offset,
				     finder);
}

static struct error *follow(struct finder *finder, struct looker *looker)
{
	const allocation_id *pending = finder->pending.items;
	allocation_id id = pending[--finder->pending.count];
	struct edges edges = graph_outgoing(finder->input->graph, id);

	for (size_t i = 0; i < edges.count; i++)
		if (bitmap_get(&finder->wanted, edges.targets[i]))
			TRY(push(finder, edges.targets[i]));
	return look_at_reached(finder, looker, id);
}

/* Search from newly reached allocations, by references and disguised pointers. */
static struct error *look_at_all_reached(struct finder *finder)
{
	struct looker looker = { .view = { finder->input->image } };
	struct error *error = NULL;

	disguise_scanner_init(&looker.scanner, finder->input, &finder->filter, &finder->wanted,
			      &finder->ends, &finder->uppers);
	while (finder->pending.count > 0 && !error)
		error = follow(finder, &looker);
	finder->result->words += looker.words;
	disguise_scanner_deinit(&looker.scanner);
	return error;
}

static void note_end(struct wanted_ends *ends, uint64_t end)
{
	size_t i = end % 16;

	/* Ends are never 0. */
	if (ends->last[i] == 0 || end < ends->first[i])
		ends->first[i] = end;
	if (end > ends->last[i])
		ends->last[i] = end;
}

static void note_upper(struct wanted_uppers *uppers, uint64_t address)
{
	size_t i = 0;

	while (i < uppers->count && uppers->list[i] != address >> BOXED_BITS)
		i++;
	if (i == uppers->count && i < MOST_UPPERS)
		uppers->list[uppers->count++] = address >> BOXED_BITS;
}

/* Add all wanted allocations to the filter; there is at least one. */
static struct error *fill_filter(struct finder *finder)
{
	const struct disguises_input *input = finder->input;
	const struct bitmap *wanted = &finder->wanted;
	size_t hint = 0;

	TRY(address_filter_init(&finder->filter, 2 * bitmap_weight(wanted), input->account));
	bitmap_for_each(id, wanted) {
		struct memory_range range =
			allocation_range_near(input->index, (allocation_id)id, &hint);

		address_filter_add(&finder->filter, range.start);
		address_filter_add(&finder->filter, range.end - 1);
		/* Pointers one past the end, or before the start, look like this. */
		address_filter_pass(&finder->filter, range.end);
		address_filter_pass(&finder->filter, range.start - WORD);
		note_end(&finder->ends, range.end);
		note_upper(&finder->uppers, range.start);
	}
	return NULL;
}

static struct error *find_wanted(struct finder *finder)
{
	const struct disguises_input *input = finder->input;
	size_t count = input->wanted->count;

	TRY(bitmap_init(&finder->wanted, count, input->account));
	TRY(bitmap_init(&finder->result->reached, count, input->account));
	if ((input->disguises == 0 && !input->integers) || bitmap_next(input->wanted, 0) == count)
		return NULL;
	bitmap_copy(&finder->wanted, input->wanted);
	TRY(fill_filter(finder));
	progress_begin(input->progress, "looking for disguised addresses", input->image->size);
	return look_everywhere(finder);
}

static struct error *find(struct finder *finder)
{
	TRY(find_wanted(finder));
	if (finder->lookers)
		TRY(find_offsets(finder));
	return look_at_all_reached(finder);
}

static void finder_deinit(struct finder *finder)
{
	bitmap_deinit(&finder->wanted);
	address_filter_deinit(&finder->filter);
	array_release(&finder->pending);
	for (unsigned int i = 0; finder->lookers && i < finder->threads; i++)
		disguise_scanner_deinit(&finder->lookers[i].scanner);
	free(finder->lookers);
	array_release(&finder->chunks);
}
DEFINE_DEINIT(finder_deinit, struct finder)

struct error *disguises_find(const struct disguises_input *input, struct disguises *ret)
{
	_cleanup_(disguises_deinit) struct disguises result = { .list.memory.account =
									input->account };
	_cleanup_(finder_deinit) struct finder finder = {
		.input = input,
		.result = &result,
		.pending.memory.account = input->account,
	};

	TRY(find(&finder));
	*ret = take_struct(result);
	return NULL;
}

struct error *disguises_exclude(const struct disguises_input *input, bool *ret_excluded)
{
	_cleanup_(disguises_deinit) struct disguises result = { .list.memory.account =
									input->account };
	_cleanup_(finder_deinit) struct finder finder = {
		.input = input,
		.result = &result,
		.pending.memory.account = input->account,
	};

	TRY(find_wanted(&finder));
	*ret_excluded = result.list.count == 0 &&
			(!finder.lookers || (offsets_of(&finder)->fields.count == 0 &&
					     offsets_of(&finder)->roots.count == 0));
	return NULL;
}

uint64_t disguises_odds(const struct disguises *disguises, uint64_t address)
{
	/* Each word is decoded in so many ways, packed ones at each byte. */
	enum { WAYS = 12 };
	uint64_t tries = WAYS * (disguises->words + 1), values = 1;

	/* Numbers have as many bits as the address, or more. */
	for (uint64_t rest = address; rest; rest >>= 1)
		values <<= 1;
	return values / tries;
}

struct error *disguises_drop_chance(const struct disguises_input *input,
				    struct disguises *disguises)
{
	_cleanup_(bitmap_deinit) struct bitmap from = { 0 }, reached = { 0 };
	uint64_t wanted = bitmap_weight(input->wanted), found[DISGUISES] = { 0 };
	struct disguised *list = disguises->list.items;
	size_t left = 0;

	TRY(bitmap_init(&from, input->wanted->count, input->account));
	TRY(bitmap_init(&reached, input->wanted->count, input->account));
	for (size_t i = 0; i < disguises->list.count; i++)
		found[list[i].disguise]++;
	for (size_t i = 0; i < disguises->list.count; i++) {
		uint64_t odds =
			disguises_odds(disguises, allocation_start(input->index, list[i].target));
		bool is_sure =
			odds >= LEAST_ODDS && odds / LEAST_ODDS >= wanted / found[list[i].disguise];

		if (!is_sure && list[i].disguise != DISGUISE_OFFSET)
			continue;
		bitmap_set(&from, list[i].target);
		list[left++] = list[i];
	}
	disguises->list.count = left;
	TRY(graph_mark_within(input->graph, input->wanted, &from, &reached, input->account,
			      input->progress));
	bitmap_deinit(&disguises->reached);
	disguises->reached = take(reached);
	return NULL;
}

DEFINE_COMPARE(compare_targets, struct disguised, ASCENDING(target))

void disguises_sort(struct disguises *disguises)
{
	SORT(disguises->list.items, disguises->list.count, compare_targets);
}

const struct disguised *disguises_of(const struct disguises *disguises, allocation_id target)
{
	const struct disguised key = { .target = target };

	return disguises->list.count == 0
		       ? NULL
		       : bsearch(&key, disguises->list.items, disguises->list.count, sizeof(key),
				 compare_targets);
}

void disguises_deinit(struct disguises *disguises)
{
	array_release(&disguises->list);
	bitmap_deinit(&disguises->reached);
}
