/*
 * Objects of ECL (Embeddable Common Lisp). All but conses begin with a byte, the number of their
 * type. The numbers depend on how ECL was built: these are those of 20 to 24 with complex floats
 *and Unicode, the default. Of other builds, only numbers and conses are recognised, because every
 * object is checked for what it must refer to. The layouts are those of ecl/object.h.
 *
 *	cons      | value | value |
 *	bignum    | 4 | room, length | digits |
 *	ratio     | 5 | denominator | numerator |
 *	floats    | 6, single |   | 7 | double |
 *	symbol    | 13 | value | function | properties | name | C name | package
 *	package   | 14 | name | nicknames ...
 *	hash      | 15 | entries | lock | test | hash | count | room ...
 *	array     | 16, elements' type | other | length | dimensions | elements
 *	vector    | 17, elements' type | other | room | length | elements
 *	string    | 18 |              the same
 *	base      | 19 |              the same
 *	functions | 25 to 29 | name or code ...
 *	instance  | 30 | length | class | entry | description | slots
 *
 * A value is an object's address, which ends in 00, that of a cons and 1, or a character or number,
 * which ends in 10 or 11. The empty list is 1.
 */
#include "analyzer/runtimes/lisp.h"

enum ecl_kind {
	ECL_NONE,
	ECL_CONS,
	ECL_BIGNUM,
	ECL_RATIO,
	ECL_SINGLE_FLOAT,
	ECL_DOUBLE_FLOAT,
	ECL_SYMBOL,
	ECL_PACKAGE,
	ECL_HASH_TABLE,
	ECL_ARRAY,
	ECL_VECTOR,
	ECL_STRING,
	ECL_FUNCTION,
	ECL_INSTANCE,
};

enum { WORD = 8, CONS_SIZE = 16, ENTRY_SIZE = 16, EMPTY_LIST = 1 };

enum ecl_type {
	TYPE_BIGNUM = 4,
	TYPE_RATIO,
	TYPE_SINGLE_FLOAT,
	TYPE_DOUBLE_FLOAT,
	TYPE_SYMBOL = 13,
	TYPE_PACKAGE,
	TYPE_HASH_TABLE,
	TYPE_ARRAY,
	TYPE_VECTOR,
	TYPE_STRING,
	TYPE_BASE_STRING,
	TYPE_BYTECODES = 25,
	TYPE_BYTECODE_CLOSURE,
	TYPE_FUNCTION,
	TYPE_FIXED_FUNCTION,
	TYPE_CLOSURE,
	TYPE_INSTANCE,
};

static bool reads_type(struct reader *reader, uint64_t address, uint8_t *ret)
{
	uint64_t word;

	if (!lisp_is_address(reader, address) || !reader_word(reader, address, &word))
		return false;
	*ret = (uint8_t)word;
	return true;
}

static bool is_cons_at(struct reader *reader, uint64_t address)
{
	struct memory_range range;

	/* Conses of the library are constants. */
	if (reader_start(reader, address, &range) == NO_ALLOCATION)
		return lisp_is_address(reader, address);
	return range_size(range) == CONS_SIZE;
}

static bool is_value(struct reader *reader, uint64_t word)
{
	uint8_t type;

	switch (word & 3) {
	case 0:
		return reads_type(reader, word, &type) && type >= TYPE_BIGNUM;
	case 1:
		return word == EMPTY_LIST || is_cons_at(reader, word - 1);
	default:
		return true;
	}
}

static bool is_string_at(struct reader *reader, uint64_t address)
{
	uint8_t type;

	return address % WORD == 0 && reads_type(reader, address, &type) &&
	       (type == TYPE_STRING || type == TYPE_BASE_STRING);
}

static bool is_of_type(struct reader *reader, uint64_t address, enum ecl_type wanted)
{
	uint8_t type;

	return address % WORD == 0 && reads_type(reader, address, &type) && type == wanted;
}

/* A small number, or a large one. */
static bool is_integer(struct reader *reader, uint64_t word)
{
	return (word & 3) == 3 || is_of_type(reader, word, TYPE_BIGNUM);
}

static bool is_bignum(struct reader *reader, const struct subject *subject)
{
	uint64_t digits = lisp_word(subject, 2), sizes = lisp_word(subject, 1);
	uint64_t room = (uint32_t)sizes, size = range_size(subject->range);
	struct memory_range range;

	/* Its digits follow, or are somewhere else. */
	if (digits == subject->range.start + 3 * WORD)
		return room < size && lisp_fits(subject, (3 + room) * WORD);
	return lisp_fits(subject, 3 * WORD) &&
	       reader_start(reader, digits, &range) != NO_ALLOCATION &&
	       room <= range_size(range) / WORD;
}

