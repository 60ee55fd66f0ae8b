#include "analyzer/runtimes/python/python.h"

#define PYTHON_TYPE (UINT64_C(1) << 31)

/* PyTypeObject's tp_flags. */
enum { FLAGS_OFFSET = 168, WORD = 8 };

static bool has_flag(struct reader *reader, uint64_t type, uint64_t flag)
{
	uint64_t flags;

	return reader_word(reader, type + FLAGS_OFFSET, &flags) && (flags & flag);
}

bool python_is(struct reader *reader, const uint64_t *words, uint64_t flag)
{
	uint64_t type = words[1], type_of_type;

	return words[0] != 0 && type % WORD == 0 &&
	       reader_word(reader, type + WORD, &type_of_type) && type_of_type % WORD == 0 &&
	       has_flag(reader, type, flag) && has_flag(reader, type_of_type, PYTHON_TYPE);
}

/*
 * An int, up to 3.14:
 *
 *	u64 references, type *, u64 size, u32 digits[] of 30 bits each
 *
 * size is the number of digits, from 3.12 on shifted left by 3 beside the sign. Of one digit, what
 * is behind it means nothing.
 */
enum {
	DIGIT = 30,
	DIGITS = 24,	    /* their offset */
	INT_FLAG = 1 << 24, /* of its type's */
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

	/* Where it was freed, the first word is a link of a list. */
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
 * A pool of obmalloc: struct pool_header of Objects/obmalloc.c, the same from 3.3 to 3.13. Its
 * largest offset of a block, and the size of one, make up its own size.
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
	.modules = "python|libpython",
	.integer = &integer,
	.pages = &pages,
};
