#include "analyzer/gate/label.h"

#include "analyzer/base/text.h"
#include "analyzer/kinds/kind_key.h"

#include <string.h>

/* The file of the address, without its folders. */
static const char *module_of(const struct analysis *analysis, uint64_t address)
{
	const struct module *module = program_find_module(analysis_program(analysis), address);

	return module ? module_file_name(module) : NULL;
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

/*
 * A signature without a name of its own is that of its module, but where in it differs from build
 * to build. Whether a buffer holds text differs from run to run, so that is no label.
 */
struct label label_of(const struct analysis *analysis, const struct patterns *patterns,
		      allocation_id id)
{
	struct classes *classes = analysis_classes(analysis);
	struct kind_name name = kind_name(analysis, kind_of(analysis, patterns, id));
	struct label label = { .text = name.text, .is_pattern = name.by == BY_PATTERN };

	if (pattern_is_text(name.pattern))
		label = (struct label){ NULL };
	if (label.is_pattern)
		return label;
	if (is_conversion(analysis, id))
		return (struct label){ .text = CONVERSION };
	label.module = module_of(analysis, name.signature ? name.signature : name.identity);
	if (name.signature)
		label.full = classes_full_name(classes, name.signature);
	if (name.signature && classes_kind(classes, name.signature) == SIGNATURE_UNKNOWN)
		label.text = label.full = NULL;
	if (!label.text)
		label.text = UNRECOGNIZED;
	return label;
}

char *label_name(struct label label)
{
	return format_text("%s%s", label.is_pattern ? "%" : "", label.text);
}

size_t starts_find(const struct analysis *analysis, allocation_id source,
		   allocation_id ret[static MOST_START_WORDS])
{
	const struct allocation_index *index = analysis_index(analysis);
	uint64_t start = allocation_start(index, source), there;
	uint64_t size = allocation_size(index, source);
	const uint8_t *bytes = image_bytes(analysis_image(analysis), start, &there);
	const unsigned int width = image_word_size(analysis_image(analysis));
	size_t words, count = 0;

	if (!bytes)
		return 0;
	words = MIN(there, size) / width;
	words = MIN(words, MOST_START_WORDS);
	for (size_t i = 0; i < words; i++) {
		allocation_id target;
		uint64_t word = load_word(bytes + i * width, width);

		target = allocation_find(index, word);
		if (target != NO_ALLOCATION && target != source &&
		    allocation_start(index, target) == word)
			ret[count++] = target;
	}
	return count;
}