/* The bytes that count elements of a vector of that type take; 0: it can have no such. */
static uint64_t bytes_of(const struct subject *subject, enum ecl_type type, uint64_t count)
{
	/* Sizes of elements: objects, floats, integers from 8 bits, characters and bits. */
	static const uint8_t sizes[] = { 8, 4, 8, 16, 8, 16, 32, 1, 8, 8,
					 1, 1, 2, 2,  4, 4,  8,	 8, 4, 1 };
	uint8_t element = subject->bytes[2];

	if (count > UINT32_MAX)
		return 0;
	if (type == TYPE_STRING)
		return 4 * count;
	if (type == TYPE_BASE_STRING)
		return count + 1;
	if (element >= sizeof(sizes))
		return 0;
	return sizes[element] * count;
}

/* The word of the elements' address. */
enum { ELEMENTS = 4 };

/*
 * True if an array of any kind has room for its elements. An array of no elements may have any
 * address, and bits take less than is required here.
 */
static bool has_elements(struct reader *reader, const struct subject *subject, enum ecl_type type)
{
	uint64_t elements = lisp_word(subject, ELEMENTS);
	uint64_t count = lisp_word(subject, 2);
	uint64_t bytes = bytes_of(subject, type, count);
	struct memory_range range = subject->range;

	if (count == 0)
		return true;
	if (bytes == 0)
		return false;
	if (elements - range.start < range_size(range))
		return range.end - elements >= bytes - (bytes == count + 1);
	/* A displaced array may begin anywhere in another. */
	if (lisp_word(subject, 1) != EMPTY_LIST)
		return image_find(reader->image, elements) != NULL;
	if (reader_start(reader, elements, &range) == NO_ALLOCATION)
		return !heap_region_find(reader->index, elements) &&
		       image_find(reader->image, elements) != NULL;
	return range_size(range) >= bytes - (bytes == count + 1);
}

static bool is_vector(struct reader *reader, const struct subject *subject, enum ecl_type type)
{
	enum { LEAST = 40 };

	return subject->size >= LEAST && is_value(reader, lisp_word(subject, 1)) &&
	       lisp_word(subject, 3) <= lisp_word(subject, 2) &&
	       has_elements(reader, subject, type);
}

static bool is_array(struct reader *reader, const struct subject *subject)
{
	enum { RANK = 41, MOST_RANK = 64 };
	uint64_t rank = subject->size > RANK ? subject->bytes[RANK] : 1;
	uint64_t dimensions = lisp_word(subject, 3);
	struct memory_range range;

	return rank != 1 && rank <= MOST_RANK && lisp_fits(subject, 6 * WORD) &&
	       is_value(reader, lisp_word(subject, 1)) &&
	       (rank == 0 || (reader_start(reader, dimensions, &range) != NO_ALLOCATION &&
			      range_size(range) >= rank * WORD)) &&
	       has_elements(reader, subject, TYPE_ARRAY);
}

static bool is_symbol(struct reader *reader, const struct subject *subject)
{
	return range_size(subject->range) >= 7 * WORD && lisp_fits(subject, 8 * WORD) &&
	       is_string_at(reader, lisp_word(subject, 4)) &&
	       is_value(reader, lisp_word(subject, 6));
}

static bool is_package(struct reader *reader, const struct subject *subject)
{
	return lisp_fits(subject, 10 * WORD) && is_string_at(reader, lisp_word(subject, 1)) &&
	       is_of_type(reader, lisp_word(subject, 8), TYPE_HASH_TABLE) &&
	       is_of_type(reader, lisp_word(subject, 9), TYPE_HASH_TABLE);
}

static bool is_hash_table(struct reader *reader, const struct subject *subject)
{
	enum { WORDS = 16 };
	uint64_t room = lisp_word(subject, 6);
	struct memory_range range;

	return lisp_fits(subject, 17 * WORD) && subject->size >= WORDS * WORD &&
	       lisp_word(subject, 5) <= room &&
	       reader_start(reader, lisp_word(subject, 1), &range) != NO_ALLOCATION &&
	       room <= range_size(range) / ENTRY_SIZE;
}

static bool is_function(struct reader *reader, const struct subject *subject, enum ecl_type type)
{
	/* The address of its code. */
	uint64_t entry = lisp_word(subject, 3);
	uint64_t first = lisp_word(subject, 1);
	const struct region *region = image_find(reader->image, entry);

	if (!region || !(region->rights & RIGHT_EXECUTE))
		return false;
	if (type == TYPE_BYTECODE_CLOSURE)
		return is_of_type(reader, first, TYPE_BYTECODES);
	return is_value(reader, first) && is_value(reader, lisp_word(subject, 2));
}

