#include "analyzer/classify/guile.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	guile_claim(reader, subject, GUILE_VECTOR);
}

const struct classifier classifier_guile_vector = {
	.name = "GuileVector",
	.summary = "a vector of Guile",
	.role = "a vector of Guile",
	.strength = STRENGTH_MARKED,
	.for_library = "libguile-",
	.inspect = inspect,
};
