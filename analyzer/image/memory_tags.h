/*
 * Memory tags of aarch64 (MTE): a pointer to tagged memory has the tag of its block in the top
 * byte, and the block another one when it is allocated again. No analysis needs them, and all that
 * compare words would have to mask them: they are taken off before anything else reads the dump.
 */
#pragma once

#include "analyzer/image/image.h"

/*
 * Sort image->tagged, and clear the tags of words in writable memory and registers that are
 * addresses of that memory. The dump's bytes must be writable.
 */
void image_clear_memory_tags(struct image *image);

/* True if the dump says that the memory there has tags. */
bool image_has_memory_tags(const struct image *image, uint64_t address);
