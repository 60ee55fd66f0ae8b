#include "analyzer/runtimes/php/values.h"

enum {
	PACKED = 1 << 2,
	UNINITIALIZED = 1 << 3,
	LEAST_SIZE = 2,
	INDEX = 4, /* bytes */
};

static const uint32_t NO_INDICES = -2; /* the mask of what needs none */

bool php_array_is_valid(const struct php_array *array)
{
	return array->count <= array->used && array->used <= array->size &&
	       array->size >= LEAST_SIZE && (array->size & (array->size - 1)) == 0 &&
	       (array->mask == NO_INDICES || array->mask == (uint32_t) - (2 * array->size)) &&
	       array->data && array->data % 8 == 0 &&
	       (array->used == 0 || !(array->flags & UNINITIALIZED));
}

/* Lists have values alone from 8.2 on, and buckets before: the smaller counts. */
bool php_array_data(const struct php_array *array, uint64_t *ret_start, uint64_t *ret_size)
{
	uint64_t indices = (uint64_t)INDEX * -(uint64_t)(int64_t)(int32_t)array->mask;

	if (array->flags & UNINITIALIZED || !php_array_is_valid(array) || array->data < indices)
		return false;
	*ret_start = array->data - indices;
	*ret_size =
		indices + (uint64_t)array->size * (array->flags & PACKED ? PHP_VALUE : PHP_BUCKET);
	return true;
}

unsigned int php_array_unit(const struct php_array *array, uint64_t block_size)
{
	uint64_t start, size;

	return php_array_data(array, &start, &size) && array->flags & PACKED &&
			       block_size < array->data - start + (uint64_t)array->size * PHP_BUCKET
		       ? PHP_VALUE
		       : PHP_BUCKET;
}

bool php_array_is_packed(const struct php_array *array)
{
	return array->flags & PACKED;
}

bool php_read_text(struct view *view, uint64_t string, char *ret, size_t size)
{
	struct {
		struct php_head head;
		uint64_t hash, length;
	} text;
	size_t length;

	if (string % 8 != 0 || !view_read(view, string, &text, sizeof(text)) ||
	    php_type(&text.head) != TYPE_STRING)
		return false;
	length = text.length < size ? (size_t)text.length : size - 1;
	if (!view_read(view, string + PHP_STRING_HEAD, ret, length))
		return false;
	ret[length] = '\0';
	for (const char *at = ret; *at; at++)
		if (*at > 0 && (*at < ' ' || *at == '\x7f'))
			return false;
	return ret[0] != '\0';
}
