#include "analyzer/kinds/kind_key.h"

#include "analyzer/kinds/containers.h"
#include "analyzer/types/member_path.h"

#include <inttypes.h>
#include <string.h>

enum { WORD_BITS = 3, SIZE_BITS = 52, FIT_BITS = 4, PATTERN_BITS = 8 };

static const uint64_t WORD_MASK = (UINT64_C(1) << WORD_BITS) - 1;
static const uint64_t SIZE_MASK = (UINT64_C(1) << SIZE_BITS) - 1;

struct error *kind_need(struct analysis *analysis)
{
	TRY(analysis_need(analysis, STAGE_CLASSES));
	TRY(analysis_need(analysis, STAGE_SIGNATURES));
	return analysis_need(analysis, STAGE_PATTERNS);
}

struct error *kind_need_types(struct analysis *analysis, const struct bitmap *members)
{
	if (!bitmap_meets(members, allocation_used(analysis_index(analysis))))
		return NULL;
	return analysis_cost(analysis, STAGE_REACHABILITY).built &&
			       bitmap_within(members, analysis_leaked(analysis))
		       ? analysis_need(analysis, STAGE_LEAKED_TYPES)
		       : analysis_need_types(analysis);
}

static kind_key identity_key(const struct analysis *analysis, const struct identity *identity)
{
	uint64_t word = identity->address & IDENTITY_OF_POOL
				? 0 /* where it stands depends on the size */
				: identity->offset / image_word_size(analysis_image(analysis));

	return kind_make(BY_IDENTITY, identity->address << WORD_BITS | word);
}

kind_key kind_of_pattern(pattern_number pattern)
{
	return kind_make(BY_PATTERN, (uint64_t)pattern << SIZE_BITS);
}

/* True if it is the class of a runtime. */
static bool is_class(const struct analysis *analysis, uint64_t signature)
{
	return runtimes_have_class(analysis_runtimes(analysis), signature);
}

static kind_key container_key(struct typed typed, pattern_number pattern)
{
	return kind_make(BY_TYPE,
			 ((uint64_t)typed.type << PATTERN_BITS | pattern) << FIT_BITS | typed.fit);
}

static kind_key type_key(struct typed typed)
{
	return container_key(typed, NO_PATTERN);
}

kind_key kind_typed(const struct analysis *analysis, const struct patterns *patterns,
		    const struct typing *typing, allocation_id id)
{
	pattern_number pattern =
		patterns ? analysis_pattern_shown(analysis, patterns, id) : NO_PATTERN;
	struct identity identity;
	struct typed typed;
	uint64_t signature;
	bool has_type;

	if (typing && typing_is_stated(typing, id) && typing_of(typing, id, &typed))
		return type_key(typed);
	has_type = typing && typing_of(typing, id, &typed);
	if (pattern != NO_PATTERN && has_type &&
	    container_is_known(typing_types(typing), pattern, &typed))
		return container_key(typed, pattern);
	if (pattern != NO_PATTERN && !pattern_is_text(pattern) &&
	    !(pattern_is_plain(pattern) && has_type))
		return kind_of_pattern(pattern);
	signature = analysis_signature(analysis, id);
	/* Only where something else is known, too, does it matter whether it is a class. */
	if (signature && ((!has_type && pattern == NO_PATTERN) || is_class(analysis, signature) ||
			  classes_is_class(analysis_classes(analysis), signature) ||
			  classes_mark(analysis_classes(analysis), signature)))
		return kind_make(BY_SIGNATURE, signature);
	if (has_type)
		return type_key(typed);
	if (pattern != NO_PATTERN)
		return kind_of_pattern(pattern);
	if (signature)
		return kind_make(BY_SIGNATURE, signature);
	if (analysis_identity(analysis, id, &identity))
		return identity_key(analysis, &identity);
	return typing && siblings_typed(analysis_siblings(analysis), id, &typed) ? type_key(typed)
										 : KIND_UNKNOWN;
}

kind_key kind_of(const struct analysis *analysis, const struct patterns *patterns, allocation_id id)
{
	return kind_typed(analysis, patterns, NULL, id);
}

kind_key kind_leaked(const struct analysis *analysis, allocation_id id)
{
	return kind_typed(analysis, analysis_leaked_patterns(analysis), analysis_typing(analysis),
			  id);
}

bool kind_is_of_numbers(const struct analysis *analysis, kind_key key)
{
	enum type_kind kind;

	if (kind_tag(key) != BY_TYPE)
		return false;
	kind = type_get(typing_types(analysis_typing(analysis)), kind_type_of(key).type)->kind;
	return kind == TYPE_NUMBER || kind == TYPE_CHARACTER;
}

kind_key kind_with_size(kind_key key, uint64_t size)
{
	if (key == KIND_UNKNOWN)
		return kind_make(BY_SIZE, size);
	/* No core holds more, but one may say so. */
	return kind_tag(key) == BY_PATTERN ? key | (size & SIZE_MASK) : key;
}

