#include "analyzer/classify/guile.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	guile_claim(reader, subject, GUILE_HASH_TABLE);
}

const struct classifier classifier_guile_hash_table = {
	.name = "GuileHashTable",
	.summary = "a hash table of Guile, without its vector",
	.role = "a hash table of Guile",
	.strength = STRENGTH_MARKED,
	.for_library = "libguile-",
	.inspect = inspect,
};
