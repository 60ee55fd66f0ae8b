/*
 * Memory tags of aarch64 (MTE): a pointer to tagged memory has the tag of its block in the top
 * byte, and the block another one when it is allocated again. No analysis needs them, and all that
 * compare words would have to mask them: they are taken off before anything else reads the dump.
 */
#ifndef ANALYZER_IMAGE_MEMORY_TAGS_H
#define ANALYZER_IMAGE_MEMORY_TAGS_H

#include "analyzer/image/image.h"

/* Memory that has tags, as the dump says. */
struct tagged_memory {
	struct note_range *ranges;
	size_t count;
};

/*
 * Clear the tags of words in writable memory and registers that are addresses of tagged memory. The
 * dump's bytes must be writable; the ranges are sorted.
 */
void image_clear_memory_tags(struct image *image, struct tagged_memory *tagged);

#endif
