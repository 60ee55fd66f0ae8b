#include "analyzer/kinds/type_key.h"

#include <inttypes.h>
#include <string.h>

/* What it is known by, in the bits above the value. */
enum key_kind { KEY_NONE, KEY_SIGNATURE, KEY_PATTERN, KEY_IDENTITY };
enum { KIND_SHIFT = 60 };

static const uint64_t NUMBER_MASK = (UINT64_C(1) << KIND_SHIFT) - 1;

/* Nothing of a user's memory is so far up, but a core may say so. */
static uint64_t make_key(enum key_kind kind, uint64_t number)
{
	return (uint64_t)kind << KIND_SHIFT | (number & NUMBER_MASK);
}

/* Whether it is the class of a runtime. */
static bool is_class(const struct analysis *analysis, uint64_t signature)
{
	return runtimes_have_class(analysis_runtimes(analysis), signature);
}

uint64_t type_key(const struct analysis *analysis, const struct patterns *patterns,
		  allocation_id id)
{
	pattern_number pattern = patterns ? analysis_pattern_shown(analysis, patterns, id) : 0;
	struct identity identity;
	uint64_t signature;

	if (pattern)
		return make_key(KEY_PATTERN, pattern);
	signature = analysis_signature(analysis, id);
	if (is_class(analysis, signature) || (signature && patterns))
		return make_key(KEY_SIGNATURE, signature);
	/* Who made it is not what it is. */
	if (patterns && analysis_identity(analysis, id, &identity) &&
	    identity.address >= MOST_MAKERS)
		return make_key(KEY_IDENTITY, identity.address);
	return NO_TYPE_KEY;
}

void type_number_name(uint64_t number, char ret[static CLASS_NAME_SIZE])
{
	snprintf(ret, CLASS_NAME_SIZE, "(class %" PRIu64 ")", number);
}

/* The name of a runtime's class, or its number. */
static char *name_class(const struct analysis *analysis, uint64_t number)
{
	char unknown[CLASS_NAME_SIZE];
	enum class_name_kind kind;
	const char *name = runtimes_class_name(analysis_runtimes(analysis), number, &kind);

	if (name && kind != CLASS_NUMBERED)
		return strdup(name);
	type_number_name(number, unknown);
	return strdup(unknown);
}

char *type_key_name(const struct analysis *analysis, uint64_t key)
{
	uint64_t number = key & NUMBER_MASK;
	const char *name = NULL;
	char *made;

	switch ((enum key_kind)(key >> KIND_SHIFT)) {
	case KEY_SIGNATURE:
		if (is_class(analysis, number))
			return name_class(analysis, number);
		name = classes_name(analysis_classes(analysis), number);
		break;
	case KEY_PATTERN:
		return asprintf(&made, "%%%s", pattern_name((pattern_number)number)) < 0 ? NULL
											 : made;
	case KEY_IDENTITY:
		name = identity_name(analysis_identities(analysis), number);
		break;
	case KEY_NONE:
		break;
	}
	if (name)
		return strdup(name);
	return asprintf(&made, "(signature %" PRIx64 ")", number) < 0 ? NULL : made;
}
