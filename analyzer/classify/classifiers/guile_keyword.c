#include "analyzer/classify/guile.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	guile_claim(reader, subject, GUILE_KEYWORD);
}

const struct classifier classifier_guile_keyword = {
	.name = "GuileKeyword",
	.summary = "a keyword of Guile",
	.role = "a keyword of Guile",
	.strength = STRENGTH_MARKED,
	.for_library = "libguile-",
	.inspect = inspect,
};
