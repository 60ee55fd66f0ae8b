#include "analyzer/classify/ecl.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	ecl_claim_contents(reader, subject, ECL_HASH_TABLE);
}

const struct classifier classifier_ecl_hash_entries = {
	.name = "EclHashEntries",
	.summary = "the entries of a hash table of ECL",
	.role = "the entries of the hash table of ECL",
	.strength = STRENGTH_BUFFER,
	.for_library = "libecl.",
	.inspect = inspect,
};
