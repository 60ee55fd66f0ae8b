#include "allocators/boehm/boehm.h"

#include <assert.h>
#include <inttypes.h>

enum internal {
	INTERNAL_NONE,
	INTERNAL_LINK,
	INTERNAL_FINALIZER,
	INTERNAL_TABLE, /* of either */
	INTERNAL_THREAD,
	INTERNAL_LISTS,
};

enum {
	LINK_SIZE = 4, /* words of struct disappearing_link, in granules */
	/* struct finalizable_object without and with an extra byte. */
	FINALIZER_SIZE = 6,
	FINALIZER_EXTRA_SIZE = 8,
	FEWEST_SLOTS = 8,    /* of a table */
	MOST_ENTRIES = 4096, /* of a table, to be read */
};

struct look {
	const struct collector *collector;
	struct view view;
	size_t hint;
};

/* The block of the object that starts at address, or NULL. */
static const struct boehm_block *object_at(struct look *look, uint64_t address)
{
	uint64_t number;

	return boehm_find_object(look->collector, address, &look->hint, &number);
}

static bool is_link_or_end(struct look *look, uint64_t next)
{
	const struct boehm_block *block;

	if (next == 0)
		return true;
	block = object_at(look, next);
	return block && block->kind == KIND_NORMAL;
}

/* A disappearing link is { ~where, next, ~object }: complements keep nothing alive. */
static bool is_link(struct look *look, uint64_t address)
{
	uint64_t where, next, object, word;
	size_t hint = 0;

	return view_word(&look->view, address, &where) &&
	       view_word(&look->view, address + words(look->collector, 1), &next) &&
	       view_word(&look->view, address + words(look->collector, 2), &object) &&
	       boehm_find_block(look->collector, complement(look->collector, object), &hint) &&
	       is_link_or_end(look, next) &&
	       view_word(&look->view, complement(look->collector, where), &word);
}

/* A dump may have no code, and only name the file that is mapped. */
static bool can_be_code(const struct image *image, uint64_t address)
{
	const struct region *region = image_find(image, address);

	return region ? (region->rights & RIGHT_EXECUTE) != 0
		      : image_find_mapping(image, address) != NULL;
}

/* A finalizer is { ~object, next, function, ... }. */
static bool is_finalizer(struct look *look, uint64_t address)
{
	uint64_t object, next, function;

	if (!view_word(&look->view, address, &object) ||
	    !view_word(&look->view, address + words(look->collector, 1), &next) ||
	    !view_word(&look->view, address + words(look->collector, 2), &function) ||
	    !object_at(look, complement(look->collector, object)) || !is_link_or_end(look, next))
		return false;
	return can_be_code(look->view.image, function);
}

static enum internal entry_at(struct look *look, uint64_t address)
{
	const struct boehm_block *block = object_at(look, address);

	if (!block || block->kind != KIND_NORMAL)
		return INTERNAL_NONE;
	if (block->size == words(look->collector, LINK_SIZE) && is_link(look, address))
		return INTERNAL_LINK;
	if ((block->size == words(look->collector, FINALIZER_SIZE) ||
	     block->size == words(look->collector, FINALIZER_EXTRA_SIZE)) &&
	    is_finalizer(look, address))
		return INTERNAL_FINALIZER;
	return INTERNAL_NONE;
}

unsigned int boehm_complements(const struct collector *collector, const struct image *image,
			       uint64_t address)
{
	struct look look = { .collector = collector, .view = { image } };

	switch (entry_at(&look, address)) {
	case INTERNAL_LINK:
		return 1 << 0 | 1 << 2;
	case INTERNAL_FINALIZER:
		return 1 << 0;
	default:
		return 0;
	}
}

/* True if a variable at the start of GC_arrays leads to address. */
static bool is_in_arrays(struct look *look, uint64_t address)
{
	uint64_t end = look->collector->freelists, word;

	for (uint64_t i = 1; i <= ARRAYS_HEAD && end; i++)
		if (view_word(&look->view, end - words(look->collector, i), &word) &&
		    word == address)
			return true;
	return false;
}

/*
 * The slots of a table, a power of two, hold nothing but entries, and nothing is behind them. An
 * empty table is known by the variable that leads to it. The collector forgets tables that became
 * too small.
 */
static bool is_table(struct look *look, uint64_t address, uint64_t size)
{
	const unsigned int step = look->collector->geometry.word;
	uint64_t slots = FEWEST_SLOTS;
	size_t entries = 0;

	if (size < step * slots + look->collector->extra_byte)
		return false;
	while (2 * step * slots + look->collector->extra_byte <= size)
		slots *= 2;
	for (uint64_t i = 0; i < size / step && entries < MOST_ENTRIES; i++) {
		uint64_t word;

		if (!view_word(&look->view, address + step * i, &word) || word == 0)
			continue;
		if (i >= slots || entry_at(look, word) == INTERNAL_NONE)
			return false;
		entries++;
	}
	return entries > 0 || is_in_arrays(look, address);
}

static bool is_thread(const struct collector *collector, uint64_t address)
{
	const uint64_t *all = collector->threads.items;

	for (size_t i = 0; i < collector->threads.count; i++)
		if (all[i] == address)
			return true;
	return false;
}

/* True if the heads of the lists of a program's own kind are at address. */
static bool is_lists(struct look *look, uint64_t address)
{
	const struct collector *collector = look->collector;
	uint64_t heads;

	for (size_t i = KIND_FIRST_OWN; i < collector->kind_count; i++)
		if (view_word(&look->view, kind_entry(collector, i), &heads) && heads == address)
			return true;
	return false;
}

