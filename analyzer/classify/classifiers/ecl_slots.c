#include "analyzer/classify/ecl.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	ecl_claim_contents(reader, subject, ECL_INSTANCE);
}

const struct classifier classifier_ecl_slots = {
	.name = "EclSlots",
	.summary = "the slots of an instance of a class or structure of ECL",
	.role = "the slots of the instance of ECL",
	.strength = STRENGTH_BUFFER,
	.for_library = "libecl.",
	.inspect = inspect,
};
