#include "analyzer/classify/ecl.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	ecl_claim(reader, subject, ECL_PACKAGE);
}

const struct classifier classifier_ecl_package = {
	.name = "EclPackage",
	.summary = "a package of ECL",
	.role = "a package of ECL",
	.strength = STRENGTH_MARKED,
	.for_library = "libecl.",
	.inspect = inspect,
};