static bool is_instance(struct reader *reader, const struct subject *subject)
{
	uint64_t length = lisp_word(subject, 1);
	struct memory_range range;

	if (!lisp_fits(subject, 8 * WORD) ||
	    !is_of_type(reader, lisp_word(subject, 2), TYPE_INSTANCE))
		return false;
	return length == 0 ||
	       (reader_start(reader, lisp_word(subject, 5), &range) != NO_ALLOCATION &&
		length <= range_size(range) / WORD);
}

static bool is_cons(struct reader *reader, const struct subject *subject)
{
	return range_size(subject->range) == CONS_SIZE && subject->size == CONS_SIZE &&
	       is_value(reader, lisp_word(subject, 0)) && is_value(reader, lisp_word(subject, 1));
}

/* True if the rest of an object of that type fits the kind. */
static bool agrees(struct reader *reader, const struct subject *subject, enum ecl_kind kind,
		   enum ecl_type type)
{
	uint64_t size = range_size(subject->range);

	switch (kind) {
	case ECL_CONS:
		return is_cons(reader, subject);
	case ECL_BIGNUM:
		return is_bignum(reader, subject);
	case ECL_RATIO:
		return lisp_fits(subject, 3 * WORD) && is_integer(reader, lisp_word(subject, 1)) &&
		       is_integer(reader, lisp_word(subject, 2));
	case ECL_SINGLE_FLOAT:
	case ECL_DOUBLE_FLOAT:
		return size == 2 * WORD;
	case ECL_SYMBOL:
		return is_symbol(reader, subject);
	case ECL_PACKAGE:
		return is_package(reader, subject);
	case ECL_HASH_TABLE:
		return is_hash_table(reader, subject);
	case ECL_ARRAY:
		return is_array(reader, subject);
	case ECL_VECTOR:
	case ECL_STRING:
		return is_vector(reader, subject, type);
	case ECL_FUNCTION:
		return is_function(reader, subject, type);
	case ECL_INSTANCE:
		return is_instance(reader, subject);
	case ECL_NONE:
		break;
	}
	return false;
}

/* The kind of objects of that type. */
static enum ecl_kind kind_of(uint8_t type)
{
	static const uint8_t kinds[] = {
		[TYPE_BIGNUM] = ECL_BIGNUM,
		[TYPE_RATIO] = ECL_RATIO,
		[TYPE_SINGLE_FLOAT] = ECL_SINGLE_FLOAT,
		[TYPE_DOUBLE_FLOAT] = ECL_DOUBLE_FLOAT,
		[TYPE_SYMBOL] = ECL_SYMBOL,
		[TYPE_PACKAGE] = ECL_PACKAGE,
		[TYPE_HASH_TABLE] = ECL_HASH_TABLE,
		[TYPE_ARRAY] = ECL_ARRAY,
		[TYPE_VECTOR] = ECL_VECTOR,
		[TYPE_STRING] = ECL_STRING,
		[TYPE_BASE_STRING] = ECL_STRING,
		[TYPE_BYTECODES] = ECL_FUNCTION,
		[TYPE_BYTECODE_CLOSURE] = ECL_FUNCTION,
		[TYPE_FUNCTION] = ECL_FUNCTION,
		[TYPE_FIXED_FUNCTION] = ECL_FUNCTION,
		[TYPE_CLOSURE] = ECL_FUNCTION,
		[TYPE_INSTANCE] = ECL_INSTANCE,
	};

	return type < sizeof(kinds) ? (enum ecl_kind)kinds[type] : ECL_NONE;
}

/* True if ECL tells the collector that objects of the kind hold no pointers. */
static bool is_plain_kind(enum ecl_kind kind)
{
	return kind == ECL_SINGLE_FLOAT || kind == ECL_DOUBLE_FLOAT;
}

static bool is_of_kind(struct reader *reader, const struct subject *subject, enum ecl_kind kind)
{
	uint8_t type = subject->bytes[0];
	bool plain;

	if (kind != ECL_CONS && kind_of(type) != kind)
		return false;
	if (!lisp_is_object(reader, subject->id))
		return false;
	plain = lisp_is_plain(reader, subject->id);
	/* A bignum with its digits, and a short string, may be either. */
	if (kind != ECL_BIGNUM && kind != ECL_STRING && plain != is_plain_kind(kind))
		return false;
	return agrees(reader, subject, kind, (enum ecl_type)type);
}

static void inspect(struct reader *reader, const struct subject *subject)
{
	if (is_of_kind(reader, subject, (enum ecl_kind)reader_kind(reader)))
		reader_claim(reader, subject->id, 0);
}

static bool holds_elements(struct reader *reader, const struct subject *subject)
{
	return is_of_kind(reader, subject, ECL_ARRAY) || is_of_kind(reader, subject, ECL_VECTOR) ||
	       is_of_kind(reader, subject, ECL_STRING);
}

/* Claim the allocation that holds the contents of the object; arrays are vectors and strings, too.
 */
