#include "analyzer/classify/guile.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	guile_claim(reader, subject, GUILE_FLONUM);
}

const struct classifier classifier_guile_flonum = {
	.name = "GuileFlonum",
	.summary = "a real number of Guile",
	.role = "a real number of Guile",
	.strength = STRENGTH_MARKED,
	.for_library = "libguile-",
	.pointerless = true,
	.inspect = inspect,
};
