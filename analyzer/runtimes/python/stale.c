/*
 * Include/cpython/unicodeobject.h, longintrepr.h, bytesobject.h, Objects/setobject.c,
 * Modules/_collectionsmodule.c; and Include/cpython/pystate.h for stacks of frames, from 3.11 on.
 */
#include "analyzer/runtimes/python/stale.h"

#include "analyzer/base/keep.h"
#include "analyzer/base/list.h"
#include "analyzer/runtimes/python/blocks.h"
#include "analyzer/runtimes/python/values.h"

enum {
	WORD = 8,
	ITEMS = 16, /* offset of their number, in what has a number of items */
	HEAD = 16,  /* count and type */
	/* Less is what an allocator adds to the size of an object, and malloc, which leaves no rest
	 * that is too small for a block. */
	ROUNDED = 16,
	MOST_ROUNDED = 32,
	CHUNK_HEAD = 24, /* of a stack of frames */
};

enum { INT_FLAG = 1 << 24, LIST_FLAG = 1 << 25, BYTES_FLAG = 1 << 27, DICT_FLAG = 1 << 29 };

/*
 * The characters, the length, the hash and the state of a string are no references; its form for C
 * and its text, where that is apart, are.
 */
static bool is_of_text(const struct python *python, const struct python_type *type, uint64_t object,
		       uint64_t at)
{
	/* Sizes of the type, which has all that a string may begin with. */
	enum { OLD_SIZE = 80, SIZE = 64, STATE = 32, COMPACT = 1 << 5, ASCII = 1 << 6 };
	uint64_t end = type->size == SIZE ? STRING_HEAD : STRING_HEAD_OLD;
	uint32_t state;

	if ((type->size != SIZE && type->size != OLD_SIZE) ||
	    !image_read(python->space.image, object + STATE, &state, sizeof(state)))
		return false;
	if (!(state & COMPACT)) /* 3.14 has 16 bits before the kind */
		state >>= 14;
	if (!(state & COMPACT))
		end = type->size;
	else if (!(state & ASCII))
		end = type->size - WORD;
	return (at >= HEAD && at < STATE + WORD) || at >= end;
}

/*
 * From 3.13 on: | capacity, size, embedded, valid | values ... | order of keys |. The rest of the
 * first word must make sense: otherwise it does not say where values end.
 */
static bool is_behind_values(const struct python *python, const struct python_type *type,
			     uint64_t object, uint64_t at)
{
	struct {
		uint8_t capacity, size, embedded, valid;
	} head;

	return image_read(python->space.image, object + type->size, &head, sizeof(head)) &&
	       head.capacity > 0 && head.size <= head.capacity && head.embedded == 1 &&
	       head.valid <= 1 && at >= type->size + WORD + WORD * (uint64_t)head.capacity;
}

/* True if the word is behind the last item, where the allocator rounded up. */
static bool is_behind_end(const struct python *python, const struct python_type *type,
			  uint64_t object, uint64_t at, uint64_t size)
{
	uint64_t items = 0, end, rounded;

	if (type->item && !image_read_u64(python->space.image, object + ITEMS, &items))
		return false;
	items = (int64_t)items < 0 ? -items : items;
	if (type->item && items > size / type->item)
		return false;
	end = (type->size + type->item * items + WORD - 1) & ~(uint64_t)(WORD - 1);
	rounded = size % ROUNDED ? MOST_ROUNDED : ROUNDED;
	/* Types make room for one more item than their objects have. */
	if (end <= size && size - end >= rounded)
		end = (end + type->item + WORD - 1) & ~(uint64_t)(WORD - 1);
	return end <= size && size - end < rounded && at >= end;
}

/*
 * 2.7 to 3.14: | fill, used, mask, table, hash, finger 16 | 8 entries 64 | weak references |, an
 * entry being a key and its hash. A larger table is a block of its own, and the entries are old
 * then.
 */
static bool is_no_element(const struct python *python, uint64_t object, uint64_t at)
{
	enum { TABLE = 40, SMALL_TABLE = 64, SMALL_TABLE_END = 192 };
	uint64_t table;

	return at >= SMALL_TABLE && at < SMALL_TABLE_END &&
	       (at / WORD % 2 || (image_read_u64(python->space.image, object + TABLE, &table) &&
				  table != object + SMALL_TABLE));
}

