#include "analyzer/classify/crystal/buffers.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	crystal_claim_buffers(reader, subject, ROLE_ARRAY_ELEMENTS);
}

static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	crystal_tell_buffer(reader, range, ROLE_ARRAY_ELEMENTS, "the elements", "elements", facts);
}

static bool measure(struct reader *reader, struct memory_range range, uint64_t owner,
		    struct pattern_extent *ret)
{
	return crystal_measure_buffer(reader, range, owner, ROLE_ARRAY_ELEMENTS, ret);
}

const struct classifier classifier_crystal_array_buffer = {
	.name = "CrystalArrayBuffer",
	.summary = "the elements of an Array of Crystal",
	.role = "the elements of the Array",
	.strength = STRENGTH_MARKED,
	.for_crystal = true,
	.inspect = inspect,
	.tell = tell,
	.measure = measure,
};
