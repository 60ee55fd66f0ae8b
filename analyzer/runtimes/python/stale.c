/*
 * Include/cpython/unicodeobject.h, longintrepr.h, bytesobject.h; Include/internal/pycore_dict.h;
 * and Include/cpython/pystate.h for stacks of frames, from 3.11 on.
 */
#include "analyzer/runtimes/python/stale.h"

#include "analyzer/runtimes/python/values.h"

enum {
	WORD = 8,
	ITEMS = 16,	 /* offset of their number, in what has a number of items */
	LIST_ITEMS = 24, /* in a list */
	HEAD = 16,	 /* count and type */
	/* Less is what an allocator adds to the size of an object, and malloc, which leaves no rest
	 * that is too small for a block. */
	ROUNDED = 16,
	MOST_ROUNDED = 32,
	DICT_KEYS = 32,	  /* in a dict */
	DICT_VALUES = 40, /* in a dict */
	MOST_VALUES = 30,
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
	    !image_read(python->context.image, object + STATE, &state, sizeof(state)))
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

	return image_read(python->context.image, object + type->size, &head, sizeof(head)) &&
	       head.capacity > 0 && head.size <= head.capacity && head.embedded == 1 &&
	       head.valid <= 1 && at >= type->size + WORD + WORD * (uint64_t)head.capacity;
}

/* Whether the word is behind the last item, where the allocator rounded up. */
static bool is_behind_end(const struct python *python, const struct python_type *type,
			  uint64_t object, uint64_t at, uint64_t size)
{
	uint64_t items = 0, end;

	if (type->item && !image_read_u64(python->context.image, object + ITEMS, &items))
		return false;
	items = (int64_t)items < 0 ? -items : items;
	if (type->item && items > size / type->item)
		return false;
	end = (type->size + type->item * items + WORD - 1) & ~(uint64_t)(WORD - 1);
	return end <= size && size - end < (size % ROUNDED ? MOST_ROUNDED : ROUNDED) && at >= end;
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
	/* Nearly all words are there. */
	if (at < type->size)
		return false;
	if ((type->flags & TYPE_INLINE_VALUES) && (type->flags & TYPE_MANAGED_DICT))
		return is_behind_values(python, type, object, at);
	return is_behind_end(python, type, object, at, range.end - object);
}

/*
 * 3.11 and 3.12: | order of keys, the last first | size, bytes before the values | values ... |.
 * Values of keys that are not in the order are not set.
 */
static bool is_no_value(const struct python *python, allocation_id source, uint64_t before,
			uint64_t place)
{
	uint64_t values = allocation_start(python->context.index, source) + before;
	uint64_t number = (place - values) / WORD;
	uint8_t head[MOST_VALUES + 2]; /* the order, up to its end */
	uint8_t size;

	if (place < values)
		return true;
	if (!image_read(python->context.image, values - before, head, before))
		return false;
	size = head[before - 2];
	if (size > before - 2)
		return false;
	for (uint8_t i = 0; i < size; i++)
		if (head[before - 3 - i] == number)
			return false;
	return true;
}

/*
 * From 3.11 on: | references | powers of sizes, kind, version | free | entries | indices | entries
 * |, where the second power is that of the indices' bytes, and those of kind 0 have a hash, too.
 */
static bool is_behind_entries(const struct python *python, allocation_id keys, uint64_t at)
{
	enum { HEADER = 32, ENTRY = 16, GENERAL_ENTRY = 24, MOST_POWER = 40, MOST_KIND = 2 };
	uint64_t head[HEADER / WORD], size = allocation_size(python->context.index, keys);
	uint64_t power, kind;

	if (!image_read(python->context.image, allocation_start(python->context.index, keys), head,
			sizeof(head)))
		return false;
	power = head[1] >> 8 & UINT8_MAX;
	kind = head[1] >> 16 & UINT8_MAX;
	return power <= MOST_POWER && kind <= MOST_KIND && head[2] <= size && head[3] <= size &&
	       at >= HEADER + (UINT64_C(1) << power) +
			       head[3] * (kind == 0 ? GENERAL_ENTRY : ENTRY);
}

