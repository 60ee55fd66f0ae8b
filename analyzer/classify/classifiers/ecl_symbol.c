#include "analyzer/classify/ecl.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	ecl_claim(reader, subject, ECL_SYMBOL);
}

const struct classifier classifier_ecl_symbol = {
	.name = "EclSymbol",
	.summary = "a symbol of ECL",
	.role = "a symbol of ECL",
	.strength = STRENGTH_MARKED,
	.for_library = "libecl.",
	.inspect = inspect,
};
