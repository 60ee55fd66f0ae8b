/*
 * Finds the memory that a collector reserved for objects. Serial and Parallel divide it into the
 * memory of two generations; G1 into regions of one size, each of which has a kind.
 *
 *	G1CollectedHeap._hrm._regions	{ base, length } -> HeapRegion { bottom, kind }, or NULL
 */
#include "analyzer/base/macros.h"
#include "analyzer/runtimes/jvm/space.h"

#include <stdio.h>

static const char WHOLE[] = "Java's heap", FREE[] = "Java's heap: free",
		  YOUNG[] = "Java's heap: young", OLD[] = "Java's heap: old",
		  LARGE[] = "Java's heap: humongous";

enum { MOST_REGIONS = 1 << 16 };

/* Read a MemRegion: a start, and a size in words. */
static bool read_range(const struct jvm_tables *tables, uint64_t place, struct memory_range *ret)
{
	static const uint64_t most = UINT64_C(1) << 44;
	uint64_t words;

	if (!jvm_field(tables, place, "MemRegion", "_start", &ret->start) ||
	    !jvm_field(tables, place, "MemRegion", "_word_size", &words) || words > most)
		return false;
	ret->end = ret->start + words * sizeof(uint64_t);
	return ret->start < ret->end;
}

static bool read_reserved(const struct jvm_tables *tables, uint64_t object, const char *type,
			  struct memory_range *ret)
{
	uint64_t offset;

	return jvm_offset(tables, type, "_reserved", &offset) &&
	       read_range(tables, object + offset, ret);
}

/* The generations of Serial. Its type has another name from JDK 22 on. */
static bool read_serial(const struct jvm_tables *tables, uint64_t heap,
			struct memory_range ret[static 2])
{
	static const char *const types[] = { "GenCollectedHeap", "SerialHeap" };
	uint64_t young, old;

	for (size_t i = 0; i < COUNT_OF(types); i++)
		if (jvm_field(tables, heap, types[i], "_young_gen", &young) &&
		    jvm_field(tables, heap, types[i], "_old_gen", &old))
			return read_reserved(tables, young, "Generation", &ret[0]) &&
			       read_reserved(tables, old, "Generation", &ret[1]);
	return false;
}

static bool read_parallel_one(const struct jvm_tables *tables, const char *field, const char *type,
			      struct memory_range *ret)
{
	uint64_t generation, space;

	return jvm_static(tables, "ParallelScavengeHeap", field, &generation) &&
	       jvm_field(tables, generation, type, "_virtual_space", &space) &&
	       jvm_field(tables, space, "PSVirtualSpace", "_reserved_low_addr", &ret->start) &&
	       jvm_field(tables, space, "PSVirtualSpace", "_reserved_high_addr", &ret->end);
}

static bool read_parallel(const struct jvm_tables *tables, uint64_t heap,
			  struct memory_range ret[static 2])
{
	return read_parallel_one(tables, "_young_gen", "PSYoungGen", &ret[0]) &&
	       read_parallel_one(tables, "_old_gen", "PSOldGen", &ret[1]);
}

static bool share(struct memory_range all, struct memory_range low, struct memory_range high)
{
	return low.start == all.start && low.end == high.start && high.end == all.end &&
	       low.start < low.end && high.start < high.end;
}

/* Find a young and an old generation, which share the heap between them. */
static bool find_generations(const struct jvm_tables *tables, uint64_t heap,
			     struct memory_range all, struct memory_range ret[static 2])
{
	static bool (*const readers[])(const struct jvm_tables *, uint64_t,
				       struct memory_range *) = { read_serial, read_parallel };

	for (size_t i = 0; i < COUNT_OF(readers); i++)
		if (readers[i](tables, heap, ret) &&
		    (share(all, ret[0], ret[1]) || share(all, ret[1], ret[0])))
			return true;
	return false;
}

/* The regions of G1, and what the words that describe them are. */
struct regions {
	const struct jvm_tables *tables;
	struct memory_range all;
	uint64_t size;	 /* of each */
	uint64_t places; /* of their addresses */
	uint64_t count;
	uint64_t bottom, kind; /* offsets */
	uint32_t young, large; /* bits of kinds */
};

