#include "allocators/boehm/internals.h"

#include "allocators/boehm/blocks.h"

enum {
	LINK_SIZE = 32, /* struct disappearing_link, in granules */
	/* struct finalizable_object, without and with an extra byte. */
	FINALIZER_SIZE = 48,
	FINALIZER_EXTRA_SIZE = 64,
	FEWEST_SLOTS = 8,    /* of a table */
	MOST_ENTRIES = 4096, /* of a table that are looked at */
};

struct look {
	const struct collector *collector;
	struct view view;
	size_t hint;
};

/* The block of the object that starts at address, if it has a size. */
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

/* A disappearing link is { ~where, next, ~object }: what is complemented keeps nothing alive. */
static bool is_link(struct look *look, uint64_t address)
{
	uint64_t where, next, object, word;
	size_t hint = 0;

	return view_word(&look->view, address, &where) &&
	       view_word(&look->view, address + 8, &next) &&
	       view_word(&look->view, address + 16, &object) &&
	       boehm_find_block(look->collector, ~object, &hint) && is_link_or_end(look, next) &&
	       view_word(&look->view, ~where, &word);
}

/* A dump may lack code altogether, and only name the file that is mapped. */
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
	    !view_word(&look->view, address + 8, &next) ||
	    !view_word(&look->view, address + 16, &function) || !object_at(look, ~object) ||
	    !is_link_or_end(look, next))
		return false;
	return can_be_code(look->view.image, function);
}

static enum internal entry_at(struct look *look, uint64_t address)
{
	const struct boehm_block *block = object_at(look, address);

	if (!block || block->kind != KIND_NORMAL)
		return INTERNAL_NONE;
	if (block->size == LINK_SIZE && is_link(look, address))
		return INTERNAL_LINK;
	if ((block->size == FINALIZER_SIZE || block->size == FINALIZER_EXTRA_SIZE) &&
	    is_finalizer(look, address))
		return INTERNAL_FINALIZER;
	return INTERNAL_NONE;
}

/* Whether a variable at the start of GC_arrays leads to address. */
static bool is_in_arrays(struct look *look, uint64_t address)
{
	uint64_t end = look->collector->freelists, word;

	for (uint64_t i = 8; i <= ARRAYS_HEAD && end; i += 8)
		if (view_word(&look->view, end - i, &word) && word == address)
			return true;
	return false;
}

/*
 * A table has a power of two of slots, with nothing in them but entries, and nothing behind them.
 * One that is empty is known by the variable that leads to it. The collector leaves those that
 * became too small to themselves.
 */
static bool is_table(struct look *look, uint64_t address, uint64_t size)
{
	uint64_t slots = FEWEST_SLOTS;
	size_t entries = 0;

	if (size < 8 * slots + look->collector->extra_byte)
		return false;
	while (16 * slots + look->collector->extra_byte <= size)
		slots *= 2;
	for (uint64_t i = 0; i < size / 8 && entries < MOST_ENTRIES; i++) {
		uint64_t word;

		if (!view_word(&look->view, address + 8 * i, &word) || word == 0)
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

/* Whether the heads of an own kind's lists are there. */
static bool is_lists(struct look *look, uint64_t address)
{
	const struct collector *collector = look->collector;

	for (size_t i = KIND_FIRST_OWN; collector->kinds && i < collector->kind_count; i++) {
		uint64_t heads;

		if (view_word(&look->view, collector->kinds + i * collector->kind_size, &heads) &&
		    heads == address)
			return true;
	}
	return false;
}

enum internal boehm_internal(const struct collector *collector, const struct image *image,
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
