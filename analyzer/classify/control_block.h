/*
 * The counts of std::shared_ptr, behind the vtable of its control block.
 *
 * libstdc++, <bits/shared_ptr_base.h>: | vtable | uses, weak | of 32 bits each; as long as there is
 * a use, one more is weak. The policy of locking (threads or none) makes no difference to them.
 * libc++, <__memory/shared_ptr.h>: | vtable | uses | weak | of a word each, and both one less.
 */
#pragma once

#include "analyzer/image/view.h"

struct shared_counts {
	uint64_t uses, weak;
};

/* False: these are no counts. */
bool control_block_read(struct view *view, uint64_t start, struct shared_counts *ret);
