#include "analyzer/gate/label.h"

#include <string.h>

/*
 * Of a signature without a name of its own, the module's: where in the module
 * it is differs from build to build.
 */
static const char *signature_label(struct classes *classes, uint64_t signature)
{
	return classes_kind(classes, signature) == SIGNATURE_UNKNOWN
		       ? NULL
		       : classes_name(classes, signature);
}

struct label label_of(const struct analysis *analysis,
		      const struct patterns *patterns, allocation_id id)
{
	pattern_number pattern = patterns_of(patterns, id);
	uint64_t signature = analysis_signature(analysis, id);
	const char *name = NULL;
	struct identity identity;

	if (pattern != NO_PATTERN)
		return (struct label){ .text = pattern_name(pattern),
				       .is_pattern = true };
	if (signature)
		name = signature_label(analysis_classes(analysis), signature);
	else if (analysis_identity(analysis, id, &identity))
		name = identity.name;
	return (struct label){ .text = name ? name : UNRECOGNIZED,
			       .has_size = true };
}

/* The finalizer of splitmix64. */
static uint64_t mix(uint64_t word)
{
	word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
	return word ^ word >> 31;
}

uint64_t hash_add(uint64_t hash, uint64_t word)
{
	return mix(hash + UINT64_C(0x9e3779b97f4a7c15) + mix(word));
}

uint64_t label_hash(struct label label, uint64_t size)
{
	uint64_t hash = label.is_pattern;

	for (const char *text = label.text; *text; text++)
		hash = hash_add(hash, (unsigned char)*text);
	return hash_add(hash, label.has_size ? size : UINT64_MAX);
}

char *label_name(struct label label)
{
	char *name;

	if (asprintf(&name, "%s%s", label.is_pattern ? "%" : "", label.text) <
	    0)
		return NULL;
	return name;
}
