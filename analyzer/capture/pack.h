/*
 * A file packed into one frame of zstd.
 */
#ifndef ANALYZER_CAPTURE_PACK_H
#define ANALYZER_CAPTURE_PACK_H

#include "analyzer/base/error.h"
#include "analyzer/base/progress.h"

#include <stdint.h>

/* Append what is in from, packed, to to. Returns how much that is. */
struct error *pack_zstd(int from, int to, struct progress *progress, uint64_t *ret_size);

#endif
