/*
 * A baseline as JSON, and small files as text.
 */
#ifndef ANALYZER_GATE_BASELINE_FILE_H
#define ANALYZER_GATE_BASELINE_FILE_H

#include "analyzer/gate/baseline.h"

/* Entries in the order of the file. ret is zeroed. */
struct error *baseline_parse_json(const char *text, size_t size, const char *name,
				  struct baseline *ret);

/* *ret is to be freed. */
struct error *baseline_print_json(const struct baseline *baseline, char **ret, size_t *ret_size);

/*
 * The contents of a regular file of at most MOST_FILE_BYTES, with a NUL behind, to be freed. All
 * that is wrong with it is ERROR_USAGE.
 */
enum { MOST_FILE_BYTES = 1 << 26 };
struct error *read_small_file(const char *path, char **ret, size_t *ret_size);

/*
 * Write a file next to it and rename that, so nobody sees half of one. What is a link by now
 * becomes a file.
 */
struct error *replace_file(const char *path, const char *text, size_t size);

#endif
