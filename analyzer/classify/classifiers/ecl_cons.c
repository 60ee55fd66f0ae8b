#include "analyzer/classify/ecl.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	ecl_claim(reader, subject, ECL_CONS);
}

const struct classifier classifier_ecl_cons = {
	.name = "EclCons",
	.summary = "a cons of ECL, as lists are made of",
	.role = "a cons of ECL",
	.strength = STRENGTH_CHAIN,
	.for_library = "libecl.",
	.inspect = inspect,
};