/* Names of types begin with G1 from JDK 23 on. */
static bool find_regions_named(struct regions *regions, uint64_t heap, const char *prefix)
{
	const struct jvm_tables *tables = regions->tables;
	char region[32], manager[32], kind[32], young[48], large[48];
	uint64_t offset, more, tag;

	snprintf(region, sizeof(region), "%sHeapRegion", prefix);
	snprintf(manager, sizeof(manager), "%sHeapRegionManager", prefix);
	snprintf(kind, sizeof(kind), "%sHeapRegionType", prefix);
	snprintf(young, sizeof(young), "%s::YoungMask", kind);
	snprintf(large, sizeof(large), "%s::HumongousMask", kind);
	if (!jvm_static(tables, region, "GrainBytes", &regions->size) ||
	    !jvm_offset(tables, "G1CollectedHeap", "_hrm", &offset) ||
	    !jvm_offset(tables, manager, "_regions", &more) ||
	    !jvm_field(tables, heap + offset + more, "G1HeapRegionTable", "_base",
		       &regions->places) ||
	    !jvm_field(tables, heap + offset + more, "G1HeapRegionTable", "_length",
		       &regions->count) ||
	    !jvm_offset(tables, region, "_bottom", &regions->bottom) ||
	    !jvm_offset(tables, region, "_type", &regions->kind) ||
	    !jvm_offset(tables, kind, "_tag", &tag) ||
	    !jvm_constant(tables, young, &regions->young) ||
	    !jvm_constant(tables, large, &regions->large))
		return false;
	regions->kind += tag;
	return regions->size != 0 && regions->count <= MOST_REGIONS &&
	       regions->count == (regions->all.end - regions->all.start) / regions->size;
}

/* The use of a region; NULL: it is none. */
static const char *region_use(const struct regions *regions, uint64_t number)
{
	const struct image *image = regions->tables->image;
	uint64_t region, bottom;
	uint32_t kind;

	if (!image_read_u64(image, regions->places + number * sizeof(region), &region))
		return NULL;
	if (region == 0)
		return FREE;
	if (!image_read_u64(image, region + regions->bottom, &bottom) ||
	    bottom != regions->all.start + number * regions->size ||
	    !image_read_u32(image, region + regions->kind, &kind))
		return NULL;
	return kind & regions->young   ? YOUNG
	       : kind & regions->large ? LARGE
	       : kind != 0	       ? OLD /* or of the archive */
				       : FREE;
}

static bool find_regions(struct regions *regions, uint64_t heap)
{
	if (!find_regions_named(regions, heap, "") && !find_regions_named(regions, heap, "G1"))
		return false;
	for (uint64_t i = 0; i < regions->count; i++)
		if (!region_use(regions, i))
			return false;
	return true;
}

static struct error *add_regions(struct jvm *jvm, const struct regions *regions)
{
	for (uint64_t i = 0, next; i < regions->count; i = next) {
		const char *use = region_use(regions, i);

		next = i + 1;
		while (next < regions->count && region_use(regions, next) == use)
			next++;
		TRY(array_append(
			&jvm->space.ranges,
			(struct named_range){ { regions->all.start + i * regions->size,
						regions->all.start + next * regions->size },
					      use }));
	}
	return NULL;
}

struct error *jvm_find_heap(struct jvm *jvm)
{
	struct regions regions = { .tables = &jvm->tables };
	struct memory_range generations[2];
	uint64_t heap;

	if (!jvm_static(&jvm->tables, "Universe", "_collectedHeap", &heap) ||
	    !read_reserved(&jvm->tables, heap, "CollectedHeap", &regions.all))
		return NULL;
	if (find_generations(&jvm->tables, heap, regions.all, generations)) {
		TRY(jvm_add(jvm, generations[0].start, generations[0].end, YOUNG));
		return jvm_add(jvm, generations[1].start, generations[1].end, OLD);
	}
	return find_regions(&regions, heap)
		       ? add_regions(jvm, &regions)
		       : jvm_add(jvm, regions.all.start, regions.all.end, WHOLE);
}
