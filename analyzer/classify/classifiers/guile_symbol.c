#include "analyzer/classify/guile.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	guile_claim(reader, subject, GUILE_SYMBOL);
}

const struct classifier classifier_guile_symbol = {
	.name = "GuileSymbol",
	.summary = "a symbol of Guile",
	.role = "a symbol of Guile",
	.strength = STRENGTH_MARKED,
	.for_library = "libguile-",
	.inspect = inspect,
};
