#include "analyzer/heap/index_side.h"

#include "analyzer/heap/sink.h"

#include <string.h>

struct kept_counts {
	uint64_t blocks, regions, claims, large, held;
};

static struct error *damaged(void)
{
	return error_create(ERROR_BAD_DUMP, "it is damaged");
}

static size_t set_bytes(size_t count)
{
	return (count / 64 + 1) * sizeof(uint64_t);
}

struct error *allocation_set_save(const struct bitmap *set, struct side_writer *writer,
				  unsigned int number)
{
	return side_writer_array(writer, number, set->words, set_bytes(set->count));
}

struct error *allocation_set_load(struct side_file *file, unsigned int number, size_t count,
				  struct bitmap *ret)
{
	const void *bytes;

	TRY(side_file_take(file, number, set_bytes(count), 1, &bytes));
	/* No bit stands for what does not exist. */
	if (((const uint64_t *)bytes)[count / 64] >> (count % 64))
		return damaged();
	*ret = (struct bitmap){ (uint64_t *)bytes, count, side_memory(bytes, set_bytes(count)) };
	return NULL;
}

struct error *allocation_set_save_some(const struct bitmap *set, struct side_writer *writer,
				       unsigned int number)
{
	return set && set->words ? allocation_set_save(set, writer, number) : NULL;
}

struct error *allocation_set_load_some(struct side_file *file, unsigned int number, size_t count,
				       struct bitmap *ret)
{
	struct side_array array;

	TRY(side_file_find(file, number, &array));
	if (!array.bytes)
		return NULL;
	return allocation_set_load(file, number, count, ret);
}

static struct error *save_sets(const struct allocation_index *index, struct side_writer *writer)
{
	TRY(allocation_set_save(allocation_used(index), writer, SIDE_USED));
	TRY(allocation_set_save(allocation_cached(index), writer, SIDE_CACHED));
	for (unsigned int i = 0; i < BLOCK_TRAITS; i++)
		TRY(allocation_set_save_some(allocation_having(index, trait_mask(i)), writer,
					     SIDE_TRAITS + i));
	return NULL;
}

struct error *allocation_index_save(const struct allocation_index *index,
				    struct side_writer *writer)
{
	const struct block_sink *sink = allocation_index_sink(index);
	const struct kept_counts counts = {
		sink->count,	   sink->regions.count, sink->claims.count,
		sink->large.count, sink->held.count,
	};
	const struct {
		unsigned int number;
		const void *bytes;
		size_t size;
	} arrays[] = {
		{ SIDE_INDEX, &counts, sizeof(counts) },
		{ SIDE_REGIONS, sink->regions.items, counts.regions * sizeof(struct heap_region) },
		{ SIDE_CLAIMS, sink->claims.items, counts.claims * sizeof(struct memory_range) },
		{ SIDE_LARGE, sink->large.items, counts.large * sizeof(struct large_size) },
		{ SIDE_HELD, sink->held.items, counts.held * sizeof(uint64_t) },
		{ SIDE_EXTENTS, sink->extents.bytes, counts.blocks * sizeof(struct extent) },
	};

	for (size_t i = 0; i < COUNT_OF(arrays); i++)
		TRY(side_writer_array(writer, arrays[i].number, arrays[i].bytes, arrays[i].size));
	return save_sets(index, writer);
}

/* The state of loading, and how far the blocks are checked. */
struct loading {
	struct side_file *file;
	struct kept_counts counts;
	struct block_sink *sink;
	size_t met; /* large blocks */
};

/* Memory of the sink's own, with a copy of an array of the file. */
static struct error *copy_array(const struct loading *loading, unsigned int number, size_t count,
				size_t element, struct memory *ret)
{
	const void *bytes;

	TRY(side_file_take(loading->file, number, count, element, &bytes));
	TRY(memory_reserve(ret, count * element));
	if (count > 0)
		memcpy(ret->bytes, bytes, count * element);
	return NULL;
}

/* Large arrays are used in place. */
static struct error *borrow_set(const struct loading *loading, unsigned int number,
				struct memory *ret)
{
	struct bitmap set = { 0 };

	TRY(allocation_set_load_some(loading->file, number, loading->counts.blocks, &set));
	if (set.words)
		*ret = set.memory;
	return NULL;
}

