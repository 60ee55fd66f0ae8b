/*
 * The block that throw makes: a header, and behind it the object that was thrown.
 *
 * libsupc++/unwind-cxx.h and libc++abi/src/cxa_exception.h agree where words have 8 bytes:
 *
 *	0x00          0x08          0x10        0x18           0x60              0x80
 *	| use count 1 | use count 2 | type_info | destructor...| language of ... | object
 *
 * libstdc++ has its count in the first word, libc++ in the second. std::rethrow_exception() makes a
 * block without an object. In that of libc++abi, the second word is the address of the object
 * instead; libstdc++ has it in the first, and all else but the type_info 0x10 bytes further down.
 */
#pragma once

#include "analyzer/heap/index.h"
#include "analyzer/image/view.h"

struct exception {
	uint64_t type; /* its type_info */
	uint64_t uses; /* how many catch blocks and std::exception_ptr hold it */
	bool is_rethrown;
};

enum { EXCEPTION_HEADER = 0x80, RETHROWN_MOST = 0x90, MOST_EXCEPTION_USES = 1 << 20 };

/* True if a block may be an exception, by its size and first word; few others may. */
static inline bool exception_may_begin(struct memory_range range, uint64_t first)
{
	return first <= MOST_EXCEPTION_USES
		       ? range.end - range.start >= EXCEPTION_HEADER
		       : range.end - range.start < RETHROWN_MOST &&
				 range.end - range.start >= EXCEPTION_HEADER - 0x10;
}

/* Read that of a block that begins with the word first; false: it is none. */
bool exception_read(struct view *view, struct memory_range range, uint64_t first,
		    struct exception *ret);
