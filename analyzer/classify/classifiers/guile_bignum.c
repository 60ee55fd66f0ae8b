#include "analyzer/classify/guile.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	guile_claim(reader, subject, GUILE_BIGNUM);
}

const struct classifier classifier_guile_bignum = {
	.name = "GuileBignum",
	.summary = "an integer of Guile that is too large for a word",
	.role = "a large integer of Guile",
	.strength = STRENGTH_MARKED,
	.for_library = "libguile-",
	.pointerless = true,
	.inspect = inspect,
};
