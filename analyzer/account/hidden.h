/*
 * Memory that the program uses and that the core does not have at all.
 *
 * gcore writes nothing of mappings that a program keeps out of cores (MADV_DONTDUMP), nor of shared
 * huge pages: there is a hole, as between any mappings. What only such memory refers to looks
 * leaked. Variables that refer into a hole show that something is there. Others were left behind by
 * what was unmapped, such as a thread's stack or a large block.
 */
#pragma once

#include "analyzer/analysis/analysis.h"

/* Add an incomplete finding if something leaked, and memory is hidden. Builds what it needs. */
struct error *hidden_note(struct analysis *analysis);
