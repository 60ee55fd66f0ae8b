/*
 * The heap of jemalloc 5.0 to 5.3 in a dump.
 *
 * Layouts are those of include/jemalloc/internal (rtree.h, extent_structs.h or edata.h,
 *cache_bin.h, base.h) of jemalloc 5.0.1, 5.2.1, 5.3.0 and 5.3.1. No version is read: where versions
 *and builds differ, the layout counts that fits the dump. Words are those of the process: of 4
 *bytes on i386.
 *
 *	module's data     leaf                         metadata (extent_t, edata_t)
 *	rtree root -----> | element for each page | -> | bits | address | size ... bitmap |
 *	                                                        |
 *	                                               extent   V
 *	                                               | region | region | region ... |
 *
 * An extent is a run of pages: a slab, which is cut into regions of one size class, or one large
 * allocation, or free. Each extent belongs to an arena.
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/base/error.h"
#include "analyzer/base/list.h"
#include "analyzer/base/numbers.h"
#include "analyzer/heap/allocator.h"
#include "analyzer/heap/damage.h"
#include "analyzer/image/view.h"

enum {
	ALIGNMENT = 8,
	MOST_CLASSES = 256,
	MOST_LEVELS = 3,
	MOST_ARENAS = 1 << 12, /* the width of the field in an extent's bits */
	/* A slab has at most as many regions as a page has units of 8 bytes. */
	MOST_REGIONS = (1 << 16) / 8,
	MOST_BITMAP_WORDS = MOST_REGIONS / 64,
};

/* The metadata of an extent: what is at the same place in all versions. */
enum {
	METADATA_ADDRESS = 8, /* behind 64 bits of flags and numbers; */
	/* the next word is the size, of which the bits below a page are a serial number */
	METADATA_UNIT = 64, /* it is aligned to that */
	METADATA_BYTES = 128,
	BITS_ARENA = MOST_ARENAS - 1,
	BITS_SLAB = 1 << 12,
};

/*
 * The division of addresses in a build: into a page, and the index of each level of the radix tree.
 */
struct jemalloc_geometry {
	unsigned int log_page;
	unsigned int levels;
	unsigned int bits[MOST_LEVELS]; /* of each level, from the root on */
	unsigned int element; /* words of an element of a leaf; 1: the metadata share it */
	unsigned int word;    /* bytes: 8 or 4 */
};

enum extent_state { EXTENT_ACTIVE, EXTENT_DIRTY, EXTENT_MUZZY, EXTENT_RETAINED };

/* Positions of the fields in an extent's bits, and their units. */
struct jemalloc_layout {
	unsigned int state_shift;
	unsigned int class_shift;	/* the number of free regions follows the class */
	unsigned int class_bits;	/* 8; 7 where fewer classes are enough: on i386 */
	unsigned int bitmap;		/* the offset of a slab's bitmap in its metadata */
	unsigned int log_quantum;	/* size classes are multiples of it */
	unsigned int class_count;	/* of free extents, the class is this number */
	unsigned int small_count;	/* the classes that slabs are of */
	uint64_t classes[MOST_CLASSES]; /* bytes of each */
};

struct jemalloc_extent {
	uint64_t start;	   /* of its first page */
	uint64_t metadata; /* the address of it */
	uint64_t bits;
	uint64_t bytes;	 /* whole pages */
	uint64_t offset; /* of a large allocation from start */
};

struct extent_list {
	ARRAY(struct jemalloc_extent);
};

/* An arena that has extents or a structure of its own. */
struct jemalloc_arena {
	uint64_t address; /* of arena_t; 0: not found */
	uint64_t bytes;	  /* of its extents */
	uint32_t index;	  /* as jemalloc counts them */
};

/* A jemalloc: a process may have several. */
struct jemalloc {
	uint64_t start, end; /* of the module whose data has the root */
	uint64_t root;
	struct jemalloc_geometry geometry;
	struct jemalloc_layout layout;
	uint64_t padding; /* bytes of a large extent that its allocation cannot use */

	struct extent_list extents; /* by address, apart */
	struct range_list leaves;   /* with the inner nodes */
	struct range_list bases;    /* blocks of memory for metadata, by address */
	struct number_list cached;  /* regions in caches of threads, by address */
	struct number_list stacks;  /* allocations that hold the stacks of these caches */
	struct range_list bins; /* the caches, whose numbers may look like addresses; leaf keys */
	size_t cache_count;