/* From 3.12 on, a deque keeps some free blocks for itself: | number | blocks ... |. */
static bool is_no_free_block(const struct python *python, const struct python_type *type,
			     uint64_t object, uint64_t at)
{
	uint64_t count;

	return type->size >= DEQUE_WITH_FREE_BLOCKS && at >= DEQUE_FREE_BLOCKS &&
	       at < DEQUE_FREE_BLOCKS + WORD * MOST_FREE_BLOCKS &&
	       image_read_u64(python->space.image, object + DEQUE_FREE_COUNT, &count) &&
	       (at - DEQUE_FREE_BLOCKS) / WORD >= count;
}

static bool is_stale_by_kind(const struct python *python, const struct python_type *type,
			     uint64_t object, uint64_t at)
{
	enum { DICT_KEYS = 32 }; /* behind | number of items | version | */
	uint64_t start;

	switch (type->kind) {
	case PYTHON_DICT:
		return at < DICT_KEYS;
	case PYTHON_SET:
		return is_no_element(python, object, at);
	case PYTHON_DEQUE:
		return is_no_free_block(python, type, object, at);
	case PYTHON_GENERATOR:
	case PYTHON_FRAME:
		return python_frames_are_stale(&python->threads, python->space.image, type, object,
					       at);
	case PYTHON_CODE:
		/* References from instructions to types and methods are not counted. */
		start = python_frames_code_start(&python->threads);
		return start && at >= start;
	default:
		return false;
	}
}

bool python_is_stale_in_object(const struct python *python, const struct python_type *type,
			       struct memory_range range, uint64_t place)
{
	uint64_t object = range.start, at = place - object;

	if (at < HEAD)
		return false;
	if (!(type->flags & TYPE_HEAP) && (type->flags & (INT_FLAG | BYTES_FLAG)))
		return true;
	if (!(type->flags & TYPE_HEAP) && (type->flags & TYPE_STRING))
		return is_of_text(python, type, object, at);
	if (type->kind && is_stale_by_kind(python, type, object, at))
		return true;
	/* Nearly all words are there. */
	if (at < type->size)
		return false;
	if ((type->flags & TYPE_INLINE_VALUES) && (type->flags & TYPE_MANAGED_DICT))
		return is_behind_values(python, type, object, at);
	return is_behind_end(python, type, object, at, range.end - object);
}

/* True if the word at that place refers to the start of a dict or list of the type. */
static bool leads_to_like(const struct python *python, const struct python_type *type,
			  uint64_t place)
{
	uint64_t word;
	allocation_id id;

	if (!image_read_u64(python->space.image, place, &word))
		return false;
	id = allocation_find(python->space.index, word);
	return id != NO_ALLOCATION && python_type_of(python, id) == type &&
	       python_object_at(python, id) == word;
}

/*
 * True if the place is in a long row of such words in the interpreter's own data, which can only be
 * a free list.
 */
static bool is_in_list(const struct python *python, const struct python_type *type, uint64_t place)
{
	enum { ROW = 8 };
	const struct program *program = python->space.program;
	const struct module *module = program_find_module(program, place);
	unsigned int below = 0, above = 0;

	if (!(type->flags & (DICT_FLAG | LIST_FLAG)) || !module ||
	    module != program_find_module(program, python->types.root))
		return false;
	while (below < ROW && leads_to_like(python, type, place - (below + 1) * WORD))
		below++;
	while (above < ROW && leads_to_like(python, type, place + (above + 1) * WORD))
		above++;
	return below + 1 + above >= ROW;
}

/*
 * Up to 3.12, a free list of dicts or lists is an array of 80: those that are free, then what was
 * taken off before, and is in use again. Whether the word is of the latter.
 */
static bool is_taken_off(const struct python *python, allocation_id target, uint64_t place)
{
	enum { SLOTS = 80, TYPE = 8 };
	const struct python_type *type = python_type_of(python, target);
	bool seen = false;

	if (!type || (type->flags & TYPE_HEAP) || !(type->flags & TYPE_COLLECTED))
		return false;
	for (unsigned int i = 1; i <= SLOTS; i++) {
		uint64_t word, object_type;
		allocation_id id = NO_ALLOCATION;
		bool is_dead;

		if (image_read_u64(python->space.image, place - i * WORD, &word))
			id = allocation_find(python->space.index, word);
		is_dead = id != NO_ALLOCATION && python_number_of(python, id) == PYTHON_DEAD &&
			  image_read_u64(python->space.image, word + TYPE, &object_type) &&
			  object_type == type->address;
		/* Below the first one is something else. */
		if (id == NO_ALLOCATION || (seen && !is_dead))
			return seen || is_in_list(python, type, place);
		seen = seen || is_dead;
	}
	return false;
}

