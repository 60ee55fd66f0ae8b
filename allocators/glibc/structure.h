/*
 * The slots of the allocator's contract for cores without contents; see allocator.h.
 */
#pragma once

#include "allocators/glibc/glibc.h"

struct error *glibc_visit_structure(const struct heap *base, program_range_visitor *visit,
				    void *data);
bool glibc_wrote(const struct heap *base, struct block block, uint64_t offset, uint64_t word);
