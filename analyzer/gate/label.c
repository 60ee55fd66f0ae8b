#include "analyzer/gate/label.h"

/* The file of the address, without its folders. */
static const char *module_of(const struct analysis *analysis, uint64_t address)
{
	const struct module *module =
		program_find_module(analysis_program(analysis), address);

	return module ? module_name(module) : NULL;
}

/*
 * A signature without a name of its own is that of its module, but where in
 * it differs from build to build.
 */
static struct label label_of_signature(const struct analysis *analysis,
				       uint64_t signature)
{
	struct classes *classes = analysis_classes(analysis);
	struct label label = { .module = module_of(analysis, signature) };

	if (classes_kind(classes, signature) != SIGNATURE_UNKNOWN) {
		label.text = classes_name(classes, signature);
		label.full = classes_full_name(classes, signature);
	}
	return label;
}

static struct label label_of_identity(const struct analysis *analysis,
				      allocation_id id)
{
	struct identity identity;

	if (!analysis_identity(analysis, id, &identity))
		return (struct label){ 0 };
	return (struct label){
		.text = identity.name,
		.module = module_of(analysis, identity.address),
	};
}

struct label label_of(const struct analysis *analysis,
		      const struct patterns *patterns, allocation_id id)
{
	pattern_number pattern = patterns_of(patterns, id);
	uint64_t signature;
	struct label label;

	if (pattern != NO_PATTERN)
		return (struct label){ .text = pattern_name(pattern),
				       .is_pattern = true };
	signature = analysis_signature(analysis, id);
	label = signature ? label_of_signature(analysis, signature)
			  : label_of_identity(analysis, id);
	if (!label.text)
		label.text = UNRECOGNIZED;
	return label;
}