/* Apart from each other, so that their lengths add up to less than there is. */
static bool check_claims(const struct block_sink *sink)
{
	const struct memory_range *claims = sink->claims.items;
	uint64_t end = 0;

	for (size_t i = 0; i < sink->claims.count; i++) {
		if (claims[i].start < end || claims[i].end < claims[i].start)
			return false;
		end = claims[i].end;
	}
	return true;
}

static bool check_large(const struct loading *loading)
{
	const struct large_size *large = loading->sink->large.items;

	for (size_t i = 0; i < loading->counts.large; i++)
		if (large[i].id >= loading->counts.blocks || large[i].size < LARGE_SIZE)
			return false;
	return true;
}

static struct error *load_arrays(struct loading *loading)
{
	const struct kept_counts *counts = &loading->counts;
	struct block_sink *sink = loading->sink;
	size_t size = counts->blocks * sizeof(struct extent);
	const void *bytes;

	TRY(copy_array(loading, SIDE_REGIONS, counts->regions, sizeof(struct heap_region),
		       &sink->regions.memory));
	TRY(copy_array(loading, SIDE_CLAIMS, counts->claims, sizeof(struct memory_range),
		       &sink->claims.memory));
	TRY(copy_array(loading, SIDE_LARGE, counts->large, sizeof(struct large_size),
		       &sink->large.memory));
	TRY(copy_array(loading, SIDE_HELD, counts->held, sizeof(uint64_t), &sink->held.memory));
	TRY(side_file_take(loading->file, SIDE_EXTENTS, counts->blocks, sizeof(struct extent),
			   &bytes));
	if (size > 0)
		sink->extents = side_memory(bytes, size);
	TRY(borrow_set(loading, SIDE_USED, &sink->used));
	TRY(borrow_set(loading, SIDE_CACHED, &sink->cached));
	for (unsigned int i = 0; i < BLOCK_TRAITS; i++)
		TRY(borrow_set(loading, SIDE_TRAITS + i, &sink->traits[i]));
	sink->regions.count = counts->regions;
	sink->claims.count = counts->claims;
	sink->large.count = counts->large;
	sink->held.count = counts->held;
	return NULL;
}

/* True if the next blocks, those of the region, are apart and inside of it. */
static bool check_blocks(struct loading *loading, const struct heap_region *region)
{
	const struct extent *extents = loading->sink->extents.bytes;
	const struct large_size *large = loading->sink->large.items;
	uint64_t length = region->end - region->start, end = 0;

	for (size_t i = region->first; i < region->first + region->count; i++) {
		uint64_t start = (uint64_t)extents[i].start << region->shift;
		uint64_t size = extents[i].size;

		if (size == LARGE_SIZE) {
			if (loading->met == loading->counts.large || large[loading->met].id != i)
				return false;
			size = large[loading->met++].size;
		}
		if (start < end || start >= length || size > length - start)
			return false;
		end = start + size;
		/* Two never start at the same place. */
		if (end == start)
			end++;
	}
	return true;
}

/* Apart, in order, and with all blocks. */
static bool check_regions(struct loading *loading)
{
	struct block_sink *sink = loading->sink;
	uint64_t end = 0;

	array_for_each(region, &sink->regions) {
		if (region->shift < LEAST_SHIFT || region->shift > MOST_SHIFT ||
		    region->start % (1U << region->shift) != 0 || region->start < end ||
		    region->end < region->start || region->first != sink->count ||
		    region->count > loading->counts.blocks - sink->count ||
		    !check_blocks(loading, region))
			return false;
		sink->count += region->count;
		end = region->end;
	}
	return sink->count == loading->counts.blocks && loading->met == loading->counts.large;
}

struct error *allocation_index_load(struct side_file *file, struct memory_account *account,
				    struct allocation_index **ret)
{
	_cleanup_(block_sink_destroy) struct block_sink *sink = NULL;
	struct loading loading = { .file = file };
	const void *bytes;

	TRY(side_file_take(file, SIDE_INDEX, 1, sizeof(loading.counts), &bytes));
	loading.counts = *(const struct kept_counts *)bytes;
	if (loading.counts.blocks >= NO_ALLOCATION)
		return damaged();
	TRY(block_sink_create(account, &sink));
	loading.sink = sink;
	TRY(load_arrays(&loading));
	if (!(check_claims(sink) && check_large(&loading) && check_regions(&loading)))
		TRY(damaged());
	return allocation_index_create(sink, ret);
}