/* Whether the word is behind the items that the list has. */
static bool is_spare(const struct python *python, allocation_id items, uint64_t at)
{
	allocation_id list = python->list_of.items[ranks_of(&python->lists, items)];
	uint64_t count;

	return image_read_u64(python->context.image, python_object_at(python, list) + ITEMS,
			      &count) &&
	       at / WORD >= count;
}

/* Whether the word at that place leads to the start of a dict or list of the type. */
static bool leads_to_like(const struct python *python, const struct python_type *type,
			  uint64_t place)
{
	uint64_t word;
	allocation_id id;

	if (!image_read_u64(python->context.image, place, &word))
		return false;
	id = allocation_find(python->context.index, word);
	return id != NO_ALLOCATION && python_type_of(python, id) == type &&
	       python_object_at(python, id) == word;
}

/*
 * Whether the place is in so long a row of such words in the interpreter's own data that it can
 * only be a free list, of which none are free.
 */
static bool is_in_list(const struct python *python, const struct python_type *type, uint64_t place)
{
	enum { ROW = 8 };
	const struct program *program = python->context.program;
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

		if (image_read_u64(python->context.image, place - i * WORD, &word))
			id = allocation_find(python->context.index, word);
		is_dead = id != NO_ALLOCATION && python_number_of(python, id) == PYTHON_DEAD &&
			  image_read_u64(python->context.image, word + TYPE, &object_type) &&
			  object_type == type->address;
		/* Below the first one is something else. */
		if (id == NO_ALLOCATION || (seen && !is_dead))
			return seen || is_in_list(python, type, place);
		seen = seen || is_dead;
	}
	return false;
}

bool python_is_stale(const struct python *python, allocation_id target, uint64_t place)
{
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
	uint64_t at;

	if (number == 0)
		return allocation_size(python->context.index, source) >= LEAST_STATE &&
		       is_taken_off(python, target, place);
	if (number >= PYTHON_VALUES)
		return is_no_value(python, source, WORD * (uint64_t)(number - PYTHON_VALUES),
				   place);
	at = place - allocation_start(python->context.index, source);
	return (number == PYTHON_KEYS && is_behind_entries(python, source, at)) ||
	       (number == PYTHON_ITEMS && is_spare(python, source, at));
}

/* Note the allocation that the word leads into, if that has values. */
static void note_values(struct python *python, uint64_t word)
{
	static const uint64_t FLAG = 1; /* 3.12 takes 1 off if it is no dict */
	uint64_t values = word + (word & FLAG), before;
	allocation_id id = values ? allocation_find(python->context.index, values) : NO_ALLOCATION;
	uint8_t told;

	if (id == NO_ALLOCATION || python_number_of(python, id) ||
	    !bitmap_get(allocation_used(python->context.index), id))
		return;
	before = values - allocation_start(python->context.index, id);
	if (before >= WORD && before <= MOST_VALUES + 2 && before % WORD == 0 &&
	    image_read(python->context.image, values - 1, &told, 1) && told == before)
		python_mark(python, id, PYTHON_VALUES + (uint32_t)(before / WORD));
}

/* The items of a list. */
struct part {
	allocation_id items, list;
};

/* Working storage of find_parts(). */
struct search {
	struct python *python;
	struct view view;
	ARRAY(struct part) parts;
	struct bitmap items;
};

/* Note that the word leads to the items of the list, or the keys of the dict, whose mark that is.
 */
static struct error *note_items(struct search *search, allocation_id list, uint64_t word,
				uint32_t mark)
{
	struct python *python = search->python;
	allocation_id id = word ? allocation_find(python->context.index, word) : NO_ALLOCATION;

	if (id == NO_ALLOCATION || python_number_of(python, id) ||
	    allocation_start(python->context.index, id) != word)
		return NULL;
	python_mark(python, id, mark);
	if (mark == PYTHON_KEYS)
		return NULL;
	bitmap_set(&search->items, id);
	return array_append(&search->parts, (struct part){ id, list });
}

