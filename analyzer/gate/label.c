#include "analyzer/gate/label.h"

#include <string.h>

/* The file of the address, without its folders. */
static const char *module_of(const struct analysis *analysis, uint64_t address)
{
	const struct module *module = program_find_module(analysis_program(analysis), address);

	return module ? module_name(module) : NULL;
}

/*
 * A signature without a name of its own is that of its module, but where in it differs from build
 * to build.
 */
static struct label label_of_signature(const struct analysis *analysis, uint64_t signature)
{
	struct classes *classes = analysis_classes(analysis);
	struct label label = { .module = module_of(analysis, signature) };

	if (classes_kind(classes, signature) != SIGNATURE_UNKNOWN) {
		label.text = classes_name(classes, signature);
		label.full = classes_full_name(classes, signature);
	}
	return label;
}

static struct label label_of_identity(const struct analysis *analysis, allocation_id id)
{
	struct identity identity;

	if (!analysis_identity(analysis, id, &identity))
		return (struct label){ 0 };
	return (struct label){
		.text = identity.name,
		.module = module_of(analysis, identity.address),
	};
}

static bool is_in_conversion_cache(const struct image *image, uint64_t address)
{
	static const char name[] = "/gconv-modules.cache";
	const struct mapping *mapping = image_find_mapping(image, address);
	size_t length = mapping && mapping->path ? strlen(mapping->path) : 0;

	return length >= sizeof(name) - 1 &&
	       strcmp(mapping->path + length - (sizeof(name) - 1), name) == 0;
}

/*
 * Steps of a conversion of characters (struct __gconv_step of glibc's iconv/gconv.h, the same in
 * 2.31 to 2.43), one or two of them, are known by the name of a character set: it is in the mapped
 * list of all of these. What functions they refer to has a name only where libc's symbols are at
 * hand.
 */
static bool is_conversion(const struct analysis *analysis, allocation_id id)
{
	enum { ONE_STEP = 104, TWO_STEPS = 216, FROM_NAME = 24, TO_NAME = 32 };
	const struct allocation_index *index = analysis_index(analysis);
	const struct image *image = analysis_image(analysis);
	uint64_t start = allocation_start(index, id), from, to;
	uint64_t size = allocation_size(index, id);

	return (size == ONE_STEP || size == TWO_STEPS) &&
	       image_read_u64(image, start + FROM_NAME, &from) &&
	       image_read_u64(image, start + TO_NAME, &to) &&
	       (is_in_conversion_cache(image, from) || is_in_conversion_cache(image, to));
}

struct label label_of(const struct analysis *analysis, const struct patterns *patterns,
		      allocation_id id)
{
	pattern_number pattern = analysis_pattern_shown(analysis, patterns, id);
	uint64_t signature;
	struct label label;

	if (pattern != NO_PATTERN)
		return (struct label){ .text = pattern_name(pattern), .is_pattern = true };
	if (is_conversion(analysis, id))
		return (struct label){ .text = CONVERSION };
	signature = analysis_signature(analysis, id);
	label = signature ? label_of_signature(analysis, signature)
			  : label_of_identity(analysis, id);
	if (!label.text)
		label.text = UNRECOGNIZED;
	return label;
}
