#include "analyzer/classify/guile.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	guile_claim(reader, subject, GUILE_STRUCT);
}

const struct classifier classifier_guile_struct = {
	.name = "GuileStruct",
	.summary = "a record or another structure of Guile",
	.role = "a structure of Guile",
	.strength = STRENGTH_MARKED,
	.for_library = "libguile-",
	.inspect = inspect,
};
