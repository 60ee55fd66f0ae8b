/*
 * Small files that people keep with their source: baselines and suppressions.
 */
#pragma once

#include "analyzer/base/error.h"

#include <stddef.h>

enum { MOST_FILE_BYTES = 1 << 26 };

/*
 * The contents of a regular file of at most MOST_FILE_BYTES, with a NUL behind, to be freed. All
 * that is wrong with it is ERROR_USAGE.
 */
struct error *read_small_file(const char *path, char **ret, size_t *ret_size);

/* Write a file next to it and rename that, so nobody sees half of one. A link becomes a file. */
struct error *replace_file(const char *path, const char *text, size_t size);
