/*
 * Checks whether known heaps explain the process's memory.
 *
 * A runtime or an allocator that nobody knows has its objects in anonymous memory. That is a root,
 * so nothing in it is ever leaked: a count of 0 then says little. Its pages are full of addresses
 * of each other, which those of buffers, tables and other data are not.
 */
#pragma once

#include "analyzer/analysis/analysis.h"

/*
 * Add a finding if most of the private memory is in no known heap, nor anything else that is known:
 * an incomplete one if it looks like objects. Looks at samples only. Builds what it needs.
 */
struct error *unexplained_note(struct analysis *analysis);
