#include "analyzer/classify/ecl.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	ecl_claim(reader, subject, ECL_RATIO);
}

const struct classifier classifier_ecl_ratio = {
	.name = "EclRatio",
	.summary = "a fraction of ECL",
	.role = "a fraction of ECL",
	.strength = STRENGTH_RELATED,
	.for_library = "libecl.",
	.inspect = inspect,
};
