/*
 * What allocations without a signature are: buffers and nodes of containers,
 * known by the shape of what refers to them.
 *
 * Each kind is a classifier, one file of classifiers/. All of them look at
 * each reference to the start of an allocation in one pass over the memory;
 * what they find is one byte for each allocation, and who owns it is found
 * again when asked for.
 */
#ifndef ANALYZER_CLASSIFY_PATTERNS_H
#define ANALYZER_CLASSIFY_PATTERNS_H

#include "analyzer/classify/classes.h"
#include "analyzer/graph/graph.h"
#include "analyzer/graph/roots.h"

typedef uint8_t pattern_number;
enum { NO_PATTERN = 0 };

struct patterns;

struct error *patterns_create(const struct image *image,
			      const struct program *program,
			      const struct allocation_index *index,
			      const struct roots *roots, struct debug *debug,
			      struct memory_account *account,
			      struct progress *progress, struct patterns **ret);
void patterns_destroy(struct patterns *patterns);
DEFINE_CLEANUP(patterns_destroy, struct patterns *)

/* The allocation's pattern, or NO_PATTERN. */
pattern_number patterns_of(const struct patterns *patterns, allocation_id id);

/* "LongString"; number is not NO_PATTERN. */
const char *pattern_name(pattern_number number);

/* The number of that name, or NO_PATTERN. */
pattern_number pattern_find(const char *name);

#endif
