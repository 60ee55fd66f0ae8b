/*
 * Include/internal/pycore_dict.h, Objects/setobject.c and bytearrayobject.c, and in Modules
 * _collectionsmodule.c, arraymodule.c and _io.
 */
#include "analyzer/runtimes/python/blocks.h"

#include "analyzer/runtimes/python/entries.h"

enum {
	WORD = 8,
	LENGTH = 16, /* of what has a number of items */
	ITEMS = 24,  /* of a list, of an array: their address */
	DICT_KEYS = 32,
	DICT_VALUES = 40,
	MOST_VALUES = 30,
	SET_TABLE = 40,
	BYTES = 32, /* of a bytearray */
	TEXT = 16,  /* of a StringIO */
	NODES = 64, /* of an OrderedDict, and then how many: in 3.11 */
	DATA = 16,  /* of an array of numpy: its elements, lengths, and their type */
	SHAPE = 32,
	ELEMENT = 56,
	/* Fields of a deque; and of its blocks: | link | items ... | link |. */
	LEFT_BLOCK = 24,
	RIGHT_BLOCK = 32,
	LEFT_INDEX = 40,
	RIGHT_INDEX = 48,
	BLOCK_ITEMS = 64,
	RIGHT_LINK = WORD * (1 + BLOCK_ITEMS),
	BLOCK_SIZE = RIGHT_LINK + WORD,
};

static const uint64_t LIST_FLAG = 1 << 25, DICT_FLAG = 1 << 29;
static const uint64_t TYPE_OF_TYPES = UINT64_C(1) << 31;

/*
 * 3.11 and 3.12: | order of keys, the last first | size, bytes before the values | values ... |.
 * Values of keys that are not in the order are not set.
 */
static bool is_no_value(const struct python *python, allocation_id source, uint64_t before,
			uint64_t place)
{
	uint64_t values = allocation_start(python->space.index, source) + before;
	uint64_t number = (place - values) / WORD;
	uint8_t head[MOST_VALUES + 2]; /* the order, up to its end */
	uint8_t size;

	if (place < values)
		return true;
	if (!image_read(python->space.image, values - before, head, before))
		return false;
	size = head[before - 2];
	if (size > before - 2)
		return false;
	for (uint8_t i = 0; i < size; i++)
		if (head[before - 3 - i] == number)
			return false;
	return true;
}

/* True if the word is no key and no value: a number, a hash, an index, or behind the entries. */
static bool is_no_entry(const struct python *python, uint64_t keys, uint64_t place)
{
	enum { WITH_HASH = 3 * WORD };
	struct view view = { python->space.image };
	struct python_entries entries;

	return python_find_entries(&view, keys, &entries) &&
	       (place < entries.first_key ||
		place - entries.first_key >= entries.step * entries.count ||
		(entries.step == WITH_HASH &&
		 (place - entries.first_key) % WITH_HASH == WITH_HASH - WORD));
}

allocation_id python_blocks_owner(const struct python *python, allocation_id block)
{
	return bitmap_get(&python->blocks.members, block)
		       ? python->owner_of.items[ranks_of(&python->blocks, block)]
		       : NO_ALLOCATION;
}

/* True if the word is behind the items, whose number is at place. */
static bool is_spare(const struct python *python, uint64_t place, uint64_t at)
{
	uint64_t count;

	return image_read_u64(python->space.image, place, &count) && at / WORD >= count;
}

/* True if the deque has no item there: it was removed, or never added. */
static bool is_no_item(const struct python *python, uint64_t deque, uint64_t block, uint64_t at)
{
	uint64_t words[(RIGHT_INDEX + WORD) / WORD], item = at / WORD - 1;
	bool is_left, is_right;

	if (!image_read(python->space.image, deque, words, sizeof(words)))
		return false;
	is_left = words[LEFT_BLOCK / WORD] == block;
	is_right = words[RIGHT_BLOCK / WORD] == block;
	if (at < WORD)
		return is_left;
	if (at >= RIGHT_LINK)
		return is_right || at >= BLOCK_SIZE;
	return (is_left && item < words[LEFT_INDEX / WORD]) ||
	       (is_right && item > words[RIGHT_INDEX / WORD]);
}

/*
 * Words within bytes are no references that Python counts; C code may keep other addresses there.
 */
