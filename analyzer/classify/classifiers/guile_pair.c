#include "analyzer/classify/guile.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	guile_claim(reader, subject, GUILE_PAIR);
}

const struct classifier classifier_guile_pair = {
	.name = "GuilePair",
	.summary = "a pair of Guile, as lists are made of",
	.role = "a pair of Guile",
	.strength = STRENGTH_CHAIN,
	.for_library = "libguile-",
	.inspect = inspect,
};
