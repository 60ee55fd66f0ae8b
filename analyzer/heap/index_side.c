#include "analyzer/heap/index_side.h"

#include "analyzer/heap/sink.h"

#include <string.h>

/* As they stand in the file, whatever the structs look like in memory. */
struct kept_counts {
	uint64_t blocks, regions, claims, large, held;
};

struct kept_region {
	uint64_t start, end, count, arena, shift;
};

struct kept_large {
	uint64_t id, size;
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
	struct error *error = side_file_take(file, number, set_bytes(count), 1, &bytes);

	if (error)
		return error;
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
	struct error *error = side_file_find(file, number, &array);

	if (error || !array.bytes)
		return error;
	return allocation_set_load(file, number, count, ret);
}

static struct error *save_regions(const struct block_sink *sink, struct side_writer *writer)
{
	const struct heap_region *regions = sink->regions.items;
	struct error *error = NULL;

	side_writer_begin(writer, SIDE_REGIONS);
	for (size_t i = 0; i < sink->regions.count && !error; i++) {
		struct kept_region kept = { regions[i].start, regions[i].end, regions[i].count,
					    regions[i].arena, regions[i].shift };

		error = side_writer_add(writer, &kept, sizeof(kept));
	}
	return error;
}

static struct error *save_large(const struct block_sink *sink, struct side_writer *writer)
{
	const struct large_size *large = sink->large.items;
	struct error *error = NULL;

	side_writer_begin(writer, SIDE_LARGE);
	for (size_t i = 0; i < sink->large.count && !error; i++) {
		struct kept_large kept = { large[i].id, large[i].size };

		error = side_writer_add(writer, &kept, sizeof(kept));
	}
	return error;
}

static struct error *save_sets(const struct allocation_index *index, struct side_writer *writer)
{
	struct error *error = allocation_set_save(allocation_used(index), writer, SIDE_USED);

	if (!error)
		error = allocation_set_save(allocation_cached(index), writer, SIDE_CACHED);
	for (unsigned int i = 0; i < BLOCK_TRAITS && !error; i++)
		error = allocation_set_save_some(allocation_having(index, trait_mask(i)), writer,
						 SIDE_TRAITS + i);
	return error;
}

struct error *allocation_index_save(const struct allocation_index *index,
				    struct side_writer *writer)
{
	const struct block_sink *sink = allocation_index_sink(index);
	const struct kept_counts counts = {
		sink->count,	   sink->regions.count, sink->claims.count,
		sink->large.count, sink->held.count,
	};
	struct error *error = side_writer_array(writer, SIDE_INDEX, &counts, sizeof(counts));

	if (!error)
		error = save_regions(sink, writer);
	if (!error)
		error = side_writer_array(writer, SIDE_CLAIMS, sink->claims.items,
					  sink->claims.count * sizeof(struct memory_range));
	if (!error)
		error = save_large(sink, writer);
	if (!error)
		error = side_writer_array(writer, SIDE_HELD, sink->held.items,
					  sink->held.count * sizeof(uint64_t));
	if (!error)
		error = side_writer_array(writer, SIDE_EXTENTS, sink->extents.bytes,
					  sink->count * sizeof(struct extent));
	return error ? error : save_sets(index, writer);
}

/* What is being loaded, and how far its blocks are checked. */
struct loading {
	struct side_file *file;
	struct kept_counts counts;
	struct block_sink *sink;
	size_t large; /* how many of the list have been met */
};

/* Memory of the sink's own, with a copy of an array of the file. */
static struct error *copy_array(const struct loading *loading, unsigned int number, size_t count,
				size_t element, struct memory *ret)
{
	const void *bytes;
	struct error *error = side_file_take(loading->file, number, count, element, &bytes);

	if (!error)
		error = memory_reserve(ret, count * element);
	if (!error && count > 0)
		memcpy(ret->bytes, bytes, count * element);
	return error;
}

/* What is large stays where it is. */
static struct error *borrow_set(const struct loading *loading, unsigned int number,
				struct memory *ret)
{
	struct bitmap set = { 0 };
	struct error *error =
		allocation_set_load_some(loading->file, number, loading->counts.blocks, &set);

	if (!error && set.words)
		*ret = set.memory;
	return error;
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

static struct error *load_large(struct loading *loading)
{
	struct block_sink *sink = loading->sink;
	size_t count = loading->counts.large;
	const void *bytes;
	struct error *error =
		side_file_take(loading->file, SIDE_LARGE, count, sizeof(struct kept_large), &bytes);
	const struct kept_large *kept = bytes;

