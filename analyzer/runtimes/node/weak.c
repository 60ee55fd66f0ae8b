/*
 * Words of V8 that do not hold what they lead to, though they look as if: fields of WeakRef, of
 * cells of FinalizationRegistry, keys of WeakMap and WeakSet (src/objects/js-weak-refs.tq,
 * hash-table.h), handles that were made weak (src/handles/global-handles.cc), and the list of the
 * memory of all buffers (src/objects/js-array-buffer.h), each of which is of its ArrayBuffer:
 *
 *	WeakCell             | map | registry | target | token | holdings | ... |
 *	EphemeronHashTable   | map | length | 3 counts | { key, value } ... |
 *	NodeBlock            | { object, u16 class, u8 number, u8 state, callback, data } * 256 |
 *	ArrayBufferExtension | flags | store | its count | next | length |
 *	BackingStore         | memory | ...
 */
#include "analyzer/runtimes/node/node.h"

enum {
	HEAD = 3 * V8_WORD, /* of an object of JavaScript: map, properties, elements */
	CELL_TARGET = 2 * V8_WORD,
	TABLE_HEAD = 5 * V8_WORD,
	ENTRY = 2 * V8_WORD,
	NODE = 4 * V8_WORD,
	NODES = 256,
};

struct weak_search {
	const struct node *node;
	struct v8_reader reader;
	struct unused *unused;
};

static struct error *add(struct weak_search *search, uint64_t place, uint64_t words)
{
	return unused_add(search->unused, place, place + V8_WORD * words);
}

static struct error *add_keys(struct weak_search *search, uint64_t object)
{
	const struct allocation_index *index = search->node->space.index;
	uint64_t table, end;
	allocation_id id;

	if (!view_word(&search->reader.view, object + HEAD, &table) ||
	    (table & V8_TAGS) != V8_STRONG)
		return NULL;
	table -= V8_STRONG;
	id = allocation_find(index, table);
	if (id == NO_ALLOCATION || allocation_start(index, id) != table)
		return NULL;
	end = table + allocation_size(index, id);
	for (uint64_t entry = table + TABLE_HEAD; entry + ENTRY <= end && v8_step(&search->reader);
	     entry += ENTRY)
		TRY(add(search, entry, 1));
	return NULL;
}

/* C++ memory that has no object of JavaScript: a word that is one was left there. */
static struct error *add_left_objects(struct weak_search *search, uint64_t block)
{
	const struct allocation_index *index = search->node->space.index;
	allocation_id id = allocation_find(index, block);
	uint64_t end = id == NO_ALLOCATION ? 0 : block + allocation_size(index, id), word;

	for (uint64_t place = block; place + V8_WORD <= end && v8_step(&search->reader);
	     place += V8_WORD) {
		id = view_word(&search->reader.view, place, &word) && word
			     ? allocation_find(index, word)
			     : NO_ALLOCATION;
		if (id != NO_ALLOCATION && object_class_of(&search->node->space, id))
			TRY(add(search, place, 1));
	}
	return NULL;
}

static bool is_block(const struct weak_search *search, uint64_t address)
{
	const struct allocation_index *index = search->node->space.index;
	allocation_id id = address ? allocation_find(index, address) : NO_ALLOCATION;

	return id != NO_ALLOCATION && allocation_start(index, id) == address &&
	       !object_class_of(&search->node->space, id);
}

enum { STORE_FLAGS = 7 * V8_WORD }; /* bits, with nothing behind */

/* ArrayBufferExtension: the store that the one at block has; 0: none is there. */
static uint64_t find_store(struct weak_search *search, uint64_t block)
{
	enum { FLAGS, STORE, COUNT, WORDS, START = 0, LENGTH, MOST, ROOM, SIZES };
	enum { NO_FLAGS = 0xfcfc }; /* two bytes below 4; what follows is not written */
	struct view *view = &search->reader.view;
	uint64_t words[WORDS], store[SIZES];

	return view_read(view, block, words, sizeof(words)) && !(words[FLAGS] & NO_FLAGS) &&
			       is_block(search, words[STORE]) && is_block(search, words[COUNT]) &&
			       view_read(view, words[STORE], store, sizeof(store)) &&
			       store[START] && store[LENGTH] <= store[ROOM] &&
			       store[ROOM] <= store[MOST]
		       ? words[STORE]
		       : 0;
}