static void inspect_contents(struct reader *reader, const struct subject *subject)
{
	enum ecl_kind kind = (enum ecl_kind)reader_kind(reader);
	size_t place = kind == ECL_HASH_TABLE ? 1 : kind == ECL_INSTANCE ? 5 : ELEMENTS;
	uint64_t contents = lisp_word(subject, place);
	struct memory_range range;
	allocation_id id;

	if (contents == subject->range.start ||
	    (kind == ECL_ARRAY ? !holds_elements(reader, subject)
			       : !is_of_kind(reader, subject, kind)))
		return;
	id = reader_start(reader, contents, &range);
	if (id != NO_ALLOCATION)
		reader_claim(reader, id, subject->range.start);
}

const struct runtime runtime_ecl = {
	.name = "ecl",
	.modules = "libecl.",
};

#define ECL(inspect_, ...) .runtime = &runtime_ecl, .inspect = (inspect_), __VA_ARGS__

CLASSIFIER(ecl_array, "EclArray", "a multidimensional array of ECL, without its elements",
	   "an array of ECL", ECL(inspect, .kind = ECL_ARRAY, .strength = STRENGTH_MARKED));
CLASSIFIER(ecl_bignum, "EclBignum", "an integer of ECL that is too large for a word",
	   "a large integer of ECL",
	   ECL(inspect, .kind = ECL_BIGNUM, .strength = STRENGTH_RELATED, .pointerless = true));
CLASSIFIER(ecl_cons, "EclCons", "a cons of ECL, as lists are made of", "a cons of ECL",
	   ECL(inspect, .kind = ECL_CONS, .strength = STRENGTH_CHAIN));
CLASSIFIER(ecl_double_float, "EclDoubleFloat", "a real number of ECL, of double precision",
	   "a double float of ECL",
	   ECL(inspect, .kind = ECL_DOUBLE_FLOAT, .strength = STRENGTH_CHAIN, .pointerless = true));
CLASSIFIER(ecl_elements, "EclElements",
	   "the elements of a vector or array of ECL, or the characters of a string",
	   "the elements of the vector or string of ECL",
	   ECL(inspect_contents, .kind = ECL_ARRAY, .strength = STRENGTH_BUFFER));
CLASSIFIER(ecl_function, "EclFunction", "a function or closure of ECL", "a function of ECL",
	   ECL(inspect, .kind = ECL_FUNCTION, .strength = STRENGTH_MARKED));
CLASSIFIER(ecl_hash_entries, "EclHashEntries", "the entries of a hash table of ECL",
	   "the entries of the hash table of ECL",
	   ECL(inspect_contents, .kind = ECL_HASH_TABLE, .strength = STRENGTH_BUFFER));
CLASSIFIER(ecl_hash_table, "EclHashTable", "a hash table of ECL, without its entries",
	   "a hash table of ECL",
	   ECL(inspect, .kind = ECL_HASH_TABLE, .strength = STRENGTH_MARKED));
CLASSIFIER(ecl_instance, "EclInstance",
	   "an instance of a class or structure of ECL, without its slots", "an instance of ECL",
	   ECL(inspect, .kind = ECL_INSTANCE, .strength = STRENGTH_MARKED));
CLASSIFIER(ecl_package, "EclPackage", "a package of ECL", "a package of ECL",
	   ECL(inspect, .kind = ECL_PACKAGE, .strength = STRENGTH_MARKED));
CLASSIFIER(ecl_ratio, "EclRatio", "a fraction of ECL", "a fraction of ECL",
	   ECL(inspect, .kind = ECL_RATIO, .strength = STRENGTH_RELATED));
CLASSIFIER(ecl_single_float, "EclSingleFloat", "a real number of ECL, of single precision",
	   "a single float of ECL",
	   ECL(inspect, .kind = ECL_SINGLE_FLOAT, .strength = STRENGTH_CHAIN, .pointerless = true));
CLASSIFIER(ecl_slots, "EclSlots", "the slots of an instance of a class or structure of ECL",
	   "the slots of the instance of ECL",
	   ECL(inspect_contents, .kind = ECL_INSTANCE, .strength = STRENGTH_BUFFER));
CLASSIFIER(ecl_string, "EclString", "a string of ECL; if it is short, with its characters",
	   "a string of ECL",
	   ECL(inspect, .kind = ECL_STRING, .strength = STRENGTH_MARKED, .pointerless = true));
CLASSIFIER(ecl_symbol, "EclSymbol", "a symbol of ECL", "a symbol of ECL",
	   ECL(inspect, .kind = ECL_SYMBOL, .strength = STRENGTH_MARKED));
CLASSIFIER(ecl_vector, "EclVector", "a vector of ECL, without its elements", "a vector of ECL",
	   ECL(inspect, .kind = ECL_VECTOR, .strength = STRENGTH_MARKED));
