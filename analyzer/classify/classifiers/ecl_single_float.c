#include "analyzer/classify/ecl.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	ecl_claim(reader, subject, ECL_SINGLE_FLOAT);
}

const struct classifier classifier_ecl_single_float = {
	.name = "EclSingleFloat",
	.summary = "a real number of ECL, of single precision",
	.role = "a single float of ECL",
	.strength = STRENGTH_CHAIN,
	.for_library = "libecl.",
	.pointerless = true,
	.inspect = inspect,
};
