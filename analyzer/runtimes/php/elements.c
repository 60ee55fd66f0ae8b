/*
 * Elements of arrays: what stands behind the last one, or where one was removed, is left from
 * before, and refers to nothing.
 */
#include "analyzer/runtimes/php/values.h"

#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/runtimes/php/space.h"

allocation_id php_elements_of(const struct allocation_index *index, const struct php_array *array)
{
	uint64_t start, size;
	allocation_id id;

	if (!php_array_data(array, &start, &size))
		return NO_ALLOCATION;
	id = allocation_find(index, start);
	return id != NO_ALLOCATION && allocation_start(index, id) == start &&
			       size <= allocation_size(index, id)
		       ? id
		       : NO_ALLOCATION;
}

DEFINE_COMPARE(compare_elements, struct php_elements, ASCENDING(id), ASCENDING(array))

struct error *php_find_elements(struct php *php)
{
	const struct allocation_index *index = php->space.index;
	struct view view = { php->space.image };
	size_t hint = 0;

	for (size_t i = 0; i < allocation_count(php->space.index); i++) {
		struct php_elements elements;
		struct php_array array;

		if (php_class_at(php, (allocation_id)i) != PHP_ARRAY)
			continue;
		elements.array = allocation_range_near(index, (allocation_id)i, &hint).start;
		if (!view_read(&view, elements.array, &array, sizeof(array)) ||
		    array.count == array.size)
			continue;
		elements.id = php_elements_of(index, &array);
		if (elements.id != NO_ALLOCATION)
			TRY(array_append(&php->elements, elements));
	}
	array_sort(&php->elements, compare_elements);
	return NULL;
}

bool php_is_stale_element(const struct php *php, allocation_id id, uint64_t place)
{
	const struct image *image = php->space.image;
	const struct php_elements *list = php->elements.items;
	size_t above = list ? LIST_ABOVE(list, php->elements.count, id, id) : 0;
	struct php_array array;
	uint64_t unit, number;
	uint8_t type;

	if (above == 0 || list[above - 1].id != id ||
	    !image_read(image, list[above - 1].array, &array, sizeof(array)) || place < array.data)
		return false;
	unit = php_array_unit(&array, allocation_size(php->space.index, id));
	number = (place - array.data) / unit;
	return number >= array.used ||
	       (image_read(image, array.data + unit * number + sizeof(uint64_t), &type, 1) &&
		type == 0);
}