static enum internal find_internal(const struct collector *collector, const struct image *image,
				   uint64_t address)
{
	struct look look = { collector, { image } };
	const struct boehm_block *block = object_at(&look, address);
	enum internal entry;

	if (!block)
		return INTERNAL_NONE;
	if (block->kind == KIND_ATOMIC && is_lists(&look, address))
		return INTERNAL_LISTS;
	if (block->kind != KIND_NORMAL)
		return INTERNAL_NONE;
	if (is_thread(collector, address))
		return INTERNAL_THREAD;
	entry = entry_at(&look, address);
	if (entry == INTERNAL_NONE && is_table(&look, address, block->size))
		entry = INTERNAL_TABLE;
	return entry;
}

static const char *const internal_names[] = {
	[INTERNAL_LINK] = "a disappearing link of the collector",
	[INTERNAL_FINALIZER] = "a finalizer's entry of the collector",
	[INTERNAL_TABLE] = "the collector's table of disappearing links or finalizers",
	[INTERNAL_THREAD] = "the collector's record of a thread",
	[INTERNAL_LISTS] = "the heads of the collector's free lists of a kind",
};

static const struct collector *find_collector(const struct boehm_heap *heap, uint64_t address,
					      const struct boehm_block **ret)
{
	for (size_t i = 0; i < heap->collector_count; i++) {
		size_t hint = 0;

		*ret = boehm_find_block(&heap->collectors[i], address, &hint);
		if (*ret)
			return &heap->collectors[i];
	}
	return NULL;
}

static void tell_kind(const struct boehm_block *block, char *ret, size_t size)
{
	static const char *const kinds[] = {
		[KIND_ATOMIC] = "a pointer-free object",
		[KIND_NORMAL] = "an object",
		[KIND_UNCOLLECTABLE] = "an uncollectable object",
		[KIND_ATOMIC_UNCOLLECTABLE] = "a pointer-free uncollectable object",
	};

	if (block->kind < KIND_FIRST_OWN)
		snprintf(ret, size, "%s", kinds[block->kind]);
	else
		snprintf(ret, size, "an object of kind %u", block->kind);
}

bool boehm_is_internal(const struct collector *collector, const struct image *image,
		       uint64_t address)
{
	return find_internal(collector, image, address) != INTERNAL_NONE;
}

bool boehm_tell_used(const struct heap *base, uint64_t start, char *ret, size_t size)
{
	const struct boehm_heap *heap = (const struct boehm_heap *)base;
	const struct boehm_block *block;
	const struct collector *collector = find_collector(heap, start, &block);
	enum internal internal;

	if (!collector || is_free(block))
		return false;
	internal = find_internal(collector, heap->context.image, start);
	if (internal == INTERNAL_NONE)
		tell_kind(block, ret, size);
	else
		snprintf(ret, size, "%s", internal_names[internal]);
	return true;
}

static bool tell_free(const struct collector *collector, const struct image *image,
		      const struct boehm_block *block, uint64_t address, char *ret, size_t size)
{
	static const char *const states[] = {
		[OBJECT_CACHED] = "on a thread's list of free objects",
		[OBJECT_FREE] = "on a list of free objects",
		[OBJECT_DEAD] = "garbage that is not swept yet",
		[OBJECT_UNDECIDED] = NULL,
	};
	uint64_t slot = (address - block->start) / block->size;
	struct marks marks;
	const char *what;

	if (is_free(block)) {
		snprintf(ret, size, "free blocks of the collector");
		return true;
	}
	if (slot >= object_slots(collector, block))
		return false;
	boehm_read_marks(collector, image, block, &marks);
	what = states[boehm_object_state(collector, block, &marks, slot)];
	if (what)
		snprintf(ret, size, "%s", what);
	return what;
}

/* Tell of memory outside of the blocks. */
static bool tell_bookkeeping(const struct collector *collector, uint64_t address, char *ret,
			     size_t size)
{
	const struct boehm_block *blocks = collector->blocks.items;
	const uint64_t *indexes = collector->indexes.items;
	uint64_t header = boehm_header_size(collector);

	if (collector->freelists && address >= collector->freelists &&
	    address < collector->size_map) {
		snprintf(ret, size, "the heads of the collector's lists of free objects");
		return true;
	}
	for (size_t i = 0; i < collector->indexes.count; i++)
		if (address - indexes[i] < index_size(&collector->geometry)) {
			snprintf(ret, size, "an index of the collector's blocks");
			return true;
		}
	for (size_t i = 0; i < collector->blocks.count; i++)
		if (address - blocks[i].header < header) {
			snprintf(ret, size, "the collector's header of the block at %#" PRIx64,
				 blocks[i].start);
			return true;
		}
	return false;
}

bool boehm_tell(const struct heap *base, uint64_t address, char *ret, size_t size)
{
	const struct boehm_heap *heap = (const struct boehm_heap *)base;
	const struct boehm_block *block;
	const struct collector *collector;

	assert(heap->collector_count == 0 || heap->collectors);
	collector = find_collector(heap, address, &block);
	if (collector)
		return tell_free(collector, heap->context.image, block, address, ret, size);
	for (size_t i = 0; i < heap->collector_count; i++)
		if (tell_bookkeeping(&heap->collectors[i], address, ret, size))
			return true;
	return false;
}