kind_key kind_unlike(uint64_t size, unsigned int number)
{
	return kind_make(BY_SIZE, (uint64_t)number << SIZE_BITS | (size & SIZE_MASK));
}

uint64_t kind_size(kind_key key)
{
	return kind_tag(key) == BY_SIZE ? key & SIZE_MASK : 0;
}

kind_key kind_without_word(kind_key key)
{
	return kind_tag(key) == BY_IDENTITY ? key & ~WORD_MASK : key;
}

kind_key kind_type(const struct analysis *analysis, const struct patterns *patterns,
		   allocation_id id)
{
	kind_key key;

	if (!patterns) {
		uint64_t signature = analysis_signature(analysis, id);

		return is_class(analysis, signature) &&
				       !runtimes_is_part(analysis_runtimes(analysis), signature)
			       ? kind_make(BY_SIGNATURE, signature)
			       : KIND_UNKNOWN;
	}
	key = kind_of(analysis, patterns, id);
	return kind_tag(key) == BY_IDENTITY && kind_value(key) >> WORD_BITS < MOST_MAKERS
		       ? KIND_UNKNOWN
		       : kind_without_word(key);
}

/* Sign-extend an address of so many bits. */
static uint64_t extend(uint64_t address, int bits)
{
	return (uint64_t)((int64_t)(address << (64 - bits)) >> (64 - bits));
}

uint64_t kind_signature(kind_key key)
{
	return kind_tag(key) == BY_SIGNATURE ? extend(kind_value(key), KIND_TAG_SHIFT) : 0;
}

pattern_number kind_pattern(kind_key key)
{
	return kind_tag(key) == BY_PATTERN ? (pattern_number)(kind_value(key) >> SIZE_BITS)
	       : kind_tag(key) == BY_TYPE  ? (pattern_number)(kind_value(key) >> FIT_BITS)
					   : NO_PATTERN;
}

struct typed kind_type_of(kind_key key)
{
	uint64_t value = kind_value(key);

	return (struct typed){ (type_number)(value >> PATTERN_BITS >> FIT_BITS),
			       (enum type_fit)(value & ((1 << FIT_BITS) - 1)) };
}

static const char *type_name(const struct analysis *analysis, pattern_number pattern,
			     struct typed typed)
{
	const struct typing *typing = analysis_typing(analysis);

	return pattern == NO_PATTERN ? typing_name(typing, typed)
				     : container_name(typing_types(typing), pattern, typed);
}

struct kind_name kind_name(const struct analysis *analysis, kind_key key)
{
	struct kind_name name = { .by = (enum known_by)kind_tag(key) };
	uint64_t value = kind_value(key);

	switch (name.by) {
	case BY_SIZE:
		name.size = kind_size(key);
		break;
	case BY_SIGNATURE:
		name.signature = kind_signature(key);
		name.text = classes_name(analysis_classes(analysis), name.signature);
		break;
	case BY_IDENTITY:
		name.identity = extend(value >> WORD_BITS, KIND_TAG_SHIFT - WORD_BITS);
		name.offset = (value & WORD_MASK) * image_word_size(analysis_image(analysis));
		name.has_offset = !(name.identity & IDENTITY_OF_POOL);
		name.text = identity_name(analysis_identities(analysis), name.identity);
		break;
	case BY_PATTERN:
		name.pattern = kind_pattern(key);
		name.size = value & SIZE_MASK;
		name.text = pattern_name(name.pattern);
		break;
	case BY_TYPE:
		name.text = type_name(analysis, kind_pattern(key), kind_type_of(key));
		break;
	case BY_NOTHING:
	case BY_MORE:
		break;
	}
	return name;
}

void class_number_name(uint64_t number, char ret[static CLASS_NAME_SIZE])
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
	class_number_name(number, unknown);
	return strdup(unknown);
}

char *kind_text(const struct analysis *analysis, kind_key key)
{
	struct kind_name name = kind_name(analysis, key);
	char *text;
	int length;

	if (name.by == BY_SIGNATURE && is_class(analysis, name.signature))
		return name_class(analysis, name.signature);
	if (name.text)
		length = asprintf(&text, "%s%s", name.pattern ? "%" : "", name.text);
	else
		length = asprintf(&text, "(signature %" PRIx64 ")", name.signature);
	return length < 0 ? NULL : text;
}

char *kind_word_text(const struct typing *typing, kind_key key, uint64_t offset)
{
	const struct typed typed = kind_type_of(key);
	const struct type_table *types = kind_tag(key) == BY_TYPE ? typing_types(typing) : NULL;
	uint64_t size = types ? type_get(types, typed.type)->size : 0;
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		return NULL;
	if (size && kind_is_array(key))
		offset %= size;
	if (offset < size && !typed_is_within(typed))
		member_path_print(types, typed.type, offset, out);
	else
		fprintf(out, "+0x%" PRIx64, offset);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}
