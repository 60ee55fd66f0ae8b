#include "analyzer/kinds/links.h"

uint64_t link_offset(const struct analysis *analysis, allocation_id from, allocation_id to)
{
	enum { LARGEST_LINK = 4096 };
	const struct allocation_index *index = analysis_index(analysis);
	const struct image *image = analysis_image(analysis);
	uint64_t start = allocation_start(index, from), size = allocation_size(index, from);
	uint64_t first = allocation_start(index, to), target_size = allocation_size(index, to);
	unsigned int step = image_word_size(image);
	uint64_t word;

	if (size > LARGEST_LINK)
		return NO_OFFSET;
	for (uint64_t at = 0; size - at >= step; at += step)
		if (image_read_word(image, start + at, &word) && word - first < target_size)
			return at;
	return NO_OFFSET;
}

/* Sizes tell apart what has no name. */
static kind_key find_kind(const struct analysis *analysis, const struct patterns *patterns,
			  const struct typing *typing, allocation_id id)
{
	kind_key key = kind_typed(analysis, patterns, typing, id);

	return key == KIND_UNKNOWN
		       ? kind_make(BY_SIZE, allocation_size(analysis_index(analysis), id))
		       : kind_without_word(key);
}

size_t links_in_step(const struct analysis *analysis, const struct patterns *patterns,
		     const struct typing *typing, const allocation_id *ids, size_t count)
{
	kind_key kind = find_kind(analysis, patterns, typing, ids[1]);
	pattern_number pattern = patterns_of(patterns, ids[1]);
	/* The nodes of a container are linked by members of all kinds. */
	bool is_pattern =
		kind_has_pattern(kind) || (pattern != NO_PATTERN && !pattern_is_text(pattern));
	uint64_t offset = is_pattern ? 0 : link_offset(analysis, ids[0], ids[1]);
	size_t links = 1;

	if (!is_pattern && find_kind(analysis, patterns, typing, ids[0]) != kind)
		return 1;
	while (links + 1 < count && find_kind(analysis, patterns, typing, ids[links + 1]) == kind &&
	       (is_pattern || (offset != NO_OFFSET &&
			       link_offset(analysis, ids[links], ids[links + 1]) == offset)))
		links++;
	return links;
}
