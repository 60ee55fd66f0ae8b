#include "analyzer/kinds/likeness.h"

struct error *likeness_need(struct analysis *analysis)
{
	struct error *error = analysis_need(analysis, STAGE_CLASSES);

	if (!error)
		error = analysis_need(analysis, STAGE_SIGNATURES);
	return error ? error : analysis_need(analysis, STAGE_PATTERNS);
}

struct likeness likeness_of(const struct analysis *analysis, const struct patterns *patterns,
			    allocation_id id, uint64_t size)
{
	pattern_number pattern =
		patterns ? analysis_pattern_shown(analysis, patterns, id) : NO_PATTERN;
	struct likeness likeness = { .kind = LIKE_SIGNATURE };
	struct identity identity;

	if (!pattern) {
		likeness.key = analysis_signature(analysis, id);
		if (likeness.key)
			return likeness;
	}
	if (!pattern && analysis_identity(analysis, id, &identity)) {
		likeness.kind = LIKE_IDENTITY;
		likeness.key = identity.address << LIKENESS_OFFSET_BITS |
			       identity.offset / sizeof(uint64_t);
		return likeness;
	}
	likeness.kind = LIKE_SIZE;
	/* No core holds more, but one may say so. */
	likeness.key = (uint64_t)pattern << LIKENESS_SIZE_BITS | likeness_size(size);
	return likeness;
}

struct likeness_name likeness_name(const struct analysis *analysis, struct likeness likeness)
{
	struct likeness_name name = { 0 };
	pattern_number pattern;

	switch (likeness.kind) {
	case LIKE_SIGNATURE:
		name.signature = likeness.key;
		name.class = classes_name(analysis_classes(analysis), likeness.key);
		break;
	case LIKE_IDENTITY:
		name.class = identity_name(analysis_identities(analysis),
					   likeness_address(likeness.key));
		break;
	case LIKE_SIZE:
		name.size = likeness_size(likeness.key);
		pattern = likeness_pattern(likeness.key);
		if (pattern != NO_PATTERN)
			name.pattern = pattern_name(pattern);
		break;
	case LIKENESS_KINDS:
		break;
	}
	return name;
}