/* Some ArrayBuffers are among objects that are not known. */
static struct error *add_next_buffer(struct weak_search *search, uint64_t block)
{
	enum { NEXT = 3 };
	uint64_t store = find_store(search, block);

	if (!store)
		return NULL;
	TRY(add(search, block + V8_WORD * NEXT, 1));
	TRY(unused_add_rest(search->unused, store, STORE_FLAGS));
	return add_left_objects(search, store);
}

static struct error *add_object(struct weak_search *search, uint64_t object)
{
	const struct v8_layout *layout = search->reader.layout;
	struct v8_map map;
	uint64_t word;

	if (!view_word(&search->reader.view, object, &word) ||
	    !v8_read_map(&search->reader, word, &map) || !map.type)
		return NULL;
	if (map.type == layout->weak_cell_type)
		return add(search, object + CELL_TARGET, 2);
	if (map.type == layout->weak_ref_type)
		return add(search, object + HEAD, 1);
	return map.type == layout->weak_map_type || map.type == layout->weak_set_type
		       ? add_keys(search, object)
		       : NULL;
}

/* Nodes know their numbers. */
static bool are_handles(struct weak_search *search, uint64_t block)
{
	enum { NUMBER = 10 };
	uint8_t number;

	for (uint64_t i = 0; i < NODES; i++)
		if (!view_read(&search->reader.view, block + NODE * i + NUMBER, &number, 1) ||
		    number != i)
			return false;
	return true;
}

static struct error *add_handles(struct weak_search *search, uint64_t block)
{
	enum { STATE = 11, STATE_BITS = 3, IS_WEAK = 2 };
	uint8_t state;

	for (uint64_t node = block; node < block + (uint64_t)NODE * NODES; node += NODE)
		if (view_read(&search->reader.view, node + STATE, &state, 1) &&
		    (state & STATE_BITS) == IS_WEAK)
			TRY(add(search, node, 1));
	return NULL;
}

enum { BLOCK = NODE * NODES, REST = 16 * V8_WORD, EXTENSION = 5 * V8_WORD, ROUNDED = 2 * V8_WORD };

static bool may_be_extension(struct memory_range range)
{
	return range.end - range.start - EXTENSION <= ROUNDED;
}

static bool are_handles_in(struct weak_search *search, struct memory_range range)
{
	return range.end - range.start - BLOCK <= REST && are_handles(search, range.start);
}

struct error *node_find_unused(struct object_space *space, struct unused *ret)
{
	struct node *node = (struct node *)space;
	const struct allocation_index *index = node->space.index;
	struct weak_search search = { node, { { node->space.image } }, ret };
	size_t hint = 0;

	if (!space->has_objects)
		return NULL;
	search.reader.layout = &node->parts->layout;
	bitmap_for_each(id, allocation_used(index)) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);

		if (object_class_of(space, (allocation_id)id))
			TRY(add_object(&search, range.start));
		else if (may_be_extension(range))
			TRY(add_next_buffer(&search, range.start));
		else if (are_handles_in(&search, range))
			TRY(add_handles(&search, range.start));
	}
	return NULL;
}

/* Numbers and states of handles. */
static struct error *keep_handles(uint64_t block, const struct structure_visitor *visitor)
{
	enum { NUMBER = 10, BYTES = 2 };

	for (uint64_t node = block; node < block + (uint64_t)BLOCK; node += NODE)
		TRY(visitor->number(visitor->data, node + NUMBER, BYTES));
	return NULL;
}

/* Flags and sizes of stores: the words that find_store() reads. */
static struct error *keep_store(uint64_t block, uint64_t store,
				const struct structure_visitor *visitor)
{
	TRY(visitor->number(visitor->data, block, 2));
	return visitor->number(visitor->data, store + V8_WORD, 3 * V8_WORD);
}

struct error *node_weak_visit_structure(const struct node *node,
					const struct structure_visitor *visitor)
{
	const struct allocation_index *index = node->space.index;
	struct weak_search search = { node, { { node->space.image } }, NULL };
	size_t hint = 0;

	search.reader.layout = &node->parts->layout;
	bitmap_for_each(id, allocation_used(index)) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);
		uint64_t store = 0;

		if (object_class_of(&node->space, (allocation_id)id))
			continue;
		if (may_be_extension(range))
			store = find_store(&search, range.start);
		if (store)
			TRY(keep_store(range.start, store, visitor));
		else if (are_handles_in(&search, range))
			TRY(keep_handles(range.start, visitor));
	}
	return NULL;
}
