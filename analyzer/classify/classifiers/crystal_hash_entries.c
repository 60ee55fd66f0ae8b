#include "analyzer/classify/crystal/buffers.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	crystal_claim_buffers(reader, subject, ROLE_HASH_ENTRIES);
}

static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	crystal_tell_buffer(reader, range, ROLE_HASH_ENTRIES, "the entries", "entries", facts);
}

static bool measure(struct reader *reader, struct memory_range range, uint64_t owner,
		    struct pattern_extent *ret)
{
	return crystal_measure_buffer(reader, range, owner, ROLE_HASH_ENTRIES, ret);
}

const struct classifier classifier_crystal_hash_entries = {
	.name = "CrystalHashEntries",
	.summary = "the entries of a Hash or Set of Crystal",
	.role = "the entries of the Hash",
	.strength = STRENGTH_MARKED,
	.for_crystal = true,
	.inspect = inspect,
	.tell = tell,
	.measure = measure,
};