	if (!error)
		error = array_resize(&sink->large, count);
	if (error)
		return error;
	for (size_t i = 0; i < count; i++) {
		if (kept[i].id >= loading->counts.blocks || kept[i].size < LARGE_SIZE)
			return damaged();
		sink->large.items[i] =
			(struct large_size){ (allocation_id)kept[i].id, kept[i].size };
	}
	return NULL;
}

static struct error *load_arrays(struct loading *loading)
{
	const struct kept_counts *counts = &loading->counts;
	struct block_sink *sink = loading->sink;
	size_t size = counts->blocks * sizeof(struct extent);
	const void *bytes;
	struct error *error = copy_array(loading, SIDE_CLAIMS, counts->claims,
					 sizeof(struct memory_range), &sink->claims.memory);

	if (!error)
		error = copy_array(loading, SIDE_HELD, counts->held, sizeof(uint64_t),
				   &sink->held.memory);
	if (!error)
		error = load_large(loading);
	if (!error)
		error = side_file_take(loading->file, SIDE_EXTENTS, counts->blocks,
				       sizeof(struct extent), &bytes);
	if (!error && size > 0)
		sink->extents = side_memory(bytes, size);
	if (!error)
		error = borrow_set(loading, SIDE_USED, &sink->used);
	if (!error)
		error = borrow_set(loading, SIDE_CACHED, &sink->cached);
	for (unsigned int i = 0; i < BLOCK_TRAITS && !error; i++)
		error = borrow_set(loading, SIDE_TRAITS + i, &sink->traits[i]);
	if (error)
		return error;
	sink->claims.count = counts->claims;
	sink->held.count = counts->held;
	return check_claims(sink) ? NULL : damaged();
}

/* Whether the blocks of the region, the next ones, are apart and inside. */
static bool check_blocks(struct loading *loading, const struct heap_region *region)
{
	const struct extent *extents = loading->sink->extents.bytes;
	const struct large_size *large = loading->sink->large.items;
	uint64_t length = region->end - region->start, end = 0;

	for (size_t i = region->first; i < region->first + region->count; i++) {
		uint64_t start = (uint64_t)extents[i].start << region->shift;
		uint64_t size = extents[i].size;

		if (size == LARGE_SIZE) {
			if (loading->large == loading->counts.large ||
			    large[loading->large].id != i)
				return false;
			size = large[loading->large++].size;
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

static struct error *load_regions(struct loading *loading)
{
	struct block_sink *sink = loading->sink;
	size_t count = loading->counts.regions;
	uint64_t end = 0;
	const void *bytes;
	struct error *error = side_file_take(loading->file, SIDE_REGIONS, count,
					     sizeof(struct kept_region), &bytes);
	const struct kept_region *kept = bytes;

	if (!error)
		error = array_reserve(&sink->regions, count);
	for (size_t i = 0; i < count && !error; i++) {
		struct heap_region *region = sink->regions.items + i;

		if (kept[i].shift < LEAST_SHIFT || kept[i].shift > MOST_SHIFT ||
		    kept[i].start % (1U << kept[i].shift) != 0 || kept[i].start < end ||
		    kept[i].end < kept[i].start ||
		    kept[i].count > loading->counts.blocks - sink->count ||
		    kept[i].arena > UINT32_MAX)
			return damaged();
		*region = (struct heap_region){
			.start = kept[i].start,
			.end = kept[i].end,
			.count = (uint32_t)kept[i].count,
			.first = (allocation_id)sink->count,
			.arena = (arena_number)kept[i].arena,
			.shift = (uint32_t)kept[i].shift,
		};
		if (!check_blocks(loading, region))
			return damaged();
		sink->count += kept[i].count;
		sink->regions.count++;
		end = kept[i].end;
	}
	if (!error &&
	    (sink->count != loading->counts.blocks || loading->large != loading->counts.large))
		return damaged();
	return error;
}

struct error *allocation_index_load(struct side_file *file, struct memory_account *account,
				    struct allocation_index **ret)
{
	_cleanup_(block_sink_destroy) struct block_sink *sink = NULL;
	struct loading loading = { .file = file };
	const void *bytes;
	struct error *error = side_file_take(file, SIDE_INDEX, 1, sizeof(loading.counts), &bytes);

	if (error)
		return error;
	loading.counts = *(const struct kept_counts *)bytes;
	if (loading.counts.blocks >= NO_ALLOCATION)
		return damaged();
	error = block_sink_create(account, &sink);
	if (error)
		return error;
	loading.sink = sink;
	error = load_arrays(&loading);
	if (!error)
		error = load_regions(&loading);
	return error ? error : allocation_index_create(sink, ret);
}
