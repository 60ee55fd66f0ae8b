#include "analyzer/classify/classifier.h"
#include "analyzer/runtimes/crystal/crystal.h"

/*
 * A Proc is a function and what its block captured:
 *
 *	| function | captured variables |
 */
static void match(struct reader *reader, const struct reference *reference)
{
	uint64_t function;

	if (reference_words(reference, -1, 1, &function) &&
	    crystal_is_function(crystal_of(reader->runtimes), function) &&
	    !crystal_type_of(crystal_of(reader->runtimes), reference->target))
		reader_claim(reader, reference->target, reference->address - 8);
}

const struct classifier classifier_crystal_closure = {
	.name = "CrystalClosure",
	.summary = "the variables that a block of Crystal captured",
	.role = "the variables captured by the Proc",
	.strength = STRENGTH_RELATED,
	.runtime = &runtime_crystal,
	.match = match,
};
