/*
 * CPython.
 *
 * Include/object.h and cpython/object.h, 3.8 to 3.13: an object begins with its count of references
 * and its type; a type's flags say what it inherits.
 */
#include "analyzer/runtimes/object_items.h"
#include "analyzer/runtimes/python/blocks.h"
#include "analyzer/runtimes/python/objects.h"
#include "analyzer/runtimes/python/traces.h"
#include "analyzer/runtimes/python/values.h"

/* PyTypeObject's tp_flags: the types of ints, lists, dicts and types, and of what inherits them. */
enum { FLAGS_OFFSET = 168, WORD = 8 };
static const uint64_t INT_FLAG = 1 << 24, LIST_FLAG = 1 << 25, DICT_FLAG = 1 << 29;
static const uint64_t TYPE_FLAG = UINT64_C(1) << 31;

static bool has_flag(struct reader *reader, uint64_t type, uint64_t flag)
{
	uint64_t flags;

	return reader_word(reader, type + FLAGS_OFFSET, &flags) && (flags & flag);
}

/* True if an object that begins with these words has a type with that flag. */
static bool is_of_type(struct reader *reader, const uint64_t *words, uint64_t flag)
{
	uint64_t type = words[1], type_of_type;

	return words[0] != 0 && type % WORD == 0 &&
	       reader_word(reader, type + WORD, &type_of_type) && type_of_type % WORD == 0 &&
	       has_flag(reader, type, flag) && has_flag(reader, type_of_type, TYPE_FLAG);
}

/*
 * An int, up to 3.14:
 *
 *	u64 references, type *, u64 size, u32 digits[] of 30 bits each
 *
 * size is the number of digits, from 3.12 on shifted left by 3 beside the sign. What follows a
 * single digit means nothing.
 */
enum {
	DIGIT = 30,
	DIGITS = 24, /* their offset */
};

static const uint64_t DIGIT_MASK = (UINT64_C(1) << DIGIT) - 1;

static void decode_digit(const uint64_t *words, size_t count, uint64_t *ret)
{
	for (size_t i = 0; i < count; i++)
		ret[i] = words[i] & DIGIT_MASK;
}

static void decode_digits(const uint64_t *words, size_t count, uint64_t *ret)
{
	for (size_t i = 0; i < count; i++)
		ret[i] = (words[i] & DIGIT_MASK) | (words[i] >> 32 & DIGIT_MASK) << DIGIT;
}

static bool check_int(const struct image *image, uint64_t place, uint64_t address)
{
	struct {
		uint64_t references, type, size;
	} object;
	uint64_t digits = address >> DIGIT ? 2 : 1, flags;

	/* The first word of a freed int is a link of a list. */
	return place >= DIGITS && image_read(image, place - DIGITS, &object, sizeof(object)) &&
	       object.references > 0 && object.references <= UINT32_MAX &&
	       (object.size == digits || (object.size >> 3 == digits && object.size % 4 == 0)) &&
	       object.type % WORD == 0 &&
	       image_read_u64(image, object.type + FLAGS_OFFSET, &flags) && (flags & INT_FLAG);
}

static const struct integer_encoding integer = {
	.name = "Python int",
	.decode = { decode_digit, decode_digits },
	.check = check_int,
};

/*
 * The size of a pool of obmalloc: struct pool_header of Objects/obmalloc.c, the same from 3.3 to
 * 3.13. A pool ends behind the largest offset of a block and one block.
 */
static uint64_t measure_pool(const struct image *image, uint64_t address)
{
	enum { MOST_BYTES = 16 << 10, SIZE_CLASSES = 64, HEADER = 48 };
	struct {
		uint64_t count, free, next, previous;
		uint32_t arena, size_class, next_offset, last_offset;
	} pool;
	uint64_t size;

	if (!image_read(image, address, &pool, sizeof(pool)))
		return 0;
	size = 16 * (UINT64_C(1) + pool.size_class);
	return pool.size_class < SIZE_CLASSES && (uint32_t)pool.count <= MOST_BYTES / 16 &&
			       (pool.free == 0 || pool.free - address < MOST_BYTES) &&
			       pool.next_offset >= HEADER &&
			       pool.next_offset <= MOST_BYTES + size &&
			       pool.last_offset + size <= MOST_BYTES &&
			       pool.last_offset + 2 * size > 4096
		       ? pool.last_offset + size
		       : 0;
}

static const struct object_pages pages = {
	.name = "Python's objects",
	.alignment = { 16 << 10, 4 << 10 },
	.measure = measure_pool,
};

