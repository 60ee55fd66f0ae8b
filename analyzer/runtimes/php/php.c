/*
 * PHP, 7.3 to 8.4: objects, arrays, strings and references of the Zend engine.
 */
#include "analyzer/classify/classifier.h"
#include "analyzer/runtimes/php/objects.h"
#include "analyzer/runtimes/php/space.h"
#include "analyzer/runtimes/php/values.h"

const struct runtime runtime_php = {
	.name = "php",
	.modules = "php|libphp|mod_php|=zend_startup",
	.space_size = sizeof(struct php),
	.is_certain = true,
	.is_counted = true,
	.counts_words = true,
	FILL_SLOTS(PHP_SLOTS),
	.calls = &(const struct runtime_calls){ FILL_SLOTS(PHP_CALL_SLOTS) },
	.links = &(const struct runtime_links){ FILL_SLOTS(PHP_LINK_SLOTS), .steps = php_steps,
						.read_value = php_read_value_of },
};

static void inspect_elements(struct reader *reader, const struct subject *subject)
{
	const struct php *php = (const struct php *)runtimes_space(reader->runtimes, &runtime_php);
	struct php_array array;
	allocation_id id;

	if (!php || php_class_at(php, subject->id) != PHP_ARRAY)
		return;
	memcpy(&array, subject->bytes, sizeof(array));
	id = php_elements_of(reader->index, &array);
	if (id != NO_ALLOCATION)
		reader_claim(reader, id, subject->range.start);
}

static void tell_elements(struct reader *reader, struct memory_range range,
			  struct pattern_facts *facts)
{
	struct php_array array;
	uint64_t start, size;

	if (!image_read(reader->image, facts->owner, &array, sizeof(array)) ||
	    !php_array_data(&array, &start, &size) || start != range.start)
		return;
	size = array.data - start +
	       (uint64_t)array.size * php_array_unit(&array, range.end - range.start);
	facts->unit = "elements";
	facts->length = array.count;
	facts->has_capacity = true;
	facts->capacity = array.size;
	facts->dead = "spare capacity of an array";
	facts->live_start = 0;
	facts->live_end =
		array.data - start + (size - (array.data - start)) / array.size * array.used;
	facts->is_measured = true;
	facts->asked = size;
}

CLASSIFIER(php_array_elements, "PhpArrayElements",
	   "the elements of an array of PHP, with the indices of its keys",
	   "the elements of the array", .strength = STRENGTH_MARKED, .runtime = &runtime_php,
	   .inspect = inspect_elements, .least_size = sizeof(struct php_array),
	   .tell = tell_elements, .measures = true);
