/*
 * What the kernel held for the process, as cores by heapcore tell.
 */
#ifndef ANALYZER_IMAGE_HELD_H
#define ANALYZER_IMAGE_HELD_H

#include "analyzer/image/image.h"

size_t image_held_count(const struct image *image);
struct held_value image_held(const struct image *image, size_t number);

/* Whether values of that kind were looked for when the core was made. */
bool image_held_sought(const struct image *image, enum held_kind kind);

#endif
