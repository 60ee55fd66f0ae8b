#include "analyzer/classify/ecl.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	ecl_claim(reader, subject, ECL_FUNCTION);
}

const struct classifier classifier_ecl_function = {
	.name = "EclFunction",
	.summary = "a function or closure of ECL",
	.role = "a function of ECL",
	.strength = STRENGTH_MARKED,
	.for_library = "libecl.",
	.inspect = inspect,
};
