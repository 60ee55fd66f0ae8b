#include "analyzer/classify/guile.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	guile_claim(reader, subject, GUILE_STRING);
}

const struct classifier classifier_guile_string = {
	.name = "GuileString",
	.summary = "a string of Guile, without its characters",
	.role = "a string of Guile",
	.strength = STRENGTH_MARKED,
	.for_library = "libguile-",
	.inspect = inspect,
};