static bool is_byte(const struct python *python, allocation_id owner, allocation_id target,
		    uint64_t at)
{
	enum { ARRAY_ITEM = 40, ITEM_SIZE = 4 };
	const struct python_type *type = python_type_of(python, owner);
	const struct image *image = python->space.image;
	uint64_t object = python_object_at(python, owner), count, item;
	uint32_t size = 1;

	if (python_type_of(python, target) ||
	    (type->kind != PYTHON_BYTEARRAY && type->kind != PYTHON_ARRAY))
		return true;
	if (type->kind == PYTHON_ARRAY &&
	    (!image_read_u64(image, object + ARRAY_ITEM, &item) ||
	     !image_read(image, item + ITEM_SIZE, &size, sizeof(size))))
		return false;
	/* A bytearray whose first bytes were deleted begins later. */
	return type->kind == PYTHON_ARRAY && image_read_u64(image, object + LENGTH, &count) &&
	       at >= count * size;
}

/* True if an array of numpy has numbers, dates or text, and no objects or records. */
static bool are_numbers(const struct python *python, allocation_id array)
{
	enum { NUMBER = 28, OBJECTS = 17, RECORDS = 20, LAST = 23 };
	const struct image *image = python->space.image;
	uint64_t type;
	uint32_t number;

	return image_read_u64(image, python_object_at(python, array) + ELEMENT, &type) &&
	       image_read(image, type + NUMBER, &number, sizeof(number)) && number <= LAST &&
	       number != OBJECTS && number != RECORDS;
}

bool python_blocks_are_stale(const struct python *python, allocation_id block, allocation_id target,
			     uint64_t place)
{
	uint32_t mark = python_number_of(python, block);
	uint64_t start = allocation_start(python->space.index, block), at = place - start;
	allocation_id owner;
	uint64_t object;

	if (mark >= PYTHON_VALUES)
		return is_no_value(python, block, WORD * (uint64_t)(mark - PYTHON_VALUES), place);
	if (mark == PYTHON_KEYS)
		return is_no_entry(python, start, place);
	if (mark == PYTHON_TABLE)
		return at / WORD % 2; /* a hash */
	owner = python_blocks_owner(python, block);
	if (owner == NO_ALLOCATION)
		return false;
	if (mark == PYTHON_ELEMENTS)
		return python_type_of(python, target) && are_numbers(python, owner);
	if (mark == PYTHON_BYTES)
		return is_byte(python, owner, target, at);
	object = python_object_at(python, owner);
	if (mark == PYTHON_BLOCK)
		return is_no_item(python, object, start, at);
	return is_spare(python, object + (mark == PYTHON_ITEMS ? LENGTH : NODES + WORD), at);
}

struct part {
	allocation_id block, owner;
};

/* Working storage of python_blocks_find(). */
struct search {
	struct python *python;
	struct view view;
	ARRAY(struct part) parts;
	struct bitmap blocks;
	uint64_t deque; /* the type, if free blocks are in an array of its module; or 0 */
	struct error *error;
};

static void note_block(struct search *search, allocation_id owner, allocation_id id, uint32_t mark)
{
	python_mark(search->python, id, mark);
	bitmap_set(&search->blocks, id);
	if (!search->error)
		search->error = array_append(&search->parts, (struct part){ id, owner });
}

/* The allocation that begins at the address, if it is used and nothing yet. */
static allocation_id find_unknown(const struct python *python, uint64_t address)
{
	allocation_id id = allocation_used_at(python->space.index, address);

	return id != NO_ALLOCATION && !python_number_of(python, id) ? id : NO_ALLOCATION;
}

/* Note what the word of the object at place leads to. False: it leads to nothing new. */
static bool note(struct search *search, allocation_id owner, uint64_t place, uint32_t mark)
{
	allocation_id id;
	uint64_t word;

	if (!view_word(&search->view, place, &word))
		return false;
	id = find_unknown(search->python, word);
	if (id != NO_ALLOCATION)
		note_block(search, owner, id, mark);
	return id != NO_ALLOCATION;
}

/* Note a block that has values. */
static void note_values(struct search *search, allocation_id owner, uint64_t place)
{
	static const uint64_t FLAG = 1; /* 3.12 takes 1 off if it is no dict */
	const struct python *python = search->python;
	uint64_t values, before;
	allocation_id id;
	uint8_t told;

	if (!view_word(&search->view, place, &values) || !values)
		return;
	values += values & FLAG;
	id = allocation_find(python->space.index, values);
	if (id == NO_ALLOCATION || python_number_of(python, id) ||
	    !bitmap_get(allocation_used(python->space.index), id))
		return;
	before = values - allocation_start(python->space.index, id);
	if (before >= WORD && before <= MOST_VALUES + 2 && before % WORD == 0 &&
	    image_read(python->space.image, values - 1, &told, 1) && told == before)
		note_block(search, owner, id, PYTHON_VALUES + (uint32_t)(before / WORD));
}

