#include "analyzer/classify/guile.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	guile_claim(reader, subject, GUILE_VARIABLE);
}

const struct classifier classifier_guile_variable = {
	.name = "GuileVariable",
	.summary = "a variable of a module of Guile, or one that is shared by procedures",
	.role = "a variable of Guile",
	.strength = STRENGTH_MARKED,
	.for_library = "libguile-",
	.inspect = inspect,
};
