#include "analyzer/classify/ecl.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	ecl_claim(reader, subject, ECL_ARRAY);
}

const struct classifier classifier_ecl_array = {
	.name = "EclArray",
	.summary = "an array of ECL of several dimensions, without its elements",
	.role = "an array of ECL",
	.strength = STRENGTH_MARKED,
	.for_library = "libecl.",
	.inspect = inspect,
};