/* Blocks from the left one to the right one: each is noted once, which ends rings. */
static void note_deque(struct search *search, allocation_id id, uint64_t object,
		       const struct python_type *type)
{
	uint64_t place = object + LEFT_BLOCK, block, last, count = 0;

	if (!view_word(&search->view, object + RIGHT_BLOCK, &last))
		return;
	while (view_word(&search->view, place, &block) && note(search, id, place, PYTHON_BLOCK) &&
	       block != last)
		place = block + RIGHT_LINK;
	if (type->size < DEQUE_WITH_FREE_BLOCKS)
		search->deque = type->address;
	if (type->size < DEQUE_WITH_FREE_BLOCKS ||
	    !view_word(&search->view, object + DEQUE_FREE_COUNT, &count))
		return;
	for (uint64_t i = 0; i < count && i < MOST_FREE_BLOCKS; i++)
		note(search, id, object + DEQUE_FREE_BLOCKS + WORD * i, PYTHON_DEAD);
}

/* The large one of such an object's few blocks is the buffer. */
static void note_file_buffer(struct search *search, allocation_id id, uint64_t object,
			     const struct python_type *type)
{
	enum { LEAST = 256 };
	uint64_t word;

	for (uint64_t at = 2 * WORD; at + WORD <= type->size; at += WORD) {
		allocation_id found = view_word(&search->view, object + at, &word)
					      ? find_unknown(search->python, word)
					      : NO_ALLOCATION;

		if (found != NO_ALLOCATION &&
		    allocation_size(search->python->space.index, found) >= LEAST)
			note_block(search, id, found, PYTHON_BYTES);
	}
}

/* numpy/ndarraytypes.h: an array that does not own its data has those of another object. */
static void note_numbers(struct search *search, allocation_id id, uint64_t object)
{
	enum { FLAGS = 64, OWNS_DATA = 4 };
	uint64_t flags;

	if (view_word(&search->view, object + FLAGS, &flags) && (flags & OWNS_DATA))
		note(search, id, object + DATA, PYTHON_ELEMENTS);
	note(search, id, object + SHAPE, PYTHON_BYTES);
}

static void note_by_kind(struct search *search, allocation_id id, uint64_t object,
			 const struct python_type *type)
{
	switch (type->kind) {
	case PYTHON_SET:
		note(search, id, object + SET_TABLE, PYTHON_TABLE);
		break;
	case PYTHON_DEQUE:
		note_deque(search, id, object, type);
		break;
	case PYTHON_ORDERED:
		note(search, id, object + NODES, PYTHON_NODES);
		break;
	case PYTHON_BYTEARRAY:
		note(search, id, object + BYTES, PYTHON_BYTES);
		break;
	case PYTHON_ARRAY:
		note(search, id, object + ITEMS, PYTHON_BYTES);
		break;
	case PYTHON_NUMBERS:
		note_numbers(search, id, object);
		break;
	case PYTHON_TEXT_BUFFER:
		note(search, id, object + TEXT, PYTHON_BYTES);
		break;
	case PYTHON_FILE_BUFFER:
		note_file_buffer(search, id, object, type);
		break;
	default:
		break;
	}
}

/* Note the keys that objects of a type share. */
static void note_shared_keys(struct search *search, allocation_id id, uint64_t object)
{
	struct python_entries entries;
	allocation_id found = NO_ALLOCATION;
	uint64_t table;

	if (python_find_shared_keys(&search->view, object, &table, &entries))
		found = find_unknown(search->python, table);
	if (found != NO_ALLOCATION)
		note_block(search, id, found, PYTHON_KEYS);
}

/* Note the parts that an object of that type, behind header bytes, refers to. */
static void note_parts(struct search *search, allocation_id id, uint64_t object,
		       const struct python_type *type, uint64_t header)
{
	enum { BEFORE = 32, MOST_BEFORE = 2 }; /* words that may lead to values */

	if (type->flags & LIST_FLAG)
		note(search, id, object + ITEMS, PYTHON_ITEMS);
	if (type->flags & DICT_FLAG) {
		note(search, id, object + DICT_KEYS, PYTHON_KEYS);
		note_values(search, id, object + DICT_VALUES);
	}
	if (type->flags & TYPE_OF_TYPES)
		note_shared_keys(search, id, object);
	note_by_kind(search, id, object, type);
	if (!(type->flags & TYPE_MANAGED_DICT) || header < BEFORE)
		return;
	for (size_t i = 0; i < MOST_BEFORE; i++)
		note_values(search, id, object - BEFORE + i * WORD);
}