	ARRAY(struct jemalloc_arena) arenas; /* by index */
	uint16_t arena_numbers[MOST_ARENAS]; /* of arenas, from an index; less 1 */

	struct heap_damage overlaps, misfits, absent, bitmaps, strangers;
	uint32_t stated_free, found_free; /* regions of the first of these bitmaps */
	struct heap_list_damage lists;
	struct range_list changing; /* extents that a thread was working on, by address */
	size_t changing_caches;	    /* perhaps too many: a register points at the top */
};

struct jemalloc_heap {
	struct heap heap;
	struct heap_context context;
	ARRAY(struct jemalloc) list;
};

static inline uint64_t page_size(const struct jemalloc *je)
{
	return UINT64_C(1) << je->geometry.log_page;
}

static inline uint64_t extent_end(const struct jemalloc_extent *extent)
{
	return extent->start + extent->bytes;
}

static inline unsigned int extent_class(const struct jemalloc_layout *layout,
					const struct jemalloc_extent *extent)
{
	return extent->bits >> layout->class_shift & ((1U << layout->class_bits) - 1);
}

/* The state, or a larger number: a thread is changing the extent. */
static inline unsigned int extent_state(const struct jemalloc_layout *layout,
					const struct jemalloc_extent *extent)
{
	unsigned int width = layout->class_shift - layout->state_shift;

	return extent->bits >> layout->state_shift & ((1U << width) - 1);
}

static inline bool is_slab(const struct jemalloc_extent *extent)
{
	return extent->bits & BITS_SLAB;
}

static inline uint32_t arena_index(const struct jemalloc_extent *extent)
{
	return extent->bits & BITS_ARENA;
}

static inline bool is_active(const struct jemalloc_layout *layout,
			     const struct jemalloc_extent *extent)
{
	return extent_state(layout, extent) == EXTENT_ACTIVE &&
	       extent_class(layout, extent) < layout->class_count;
}

static inline bool is_free_extent(const struct jemalloc_layout *layout,
				  const struct jemalloc_extent *extent)
{
	unsigned int state = extent_state(layout, extent);

	return state >= EXTENT_DIRTY && state <= EXTENT_RETAINED;
}

/* Bytes of its regions, or of its allocation's class. */
static inline uint64_t class_bytes(const struct jemalloc_layout *layout,
				   const struct jemalloc_extent *extent)
{
	return layout->classes[extent_class(layout, extent)];
}

static inline uint64_t region_count(const struct jemalloc_layout *layout,
				    const struct jemalloc_extent *extent)
{
	return extent->bytes / class_bytes(layout, extent);
}

/* How many regions of a slab are free, as its bits say. */
static inline uint32_t stated_free(const struct jemalloc_geometry *geometry,
				   const struct jemalloc_layout *layout,
				   const struct jemalloc_extent *extent)
{
	unsigned int width = geometry->log_page - 3 + 1;

	return (uint32_t)(extent->bits >> (layout->class_shift + layout->class_bits) &
			  ((1U << width) - 1));
}

/*
 * classes.c: sizes, by the rule that they follow.
 */

/* Fill in the sizes of the classes and how many there are. */
void jemalloc_set_classes(struct jemalloc_layout *layout, unsigned int log_quantum,
			  unsigned int log_page, unsigned int word);

/* True if malloc returns size bytes to a request for wanted bytes, with either quantum. */
bool jemalloc_size_fits(uint64_t size, uint64_t wanted, bool exactly);

/*
 * search.c: from the data of modules to the radix trees.
 */

/* Add all jemallocs of the process to the heap, with their extents. */
struct error *jemalloc_search(struct jemalloc_heap *heap);

/*
 * leaves.c: the radix tree.
 */

extern const struct jemalloc_geometry jemalloc_geometries[];
enum { GEOMETRIES = 8 };

static inline unsigned int leaf_bits(const struct jemalloc_geometry *geometry)
{
	return geometry->bits[geometry->levels - 1];
}

static inline uint64_t element_bytes(const struct jemalloc_geometry *geometry)
{
	return geometry->element * geometry->word;
}

static inline uint64_t leaf_bytes(const struct jemalloc_geometry *geometry)
{
	return element_bytes(geometry) << leaf_bits(geometry);
}

