#include "analyzer/gate/starts.h"

#include <string.h>

size_t starts_find(const struct analysis *analysis, allocation_id source,
		   allocation_id ret[static MOST_START_WORDS])
{
	const struct allocation_index *index = analysis_index(analysis);
	uint64_t start = allocation_start(index, source), there;
	uint64_t size = allocation_size(index, source);
	const uint8_t *bytes = image_bytes(analysis_image(analysis), start, &there);
	size_t words, count = 0;

	if (!bytes)
		return 0;
	words = (there < size ? there : size) / sizeof(uint64_t);
	if (words > MOST_START_WORDS)
		words = MOST_START_WORDS;
	for (size_t i = 0; i < words; i++) {
		allocation_id target;
		uint64_t word;

		memcpy(&word, bytes + i * sizeof(word), sizeof(word));
		target = allocation_find(index, word);
		if (target != NO_ALLOCATION && target != source &&
		    allocation_start(index, target) == word)
			ret[count++] = target;
	}
	return count;
}