/* True if the word is in a known object of the interpreter's data, and no reference. */
static bool is_stale_in_constant(const struct python *python, uint64_t place)
{
	const struct python_constant *constants = python->constants.items;
	size_t i = LIST_ABOVE(constants, python->constants.count, range.end, place);

	return i < python->constants.count && constants[i].range.start <= place &&
	       python_is_stale_in_object(python, &python->types.list.items[constants[i].type],
					 constants[i].range, place);
}

/*
 * The interpreter's cache of attributes of types does not count what it has: struct
 * type_cache_entry, | u32 version of the type | name | value |, in an array.
 */
static bool is_cached_attribute(const struct python *python, uint64_t place)
{
	enum { ENTRY = 3, VERSION = ENTRY, NAME, VALUE };
	const struct program *program = python->space.program;
	uint64_t words[3 * ENTRY]; /* with those of the entries beside it */
	struct view view = { python->space.image };

	if (!image_read(python->space.image, place - WORD * VALUE, words, sizeof(words)) ||
	    words[VERSION] == 0 || words[NAME] % WORD != 0)
		return false;
	for (int i = 0; i < 3 * ENTRY; i += ENTRY)
		if (words[i] >> 32 || words[i + 1] % WORD != 0 || words[i + 2] % WORD != 0 ||
		    (words[i + 1] && !image_find(python->space.image, words[i + 1])))
			return false;
	return python_has_flag(&view, words[NAME], TYPE_STRING) &&
	       program_find_module(program, place) ==
		       program_find_module(program, python->types.root);
}

bool python_is_stale(const struct python *python, allocation_id target, uint64_t place)
{
	/* Up to 3.11, the blocks of deques, free or used, are in one array. */
	if (python_number_of(python, target) == PYTHON_BLOCK &&
	    program_find_module(python->space.program, place))
		return true;
	if (is_stale_in_constant(python, place) || is_cached_attribute(python, place))
		return true;
	array_for_each(range, &python->unused) {
		if (place >= range->start && place < range->end)
			return true;
	}
	return is_taken_off(python, target, place);
}

bool python_is_stale_in_block(const struct python *python, allocation_id source,
			      allocation_id target, uint64_t place)
{
	/* Up to 3.10, the state of an interpreter, which has free lists, is a block. */
	enum { LEAST_STATE = 4096 };
	uint32_t number = python_number_of(python, source);

	return number == 0 ? allocation_size(python->space.index, source) >= LEAST_STATE &&
				     is_taken_off(python, target, place)
			   : python_blocks_are_stale(python, source, target, place);
}

/* A name that cores of other processes have, too: without a thread's number. */
static const char *name_frames(const struct python *python, uint64_t state)
{
	const struct program *program = python->space.program;
	uint32_t thread = python_threads_owner(program, python->space.image, state);

	return thread != NO_THREAD &&
			       program->threads[thread].id == python->space.image->origin.process
		       ? "Python's frames of the main thread"
		       : "Python's frames of other threads";
}

static struct error *add_chunk(struct python *python, uint64_t chunk, uint64_t top, uint64_t end,
			       const char *name)
{
	TRY(array_append(&python->space.ranges, (struct named_range){ { chunk, end }, name }));
	TRY(array_append(&python->chunks, (struct memory_range){ chunk, chunk + CHUNK_HEAD }));
	return array_append(&python->unused, (struct memory_range){ top, end });
}

/*
 * Stacks of frames are chunks; the state of a thread has | chunk | top | end | of the last:
 *
 *	| chunk before | bytes | words in use once another follows | words ... |
 */
static struct error *add_chunks(struct python *python, uint64_t state, uint64_t place, bool *ret)
{
	enum { MOST_CHUNKS = 1 << 16, MOST_BYTES = 1 << 30 };
	struct view view = { python->space.image };
	uint64_t words[3], chunk, head[3];
	const char *name;

