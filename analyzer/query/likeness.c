#include "analyzer/query/likeness.h"

enum {
	OFFSET_BITS = 3, /* of an identity, in words */
	SIZE_BITS = 56,	 /* the pattern is above */
};

struct error *likeness_need(struct analysis *analysis)
{
	struct error *error = analysis_need(analysis, STAGE_CLASSES);

	if (!error)
		error = analysis_need(analysis, STAGE_SIGNATURES);
	return error ? error : analysis_need(analysis, STAGE_PATTERNS);
}

struct likeness likeness_of(const struct analysis *analysis, allocation_id id,
			    uint64_t size)
{
	pattern_number pattern = patterns_of(analysis_patterns(analysis), id);
	struct likeness likeness = { .kind = LIKE_SIGNATURE };
	struct identity identity;

	if (!pattern) {
		likeness.key = analysis_signature(analysis, id);
		if (likeness.key)
			return likeness;
	}
	if (!pattern && analysis_identity(analysis, id, &identity)) {
		likeness.kind = LIKE_IDENTITY;
		likeness.key = identity.address << OFFSET_BITS |
			       identity.offset / sizeof(uint64_t);
		return likeness;
	}
	likeness.kind = LIKE_SIZE;
	likeness.key = (uint64_t)pattern << SIZE_BITS | size;
	return likeness;
}

struct likeness_name likeness_name(const struct analysis *analysis,
				   struct likeness likeness)
{
	struct likeness_name name = { 0 };
	uint64_t pattern = likeness.key >> SIZE_BITS;

	switch (likeness.kind) {
	case LIKE_SIGNATURE:
		name.signature = likeness.key;
		name.class =
			classes_name(analysis_classes(analysis), likeness.key);
		break;
	case LIKE_IDENTITY:
		name.class = identity_name(analysis_identities(analysis),
					   likeness.key >> OFFSET_BITS);
		break;
	case LIKE_SIZE:
		name.size = likeness.key & ((UINT64_C(1) << SIZE_BITS) - 1);
		if (pattern)
			name.pattern = pattern_name((pattern_number)pattern);
		break;
	case LIKENESS_KINDS:
		break;
	}
	return name;
}
