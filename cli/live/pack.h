/*
 * Cores that are packed as they are written.
 */
#pragma once

#include "analyzer/base/error.h"
#include "analyzer/base/progress.h"

/* Append what is in from, packed into one frame of zstd, to to. Returns how much that is. */
struct error *pack_zstd(int from, int to, struct progress *progress, uint64_t *ret_size);
