#include "analyzer/classify/ecl.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	ecl_claim(reader, subject, ECL_VECTOR);
}

const struct classifier classifier_ecl_vector = {
	.name = "EclVector",
	.summary = "a vector of ECL, without its elements",
	.role = "a vector of ECL",
	.strength = STRENGTH_MARKED,
	.for_library = "libecl.",
	.inspect = inspect,
};
