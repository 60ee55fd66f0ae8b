#include "analyzer/classify/ecl.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	ecl_claim(reader, subject, ECL_BIGNUM);
}

const struct classifier classifier_ecl_bignum = {
	.name = "EclBignum",
	.summary = "an integer of ECL that is too large for a word",
	.role = "a large integer of ECL",
	.strength = STRENGTH_RELATED,
	.for_library = "libecl.",
	.pointerless = true,
	.inspect = inspect,
};
