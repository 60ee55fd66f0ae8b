#include "analyzer/classify/ecl.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	ecl_claim(reader, subject, ECL_HASH_TABLE);
}

const struct classifier classifier_ecl_hash_table = {
	.name = "EclHashTable",
	.summary = "a hash table of ECL, without its entries",
	.role = "a hash table of ECL",
	.strength = STRENGTH_MARKED,
	.for_library = "libecl.",
	.inspect = inspect,
};