	*ret = false;
	if (!view_read(&view, place, words, sizeof(words)))
		return NULL;
	chunk = words[0];
	if (!chunk || chunk % PAGE != 0 || !view_read(&view, chunk, head, sizeof(head)) ||
	    head[1] % PAGE != 0 || head[1] > MOST_BYTES || words[2] != chunk + head[1] ||
	    words[1] < chunk + CHUNK_HEAD || words[1] > words[2])
		return NULL;
	*ret = true;
	name = name_frames(python, state);
	TRY(add_chunk(python, chunk, words[1], words[2], name));
	for (int i = 0; i < MOST_CHUNKS && head[0] && head[0] % PAGE == 0; i++) {
		chunk = head[0];
		if (!view_read(&view, chunk, head, sizeof(head)) || head[1] > MOST_BYTES ||
		    head[1] % PAGE != 0 || head[2] > head[1] / WORD)
			break;
		TRY(add_chunk(python, chunk, chunk + CHUNK_HEAD + head[2] * WORD, chunk + head[1],
			      name));
	}
	return NULL;
}

static struct error *find_chunks(uint64_t state, void *data)
{
	enum { STATE_SIZE = 1024 };
	bool found = false;

	for (uint64_t at = 0; at < STATE_SIZE && !found; at += WORD)
		TRY(add_chunks(data, state, state + at, &found));
	return NULL;
}

/* The bytes of the object from its count on; 0: they are not known. */
static uint64_t size_of_constant(struct view *view, const struct python_type *type, uint64_t object)
{
	enum { STATE = 32, KIND_SHIFT = 2, KINDS = 7, COMPACT = 1 << 5, ASCII = 1 << 6, INT = 32 };
	enum { NEW_STRING_SIZE = 64 };
	uint64_t items, state, head;

	if (type->flags & INT_FLAG)
		return INT;
	if (!view_word(view, object + ITEMS, &items))
		return 0;
	if (!(type->flags & TYPE_STRING))
		return type->size + type->item * items;
	if (!view_word(view, object + STATE, &state) || !(state & COMPACT))
		return 0;
	head = !(state & ASCII)		      ? type->size - WORD
	       : type->size > NEW_STRING_SIZE ? STRING_HEAD_OLD
					      : STRING_HEAD;
	return head + (items + 1) * (state >> KIND_SHIFT & KINDS);
}

struct constant_search {
	struct python *python;
	const struct module *module;
	uint64_t end; /* of the last one */
	struct error *error;
};

/*
 * Add the word's object, if the word is the type of an object in the data whose words are not all
 * references.
 */
static bool add_constant(struct view *view, uint64_t place, uint64_t word, void *data)
{
	struct constant_search *search = data;
	struct python *python = search->python;
	struct python_constant found = { .range.start = place - WORD };
	const struct python_type *type;
	uint64_t count, size;

	if (place < search->end ||
	    word - search->module->start >= search->module->end - search->module->start ||
	    (found.type = address_map_find(&python->space.classes.places, word)) == NOT_IN_MAP)
		return false;
	type = &python->types.list.items[found.type];
	if ((type->flags & TYPE_HEAP) ||
	    !((type->flags & (INT_FLAG | BYTES_FLAG | TYPE_STRING)) || type->kind == PYTHON_CODE) ||
	    !view_word(view, found.range.start, &count) || count == 0 ||
	    /* From 3.12 on, a table of types has an address there, and the type's dict behind it.
	     */
	    image_find(python->space.image, count))
		return false;
	size = size_of_constant(view, type, found.range.start);
	if (size <= HEAD || size > search->module->end - found.range.start)
		return false;
	found.range.end = search->end = found.range.start + (size + WORD - 1) / WORD * WORD;
	search->error = array_append(&python->constants, found);
	return search->error != NULL;
}

/*
 * Text in the data of an interpreter that is not moved (no PIE) may look like addresses of the
 * heap, which are low there, too.
 */
static struct error *find_constants(struct python *python)
{
	const struct runtime_context *context = &python->space.context;
	struct constant_search search = {
		.python = python,
		.module = program_find_module(context->program, python->types.root),
	};

	if (search.module)
		module_data_search_in(context->image, search.module, add_constant, &search);
	return search.error;
}

DEFINE_COMPARE(compare_ranges, struct named_range, ASCENDING(range.start))

/* In a damaged core chunks may be a ring, or overlap: the first has the memory. */
static void sort_ranges(struct python *python)
{
	array_sort(&python->space.ranges, compare_ranges);
	array_keep(&python->space.ranges, range, last,
		   !last || last->range.end <= range->range.start);
}

struct error *python_stale_find(struct python *python)
{
	arrays_use(python->space.account, &python->unused, &python->chunks);
	TRY(python_blocks_find(python));
	TRY(find_constants(python));
	TRY(python_threads_visit(&python->threads, &python->types, python->space.program,
				 find_chunks, python));
	sort_ranges(python);
	return NULL;
}
