#include "analyzer/runtimes/object_items.h"
#include "analyzer/runtimes/python/python.h"

static bool is_list(struct reader *reader, const uint64_t *words)
{
	return python_is(reader, words, PYTHON_LIST);
}

/* PyListObject: | references | type | length | items | capacity | */
static const struct object_items layout = {
	.length = 2,
	.items = 3,
	.capacity = 4,
	.is_owner = is_list,
	.unit = "items",
	.dead = "spare capacity of a list",
};

static void match(struct reader *reader, const struct reference *reference)
{
	object_items_match(&layout, reader, reference);
}

static bool measure(struct reader *reader, struct memory_range range, uint64_t owner,
		    struct pattern_extent *ret)
{
	return object_items_measure(&layout, reader, range, owner, ret);
}

static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	object_items_tell(&layout, reader, range, facts);
}

const struct classifier classifier_python_list_items = {
	.name = "PythonListItems",
	.summary = "the items of a list of Python",
	.role = "the items of the list",
	.strength = STRENGTH_MARKED,
	.runtime = &runtime_python,
	.match = match,
	.tell = tell,
	.measure = measure,
};