const struct runtime runtime_python = {
	.name = "python",
	.modules = "python|libpython|=Py_Initialize",
	.space_size = sizeof(struct python),
	.is_certain = true,
	.is_counted = true,
	.counts_words = true,
	.integer = &integer,
	.pages = &pages,
	.noting = &python_noting,
	FILL_SLOTS(PYTHON_SLOTS),
	.calls = &(const struct runtime_calls){ FILL_SLOTS(PYTHON_CALL_SLOTS) },
	.links = &(const struct runtime_links){ FILL_SLOTS(PYTHON_LINK_SLOTS),
						.steps = python_steps },
};

static bool read_list(struct reader *reader, struct memory_range range, const uint64_t *words,
		      struct item_contents *ret)
{
	return object_items_fit(reader, range, words[2], words[4], ret) &&
	       is_of_type(reader, words, LIST_FLAG);
}

/*
 * CPython 3.11 to 3.13, Include/internal/pycore_dict.h: the keys of a dict are
 *
 *	| references | powers of sizes, kind, version | free | entries |
 *	| indices ... | entries in order ... | free ones |
 *
 * The second byte of the powers is that of the indices' size in bytes. Entries of kind 0 also have
 * a hash.
 */
static bool read_dict(struct reader *reader, struct memory_range range, const uint64_t *words,
		      struct item_contents *ret)
{
	enum { KEYS_WORDS = 4, HEADER = 32, ENTRY = 16, GENERAL_ENTRY = 24, MOST_POWER = 40 };
	uint64_t keys[KEYS_WORDS], size = range_size(range), power, kind, entry, start;

	if (!reader_words(reader, range.start, KEYS_WORDS, keys))
		return false;
	power = keys[1] >> 8 & UINT8_MAX;
	kind = keys[1] >> 16 & UINT8_MAX;
	if (keys[0] == 0 || power > MOST_POWER || kind > 2 || keys[2] > size || keys[3] > size)
		return false;
	entry = kind == 0 ? GENERAL_ENTRY : ENTRY;
	start = HEADER + (UINT64_C(1) << power);
	ret->length = words[2];
	ret->capacity = keys[2] + keys[3];
	ret->asked = start + entry * ret->capacity;
	ret->live_start = 0;
	ret->live_end = start + entry * keys[3];
	return ret->capacity <= size / ENTRY && reader_fits(reader, range, ret->asked) &&
	       ret->length <= ret->capacity && is_of_type(reader, words, DICT_FLAG);
}

/*
 * CPython 2.7 to 3.14, Include/setobject.h: the table of a set has mask + 1 entries of two words, a
 * power of two, of which fill were ever used. A small table is in the object itself.
 */
static bool read_set(struct reader *reader, struct memory_range range, const uint64_t *words,
		     struct item_contents *ret)
{
	enum { FILL = 2, USED, MASK, ENTRY = 16 };
	static const uint64_t READY_FLAG = 1 << 12;
	uint64_t entries = words[MASK] + 1;

	*ret = (struct item_contents){
		.asked = ENTRY * entries,
		.live_end = ENTRY * entries,
		.length = words[USED],
		.capacity = entries,
	};
	return entries > 1 && (entries & words[MASK]) == 0 &&
	       entries <= range_size(range) / ENTRY && words[USED] <= words[FILL] &&
	       words[FILL] <= words[MASK] && reader_fits(reader, range, ENTRY * entries) &&
	       is_of_type(reader, words, READY_FLAG);
}

enum { LIST, DICT, SET };

static const struct item_layout layouts[] = {
	/* PyListObject: | references | type | length | items | capacity | */
	[LIST] = { 5, 3, read_list, "items", "spare capacity of a list" },
	/* PyDictObject: | references | type | length | version | keys | values | */
	[DICT] = { 5, 4, read_dict, "entries", "spare capacity of a dict" },
	/* PySetObject: | references | type | fill | used | mask | table | */
	[SET] = { 6, 5, read_set, "entries", NULL },
};

/* True if an object may begin with these words: an address in a heap is no reference count. */
static bool may_be_head(const struct reader *reader, const uint64_t *words)
{
	return words[0] != 0 && words[1] % WORD == 0 &&
	       (words[0] <= UINT32_MAX || !heap_bounds_hold(&reader->bounds, words[0]));
}

/* True if a heap has room for that many words. */
static bool may_have_words(const struct reader *reader, uint64_t count)
{
	return count <= reader->bounds.size[0] / WORD || count <= reader->bounds.size[1] / WORD;
}

