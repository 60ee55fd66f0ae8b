#include "analyzer/runtimes/object_items.h"
#include "analyzer/runtimes/ruby/ruby.h"

static bool is_array(struct reader *reader, const uint64_t *words)
{
	return ruby_holds(reader, words, RUBY_ARRAY);
}

/* struct RArray: | flags | class | length | capacity | elements | */
static const struct object_items layout = {
	.length = 2,
	.capacity = 3,
	.items = 4,
	.is_owner = is_array,
	.unit = "elements",
	.dead = "spare capacity of an Array",
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

const struct classifier classifier_ruby_array_elements = {
	.name = "RubyArrayElements",
	.summary = "the elements of an Array of Ruby",
	.role = "the elements of the Array",
	.strength = STRENGTH_MARKED,
	.runtime = &runtime_ruby,
	.match = match,
	.tell = tell,
	.measure = measure,
};
