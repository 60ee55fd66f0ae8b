#include "analyzer/classify/ecl.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	ecl_claim(reader, subject, ECL_DOUBLE_FLOAT);
}

const struct classifier classifier_ecl_double_float = {
	.name = "EclDoubleFloat",
	.summary = "a real number of ECL, of double precision",
	.role = "a double float of ECL",
	.strength = STRENGTH_CHAIN,
	.for_library = "libecl.",
	.pointerless = true,
	.inspect = inspect,
};