/* What the object of that type, behind header bytes, leads to. */
static struct error *note_parts(struct search *search, allocation_id id, uint64_t object,
				const struct python_type *type, uint64_t header)
{
	struct python *python = search->python;
	struct view *view = &search->view;
	enum { BEFORE = 32, MOST_BEFORE = 2 }; /* words that may lead to values */
	uint64_t word;

	if ((type->flags & LIST_FLAG) && view_word(view, object + LIST_ITEMS, &word))
		TRY(note_items(search, id, word, PYTHON_ITEMS));
	if ((type->flags & DICT_FLAG) && view_word(view, object + DICT_KEYS, &word))
		TRY(note_items(search, id, word, PYTHON_KEYS));
	if ((type->flags & DICT_FLAG) && view_word(view, object + DICT_VALUES, &word))
		note_values(python, word);
	if (!(type->flags & TYPE_MANAGED_DICT) || header < BEFORE)
		return NULL;
	for (size_t i = 0; i < MOST_BEFORE; i++)
		if (view_word(view, object - BEFORE + i * WORD, &word))
			note_values(python, word);
	return NULL;
}

static struct error *keep_lists(struct search *search)
{
	struct python *python = search->python;

	TRY(ranks_init(&python->lists, &search->items, python->context.account));
	TRY(array_resize(&python->list_of, python->lists.count));
	array_for_each(part, &search->parts)
		python->list_of.items[ranks_of(&python->lists, part->items)] = part->list;
	return NULL;
}

static void search_deinit(struct search *search)
{
	array_release(&search->parts);
	bitmap_deinit(&search->items);
}
DEFINE_DEINIT(search_deinit, struct search)

/* The items of lists; and values of attributes, which are in blocks of their own up to 3.12. */
static struct error *find_parts(struct python *python)
{
	enum { FLAGS = LIST_FLAG | DICT_FLAG | TYPE_MANAGED_DICT };
	const struct runtime_context *context = &python->context;
	_cleanup_(search_deinit) struct search search = {
		.python = python,
		.view.image = context->image,
		.parts.memory.account = context->account,
	};
	size_t hint = 0;

	TRY(bitmap_init(&search.items, allocation_count(context->index), context->account));
	for (allocation_id id = 0; id < allocation_count(context->index); id++) {
		const struct python_type *type = python_type_of(python, id);
		uint64_t header = type ? python_header_of(python, type) : 0;

		if (type && (type->flags & FLAGS))
			TRY(note_parts(&search, id,
				       allocation_range_near(context->index, id, &hint).start +
					       header,
				       type, header));
	}
	return keep_lists(&search);
}

/*
 * Stacks of frames are chunks; the state of a thread has | chunk | top | end | of the last:
 *
 *	| chunk before | bytes | words in use once another follows | words ... |
 */
static struct error *add_chunks(struct python *python, uint64_t place, bool *ret)
{
	enum { MOST_CHUNKS = 1 << 16, MOST_BYTES = 1 << 30, DATA = 24 };
	struct view view = { python->context.image };
	uint64_t words[3], chunk, head[3];

	*ret = false;
	if (!view_read(&view, place, words, sizeof(words)))
		return NULL;
	chunk = words[0];
	if (!chunk || chunk % PAGE != 0 || !view_read(&view, chunk, head, sizeof(head)) ||
	    head[1] % PAGE != 0 || head[1] > MOST_BYTES || words[2] != chunk + head[1] ||
	    words[1] < chunk + DATA || words[1] > words[2])
		return NULL;
	*ret = true;
	TRY(array_append(&python->unused, (struct memory_range){ words[1], words[2] }));
	for (int i = 0; i < MOST_CHUNKS && head[0] && head[0] % PAGE == 0; i++) {
		chunk = head[0];
		if (!view_read(&view, chunk, head, sizeof(head)) || head[1] > MOST_BYTES ||
		    head[1] % PAGE != 0 || head[2] > head[1] / WORD)
			break;
		TRY(array_append(
			&python->unused,
			(struct memory_range){ chunk + DATA + head[2] * WORD, chunk + head[1] }));
	}
	return NULL;
}

static struct error *find_chunks(uint64_t state, void *data)
{
	enum { STATE_SIZE = 1024 };
	bool found = false;

	for (uint64_t at = 0; at < STATE_SIZE && !found; at += WORD)
		TRY(add_chunks(data, state + at, &found));
	return NULL;
}

struct error *python_stale_find(struct python *python)
{
	python->unused.memory.account = python->context.account;
	TRY(find_parts(python));
	return python_threads_visit(&python->threads, &python->types, python->context.program,
				    find_chunks, python);
}
