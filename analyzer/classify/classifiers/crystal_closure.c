#include "analyzer/classify/classifier.h"
#include "analyzer/classify/crystal/instances.h"

/*
 * A Proc is a function and what its block captured:
 *
 *	| function | captured variables |
 */
static void match(struct reader *reader, const struct reference *reference)
{
	uint64_t function;

	if (reference_words(reference, -1, 1, &function) &&
	    crystal_is_function(reader->crystal, function) &&
	    !crystal_type_of(reader->crystal, reference->target))
		reader_claim(reader, reference->target, reference->address - 8);
}

const struct classifier classifier_crystal_closure = {
	.name = "CrystalClosure",
	.summary = "the variables that a block of Crystal captured",
	.role = "the variables captured by the Proc",
	.strength = STRENGTH_RELATED,
	.for_crystal = true,
	.match = match,
};
