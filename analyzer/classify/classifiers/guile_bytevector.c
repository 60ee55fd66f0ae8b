#include "analyzer/classify/guile.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	guile_claim(reader, subject, GUILE_BYTEVECTOR);
}

const struct classifier classifier_guile_bytevector = {
	.name = "GuileBytevector",
	.summary = "a bytevector or uniform vector of Guile",
	.role = "a bytevector of Guile",
	.strength = STRENGTH_MARKED,
	.for_library = "libguile-",
	.pointerless = true,
	.inspect = inspect,
};
