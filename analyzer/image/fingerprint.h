/*
 * What tells a dump from others, and from itself before it was changed.
 *
 * Looked at are its file's size and time of change; a hash of the bytes at its beginning and end,
 * and of pieces spread over all of it; and how the memory is cut into regions, which depends on the
 * mapped files that are at hand, too. It costs some milliseconds for a dump of any size: to look at
 * every byte takes as long as to analyse it.
 */
#ifndef ANALYZER_IMAGE_FINGERPRINT_H
#define ANALYZER_IMAGE_FINGERPRINT_H

#include "analyzer/base/side_file.h"
#include "analyzer/image/image.h"

/* Set all but the maker. */
struct error *image_identify(const struct image *image, struct side_identity *ret);

#endif
