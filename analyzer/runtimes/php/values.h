/*
 * Values of PHP, Zend/zend_types.h, 7.3 to 8.4. What is counted begins with
 *
 *	u32 references | u32 type, flags and the collector's bits
 *
 * and goes on by type:
 *
 *	string     hash | length | text ... 0 |
 *	array      u32 flags, u32 mask | data | u32 used, u32 count | u32 size, ... | ... |
 *	object     u32 number | class | handlers | table of properties | properties ... |
 *	reference  value, 16 bytes | ... |
 */
#pragma once

#include "analyzer/image/view.h"

enum php_type {
	TYPE_STRING = 6,
	TYPE_ARRAY = 7,
	TYPE_OBJECT = 8,
	TYPE_RESOURCE = 9,
	TYPE_REFERENCE = 10,
	TYPE_LAST = 15, /* of a value */
};

enum {
	PHP_TYPE = 0xf,
	PHP_IMMUTABLE = 1 << 6,
	PHP_INFO_SHIFT = 10, /* of the collector's: an index and a color */
	PHP_STRING_HEAD = 24,
	PHP_BUCKET = 32,
	PHP_VALUE = 16,
	PHP_OBJECT_HEAD = 40,
};

struct php_head {
	uint32_t count, info;
};

struct php_array {
	struct php_head head;
	uint32_t flags, mask;
	uint64_t data;
	uint32_t used, count, size, position;
	uint64_t next, destructor;
};

struct php_object {
	struct php_head head;
	uint32_t number, flags;
	uint64_t class_entry, handlers, table;
};

static inline enum php_type php_type(const struct php_head *head)
{
	return (enum php_type)(head->info & PHP_TYPE);
}

/* Find the start and size of the array's data: indices precede it. False: it has none. */
bool php_array_data(const struct php_array *array, uint64_t *ret_start, uint64_t *ret_size);

/* Bytes of an element of the array, by the size of the block that has its data. */
unsigned int php_array_unit(const struct php_array *array, uint64_t block_size);

/* True if it has no keys except the positions of its elements. */
bool php_array_is_packed(const struct php_array *array);

/* True if the members of an array agree with each other. */
bool php_array_is_valid(const struct php_array *array);

/* Copy a string, of which all is printable or not ASCII, up to a zero. */
bool php_read_text(struct view *view, uint64_t string, char *ret, size_t size);
