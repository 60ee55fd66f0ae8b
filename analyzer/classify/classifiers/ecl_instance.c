#include "analyzer/classify/ecl.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	ecl_claim(reader, subject, ECL_INSTANCE);
}

const struct classifier classifier_ecl_instance = {
	.name = "EclInstance",
	.summary = "an instance of a class or structure of ECL, without its slots",
	.role = "an instance of ECL",
	.strength = STRENGTH_MARKED,
	.for_library = "libecl.",
	.inspect = inspect,
};