/*
 * The first element of the leaf from *number on that is not 0: its number, and the address of the
 * metadata that it names. False: there is none.
 */
bool jemalloc_next_element(struct view *view, const struct jemalloc_geometry *geometry,
			   uint64_t leaf, uint64_t *number, uint64_t *ret_metadata);

/* The next child of an inner node, or of the root, by its level. */
bool jemalloc_next_node(struct view *view, const struct jemalloc_geometry *geometry,
			unsigned int level, uint64_t node, uint64_t *number, uint64_t *ret_child);

static inline uint64_t node_bytes(const struct jemalloc_geometry *geometry, unsigned int level)
{
	return (uint64_t)geometry->word << geometry->bits[level];
}

/* Read all extents that the tree names at the page where they begin. */
struct error *jemalloc_read_extents(struct jemalloc *je, const struct heap_context *context);

/*
 * layout.c: which layout fits.
 */

/* Choose the layout that fits most extents; false: none does. */
bool jemalloc_choose_layout(struct jemalloc *je, const struct image *image);

/* Leave out what cannot be, and note where the first of it is. */
struct error *jemalloc_check_extents(struct jemalloc *je, const struct image *image);

/*
 * The bitmap of a slab, as (count + 63) / 64 words that were 0 before: set bits are free regions.
 */
bool jemalloc_read_bitmap(struct view *view, const struct jemalloc_layout *layout,
			  const struct jemalloc_extent *slab, uint64_t count,
			  uint64_t ret[MOST_BITMAP_WORDS]);

/* How many bits are set of the first count; *ret_beyond: one is set behind these. */
uint32_t jemalloc_count_bits(const uint64_t *words, uint64_t count, bool *ret_beyond);

/*
 * extents.c: what is where.
 */

/* The extent that holds address, or NULL. */
const struct jemalloc_extent *jemalloc_find_extent(const struct jemalloc *je, uint64_t address);

/*
 * The allocation that holds address, whether it is used or free: its start and size; *ret_class is
 * its class. False: there is none.
 */
bool jemalloc_find_region(const struct jemalloc *je, uint64_t address, struct memory_range *ret,
			  unsigned int *ret_class);

/* The usable range of a large extent. */
static inline struct memory_range large_range(const struct jemalloc *je,
					      const struct jemalloc_extent *extent)
{
	uint64_t bytes = class_bytes(&je->layout, extent);

	if (extent_class(&je->layout, extent) >= je->layout.small_count &&
	    bytes > extent->bytes - je->padding)
		bytes = extent->bytes - je->padding;
	return (struct memory_range){ extent->start + extent->offset,
				      extent->start + extent->offset + bytes };
}

/* Report extents and their regions. */
struct error *jemalloc_add_blocks(struct jemalloc *je, const struct heap_context *context,
				  arena_number first, struct block_sink *sink);

/*
 * bases.c: arenas, and the memory for metadata.
 */

/* Find the structures of arenas, and all blocks of metadata. */
struct error *jemalloc_find_arenas(struct jemalloc *je, const struct heap_context *context);

/* The block of metadata that has address, or NULL. */
const struct memory_range *jemalloc_find_base(const struct jemalloc *je, uint64_t address);

/* Claim all metadata. */
struct error *jemalloc_claim_metadata(const struct jemalloc *je, struct block_sink *sink);

/*
 * hpa.c: pages of huge pages.
 */

/* Add what is free of them. */
struct error *jemalloc_find_huge_pages(struct jemalloc *je, const struct heap_context *context);

/*
 * caches.c: what threads keep.
 */

/* Find the caches of threads, and what is in them. */
struct error *jemalloc_find_caches(struct jemalloc *je, const struct heap_context *context);

/*
 * prof.c: calls that allocated what was sampled.
 */

extern const struct noting jemalloc_noting;

/*
 * structure.c: the slots for cores without contents.
 */

struct error *jemalloc_visit_structure(const struct heap *base, program_range_visitor *visit,
				       void *data);

/*
 * tell.c: addresses in words.
 */

bool jemalloc_tell(const struct heap *base, uint64_t address, char *ret, size_t size);

/*
 * jemalloc.c.
 */

void jemalloc_deinit(struct jemalloc *je);
DEFINE_DEINIT(jemalloc_deinit, struct jemalloc)
