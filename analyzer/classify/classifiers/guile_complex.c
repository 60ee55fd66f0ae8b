#include "analyzer/classify/guile.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	guile_claim(reader, subject, GUILE_COMPLEX);
}

const struct classifier classifier_guile_complex = {
	.name = "GuileComplex",
	.summary = "a complex number of Guile",
	.role = "a complex number of Guile",
	.strength = STRENGTH_MARKED,
	.for_library = "libguile-",
	.pointerless = true,
	.inspect = inspect,
};
