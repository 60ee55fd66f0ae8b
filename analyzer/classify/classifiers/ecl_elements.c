#include "analyzer/classify/ecl.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	ecl_claim_contents(reader, subject, ECL_ARRAY);
	ecl_claim_contents(reader, subject, ECL_VECTOR);
	ecl_claim_contents(reader, subject, ECL_STRING);
}

const struct classifier classifier_ecl_elements = {
	.name = "EclElements",
	.summary = "the elements of a vector or array of ECL, or the characters of a string",
	.role = "the elements of the vector or string of ECL",
	.strength = STRENGTH_BUFFER,
	.for_library = "libecl.",
	.inspect = inspect,
};