/*
 * Up to 3.13, keys of small dicts that were freed, or replaced by larger ones, are in a list of the
 * interpreter, with all entries: they have room for 5 of 8, and at most so many references.
 */
bool python_blocks_are_free_keys(struct view *view, struct memory_range range, uint64_t most)
{
	enum { LEAST = 96, MOST = 192, POWERS = 0x0303, ROOM = 5, POWER_BITS = 16 };
	uint64_t words[5], size = range.end - range.start;
	const uint64_t *counts;

	if (size < LEAST || size > MOST || !view_read(view, range.start, words, sizeof(words)) ||
	    words[0] > most)
		return false;
	/* Up to 3.10: | references | size | function | free | used |. */
	counts = words[1] == 8 ? words + 3 : words + 2;
	return (words[1] == 8 || words[1] % (1 << POWER_BITS) == POWERS) && counts[0] <= ROOM &&
	       counts[1] <= ROOM && counts[0] + counts[1] > 0;
}

/* True if all words of the block may be removed items, and at least one is an object. */
static bool may_be_items(const struct python *python, struct view *view, uint64_t block)
{
	bool has_object = false;

	for (unsigned int i = 1; i <= BLOCK_ITEMS; i++) {
		uint64_t word;
		allocation_id id;

		if (!view_word(view, block + WORD * i, &word))
			return false;
		if (!word)
			continue;
		if (word % WORD != 0 || !image_find(view->image, word))
			return false;
		id = allocation_find(python->space.index, word);
		has_object |= id != NO_ALLOCATION && python_type_of(python, id) &&
			      python_object_at(python, id) == word;
	}
	return has_object;
}

/* Free keys of dicts, and up to 3.11 free blocks of deques, are in arrays of modules. */
static bool note_free(struct view *view, uint64_t place, uint64_t word, void *data)
{
	enum { MOST_MORE = 32 }; /* that malloc() adds */
	struct search *search = data;
	allocation_id id = word % WORD == 0 ? find_unknown(search->python, word) : NO_ALLOCATION;
	uint64_t size;

	if (id == NO_ALLOCATION)
		return false;
	size = allocation_size(search->python->space.index, id);
	if (python_blocks_are_free_keys(view, (struct memory_range){ word, word + size }, 1) ||
	    (search->deque && size >= BLOCK_SIZE && size - BLOCK_SIZE < MOST_MORE &&
	     may_be_items(search->python, view, word)))
		python_mark(search->python, id, PYTHON_DEAD);
	return false;
}

static void find_free(struct search *search)
{
	const struct runtime_context *context = &search->python->space.context;
	const struct module *module =
		program_find_module(context->program, search->python->types.root);
	const struct module *other = program_find_module(context->program, search->deque);

	if (module)
		module_data_search_in(context->image, module, note_free, search);
	if (other && other != module)
		module_data_search_in(context->image, other, note_free, search);
}

static struct error *keep_blocks(struct search *search)
{
	struct python *python = search->python;

	TRY(ranks_init(&python->blocks, &search->blocks, python->space.account));
	TRY(array_resize(&python->owner_of, python->blocks.count));
	array_for_each(part, &search->parts)
		python->owner_of.items[ranks_of(&python->blocks, part->block)] = part->owner;
	return NULL;
}

static void search_deinit(struct search *search)
{
	array_release(&search->parts);
	bitmap_deinit(&search->blocks);
}
DEFINE_DEINIT(search_deinit, struct search)

struct error *python_blocks_find(struct python *python)
{
	static const uint64_t FLAGS = LIST_FLAG | DICT_FLAG | TYPE_MANAGED_DICT | TYPE_OF_TYPES;
	const struct runtime_context *context = &python->space.context;
	_cleanup_(search_deinit) struct search search = {
		.python = python,
		.view.image = context->image,
		.parts.memory.account = context->account,
	};
	size_t hint = 0;

	TRY(bitmap_init(&search.blocks, allocation_count(context->index), context->account));
	for (allocation_id id = 0; id < allocation_count(context->index) && !search.error; id++) {
		const struct python_type *type = python_type_of(python, id);
		struct memory_range range = allocation_range_near(context->index, id, &hint);

		if (type && ((type->flags & FLAGS) || type->kind))
			note_parts(&search, id, range.start + python_header_of(python, type), type,
				   python_header_of(python, type));
		else if (python_number_of(python, id) == 0 &&
			 bitmap_get(allocation_used(context->index), id) &&
			 python_blocks_are_free_keys(&search.view, range, 0))
			python_mark(python, id, PYTHON_DEAD);
	}
	TRY(search.error);
	find_free(&search);
	return keep_blocks(&search);
}
