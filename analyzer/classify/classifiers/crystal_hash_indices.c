#include "analyzer/classify/crystal/buffers.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	crystal_claim_buffers(reader, subject, ROLE_HASH_INDICES);
}

static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	crystal_tell_buffer(reader, range, ROLE_HASH_INDICES, "the index", "places", facts);
}

const struct classifier classifier_crystal_hash_indices = {
	.name = "CrystalHashIndices",
	.summary = "the index of a Hash or Set of Crystal",
	.role = "the index of the Hash",
	.strength = STRENGTH_MARKED,
	.for_crystal = true,
	.inspect = inspect,
	.tell = tell,
};