static bool may_be_list(const struct reader *reader, const struct reference *reference)
{
	uint64_t words[5];

	return reference_words(reference, -3, 5, words) && words[2] <= words[4] &&
	       may_have_words(reader, words[4]) && may_be_head(reader, words);
}

static bool may_be_dict(const struct reader *reader, const struct reference *reference)
{
	uint64_t words[5];

	return reference_words(reference, -4, 5, words) && may_have_words(reader, words[2]) &&
	       may_be_head(reader, words);
}

static bool may_be_set(const struct reader *reader, const struct reference *reference)
{
	uint64_t words[6];

	return reference_words(reference, -5, 6, words) && words[3] <= words[2] &&
	       words[2] <= words[4] && (words[4] & (words[4] + 1)) == 0 &&
	       may_be_head(reader, words);
}

DEFINE_SUSPECT(suspect_list, may_be_list)
DEFINE_SUSPECT(suspect_dict, may_be_dict)
DEFINE_SUSPECT(suspect_set, may_be_set)

static void match(struct reader *reader, const struct reference *reference)
{
	object_items_match(&layouts[reader_kind(reader)], reader, reference);
}

static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	object_items_tell(&layouts[reader_kind(reader)], reader, range, facts);
}

#define PYTHON(...)                                                                            \
	.runtime = &runtime_python, .strength = STRENGTH_MARKED, .match = match, .tell = tell, \
	.measures = true, __VA_ARGS__

CLASSIFIER(python_dict_entries, "PythonDictEntries",
	   "the keys, and mostly the values, of a dict of Python", "the entries of the dict",
	   PYTHON(.kind = DICT, .suspect = suspect_dict));
CLASSIFIER(python_list_items, "PythonListItems", "the items of a list of Python",
	   "the items of the list", PYTHON(.kind = LIST, .suspect = suspect_list));
CLASSIFIER(python_set_entries, "PythonSetEntries", "the entries of a set or frozenset of Python",
	   "the entries of the set", PYTHON(.kind = SET, .suspect = suspect_set));

allocation_id python_whole(const struct object_space *space, allocation_id block)
{
	const struct python *python = (const struct python *)space;

	return python->owner_of.count ? python_blocks_owner(python, block) : NO_ALLOCATION;
}

/* The runtime found these before there were patterns, see blocks.c. */
static void inspect(struct reader *reader, const struct subject *subject)
{
	const struct python *python =
		(const struct python *)runtimes_space(reader->runtimes, &runtime_python);
	uint32_t mark = python ? python_number_of(python, subject->id) : 0;
	allocation_id owner;

	if (mark < PYTHON_MARKS ||
	    MIN(mark, PYTHON_VALUES) != PYTHON_MARKS + (uint32_t)reader_kind(reader))
		return;
	owner = python_blocks_owner(python, subject->id);
	reader_claim(reader, subject->id,
		     owner == NO_ALLOCATION ? 0 : allocation_start(reader->index, owner));
}

static void tell_elements(struct reader *reader, struct memory_range range,
			  struct pattern_facts *facts)
{
	if (!python_tell_value(&reader->view, 0, facts->owner, "numpy.ndarray", facts->text,
			       sizeof(facts->text)))
		facts->text[0] = '\0';
}

#define PYTHON_BLOCKS(mark, ...)                                                     \
	.runtime = &runtime_python, .strength = STRENGTH_MARKED, .inspect = inspect, \
	.kind = (mark)-PYTHON_MARKS, .least_size = 8, .pointerless = true, __VA_ARGS__

CLASSIFIER(python_attributes, "PythonAttributes",
	   "the values of the attributes of an object of Python", "the attributes of the object",
	   PYTHON_BLOCKS(PYTHON_VALUES));
CLASSIFIER(python_deque_block, "PythonDequeBlock", "items of a deque of Python",
	   "items of the deque", PYTHON_BLOCKS(PYTHON_BLOCK));
CLASSIFIER(python_free_object, "PythonFreeObject",
	   "a freed object of Python, or a part of one, kept for the next",
	   "free memory that Python keeps for objects", PYTHON_BLOCKS(PYTHON_DEAD));
CLASSIFIER(numpy_data, "NumpyData", "the elements of an array of numpy",
	   "the elements of the array", PYTHON_BLOCKS(PYTHON_ELEMENTS, .tell = tell_elements));
CLASSIFIER(python_buffer, "PythonBuffer", "the bytes of a bytearray, an array or a file of Python",
	   "the bytes of the object", PYTHON_BLOCKS(PYTHON_BYTES));
