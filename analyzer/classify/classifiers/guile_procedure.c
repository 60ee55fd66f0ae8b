#include "analyzer/classify/guile.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	guile_claim(reader, subject, GUILE_PROCEDURE);
}

const struct classifier classifier_guile_procedure = {
	.name = "GuileProcedure",
	.summary = "a procedure of Guile and what it captured",
	.role = "a procedure of Guile",
	.strength = STRENGTH_MARKED,
	.for_library = "libguile-",
	.inspect = inspect,
};
