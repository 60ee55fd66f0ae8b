/*
 * The stacks of AddressSanitizer's depot, by number (sanitizer_stackdepot.cpp).
 *
 *	GCC 12		number -> trace	| how many | return addresses, the innermost first |
 *	Clang 14	number -> node	| hash | link | u32 place in the store, plus 1 |
 *			block of the store	| how many | return addresses | how many | ...
 *
 * Numbers lead there by tables of 2^15 tables of 2^16 items each. Only symbols say where the
 * variables are: without these, no stacks are known.
 */
#include "allocators/asan/asan.h"
#include "analyzer/program/symbols.h"

enum {
	WORD = 8,
	LOWER_BITS = 16, /* of a number: in the second table */
	NUMBER_BITS = 31,
	NODES = (4 << 20) + 16, /* in the depot, behind a table of hashes */
	NODE = 16,
	NODE_PLACE = 12,
	BLOCKS = 16, /* in the store */
	BLOCK = 16,
	BLOCK_STATE = 9,
	IS_PACKED = 1,
	BLOCK_BITS = 20, /* of a place: in the block */
	MOST_BLOCKS = 1 << 12,
};

/* The item of the number in the tables at address; 0: it is in none. */
static uint64_t find_item(struct view *view, uint64_t tables, uint64_t number, unsigned int size)
{
	uint64_t table;

	if (number >> NUMBER_BITS != 0 ||
	    !view_word(view, tables + WORD * (number >> LOWER_BITS), &table) || !table)
		return 0;
	return table + size * (number & ((1U << LOWER_BITS) - 1));
}

/* The trace in the store; 0: there is none. */
static uint64_t find_stored(struct view *view, uint64_t depot, uint64_t store, uint64_t number)
{
	uint64_t node = find_item(view, depot + NODES, number, NODE), block, bytes;
	uint32_t place;
	uint8_t state;

	if (!node || !view_read(view, node + NODE_PLACE, &place, sizeof(place)) || place-- == 0)
		return 0;
	block = store + BLOCKS + (uint64_t)BLOCK * (place >> BLOCK_BITS);
	return view_read(view, block + BLOCK_STATE, &state, 1) && state != IS_PACKED &&
			       view_word(view, block, &bytes) && bytes
		       ? bytes + (uint64_t)WORD * (place & ((1U << BLOCK_BITS) - 1))
		       : 0;
}

static uint64_t find_trace(const struct asan_heap *heap, struct view *view, uint64_t number)
{
	uint64_t depot, other, item, trace;

	if (!module_find_variable(heap->module, "_ZN11__sanitizerL8theDepotE", &depot))
		return 0;
	if (module_find_variable(heap->module, "_ZN11__sanitizerL10stackStoreE", &other))
		return find_stored(view, depot, other, number);
	if (!module_find_variable(heap->module, "_ZN11__sanitizerL9tracePtrsE", &other))
		return 0;
	item = find_item(view, other + WORD, number, WORD);
	return item && view_word(view, item, &trace) ? trace : 0;
}

struct error *asan_visit_trace(const struct asan_heap *heap, struct view *view, uint64_t number,
			       program_range_visitor *visit, void *data)
{
	uint64_t trace = find_trace(heap, view, number), depot, store, node;
	uint32_t place;

	if (!trace)
		return NULL;
	TRY(visit(data, trace, WORD));
	if (!module_find_variable(heap->module, "_ZN11__sanitizerL8theDepotE", &depot) ||
	    !module_find_variable(heap->module, "_ZN11__sanitizerL10stackStoreE", &store))
		return NULL;
	node = find_item(view, depot + NODES, number, NODE) + NODE_PLACE;
	if (!view_read(view, node, &place, sizeof(place)))
		return NULL;
	TRY(visit(data, node, sizeof(place)));
	return visit(data, store + BLOCKS + (uint64_t)BLOCK * (--place >> BLOCK_BITS) + WORD, WORD);
}

/* The first one is in the function of the sanitizer that was called, which is left out. */
static size_t read_calls(void *owner, uint64_t calls, uint64_t *ret, size_t most)
{
	const struct asan_heap *heap = owner;
	struct view view = { heap->context.image };
	uint64_t trace = find_trace(heap, &view, calls), count;

	if (!trace || !view_word(&view, trace, &count))
		return 0;
	count &= UINT8_MAX;
	trace += WORD;
	if (count > 1) {
		trace += WORD;
		count--;
	}
	count = MIN(count, most);
	return view_read(&view, trace, ret, count * sizeof(*ret)) ? (size_t)count : 0;
}

struct notes {
	noted_visitor *visit;
	void *data;
};

static struct error *note(void *data, const struct asan_chunk *chunk)
{
	const struct notes *notes = data;

	if (chunk->state != ASAN_USED || !chunk->stack)
		return NULL;
	return notes->visit(notes->data, &(struct noted_blocks){ .start = chunk->start,
								 .count = 1,
								 .bytes = chunk->size,
								 .calls = chunk->stack });
}

static struct error *visit_notes(void *owner, noted_visitor *visit, void *data)
{
	const struct asan_heap *heap = owner;
	struct view view = { heap->context.image };
	struct notes notes = { visit, data };
	uint64_t depot;

	if (!module_find_variable(heap->module, "_ZN11__sanitizerL8theDepotE", &depot))
		return NULL;
	for (unsigned int i = 1; i < ASAN_CLASSES; i++)
		TRY(asan_visit_class(heap, i, note, &notes));
	array_for_each(large, &heap->larges) {
		struct asan_chunk chunk = asan_read_chunk(&view, large->chunk, large->end);

		TRY(note(&notes, &chunk));
	}
	return NULL;
}

static uint64_t calls_of(void *owner, uint64_t start)
{
	const struct asan_heap *heap = owner;
	struct memory_range extent;
	uint64_t depot;
	uint32_t stack;

	return asan_find_extent(heap, start, &extent) &&
			       module_find_variable(heap->module, "_ZN11__sanitizerL8theDepotE",
						    &depot) &&
			       image_read(heap->context.image, start - WORD, &stack, sizeof(stack))
		       ? stack
		       : 0;
}

const struct noting asan_noting = {
	.name = "AddressSanitizer",
	.is_outside = true,
	.visit = visit_notes,
	.calls_of = calls_of,
	.read_calls = read_calls,
};
