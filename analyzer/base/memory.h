/*
 * Large arrays: mapped, zeroed, counted, limited.
 *
 * Everything whose size grows with the dump comes from here, so that `heapcore -v` can say what
 * each stage holds, and --max-memory can end a stage that needs too much. Growing remaps instead of
 * copying, so an array never stands in memory twice.
 */
#pragma once

#include "analyzer/base/error.h"

#include <stdatomic.h>
#include <stddef.h>

struct memory_account {
	atomic_size_t used; /* bytes */
	atomic_size_t peak;
	size_t limit;	       /* of used; 0: none */
	atomic_size_t refused; /* bytes that were asked for last in vain */
	atomic_size_t beside;  /* and what was in use then */
};

/*
 * An array of bytes; { .account = account } is the empty one. Without an account it is borrowed:
 * its size is what it is, and its owner releases it.
 */
struct memory {
	void *bytes;
	size_t size;
	struct memory_account *account;
	size_t room; /* bytes of addresses kept for it; 0: none */
	size_t gone; /* bytes given back */
};

/*
 * Give the array exactly size bytes; what is new is zero. What would go beyond the limit is refused
 * as what the system does not have: with error_no_memory, and the array as it was.
 */
struct error *memory_resize(struct memory *memory, size_t size);

/* Give it at least size bytes, growing by a quarter at a time. */
struct error *memory_reserve(struct memory *memory, size_t size);

/*
 * Keep addresses for most bytes, so that memory_fill_room() lets the empty array grow up to these
 * without moving: threads may write to what is there already. Addresses are not memory, and are not
 * counted. memory_resize() and memory_release() end this.
 */
struct error *memory_keep_room(struct memory *memory, size_t most);

/* Give it size bytes, no less than it has, nor more than there is room for. */
struct error *memory_fill_room(struct memory *memory, size_t size);

/*
 * Give back the whole pages from start up to end, each once: nobody reads them any more, and the
 * array may only be released then. Returns the end of these pages.
 */
size_t memory_give_back(struct memory *memory, size_t start, size_t end);

/* Release it; the array is empty then, and may grow again. */
void memory_release(struct memory *memory);
DEFINE_DEINIT(memory_release, struct memory)
