#include "analyzer/classify/guile.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	guile_claim(reader, subject, GUILE_FRACTION);
}

const struct classifier classifier_guile_fraction = {
	.name = "GuileFraction",
	.summary = "a fraction of Guile",
	.role = "a fraction of Guile",
	.strength = STRENGTH_MARKED,
	.for_library = "libguile-",
	.inspect = inspect,
};
