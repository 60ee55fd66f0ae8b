#include "analyzer/classify/ecl.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	ecl_claim(reader, subject, ECL_STRING);
}

const struct classifier classifier_ecl_string = {
	.name = "EclString",
	.summary = "a string of ECL; if it is short, with its characters",
	.role = "a string of ECL",
	.strength = STRENGTH_MARKED,
	.for_library = "libecl.",
	.pointerless = true,
	.inspect = inspect,
};
