#include "analyzer/classify/guile.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	guile_claim(reader, subject, GUILE_TEXT);
}

const struct classifier classifier_guile_text = {
	.name = "GuileText",
	.summary = "the characters of strings and symbols of Guile",
	.role = "the characters of strings or symbols of Guile",
	.strength = STRENGTH_MARKED,
	.for_library = "libguile-",
	.pointerless = true,
	.inspect = inspect,
};
