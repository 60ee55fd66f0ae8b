#include "analyzer/base/memory.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20, LARGE = HUGE_PAGE };

/* Count more bytes, unless that is beyond the limit. */
static bool account_add(struct memory_account *account, size_t more)
{
	size_t used = atomic_load(&account->used);
	size_t peak = atomic_load(&account->peak);

	do {
		if (account->limit && (used > account->limit || more > account->limit - used))
			return false;
	} while (!atomic_compare_exchange_weak(&account->used, &used, used + more));
	used += more;
	while (used > peak && !atomic_compare_exchange_weak(&account->peak, &peak, used))
		;
	return true;
}

static void account_subtract(struct memory_account *account, size_t less)
{
	atomic_fetch_sub(&account->used, less);
}

static struct error *refuse(struct memory_account *account, size_t more)
{
	atomic_store(&account->refused, more);
	atomic_store(&account->beside, atomic_load(&account->used));
	return &error_no_memory;
}

static size_t whole_pages(size_t size)
{
	size_t page = (size_t)getpagesize();

	return (size + page - 1) & ~(page - 1);
}

/* Align large mappings to huge pages, so that the kernel uses some and moves them whole. */
static void *map(size_t size)
{
	size_t more = size >= LARGE ? HUGE_PAGE : 0, before;
	uint8_t *bytes = mmap(NULL, size + more, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (bytes == MAP_FAILED || !more)
		return bytes;
	before = -(uintptr_t)bytes % HUGE_PAGE;
	if (before)
		munmap(bytes, before);
	munmap(bytes + before + whole_pages(size), more - before);
	return bytes + before;
}

static void *remap(void *bytes, size_t old_size, size_t size)
{
	void *moved, *place;

	if (size < LARGE)
		return mremap(bytes, old_size, size, MREMAP_MAYMOVE);
	moved = mremap(bytes, old_size, size, 0);
	if (moved != MAP_FAILED)
		return moved;
	place = map(size);
	if (place == MAP_FAILED)
		return place;
	moved = mremap(bytes, old_size, size, MREMAP_MAYMOVE | MREMAP_FIXED, place);
	if (moved == MAP_FAILED)
		munmap(place, size);
	return moved;
}

struct error *memory_keep_room(struct memory *memory, size_t most)
{
	void *bytes;

	assert(memory->account && !memory->bytes);
	most = whole_pages(most);
	if (most == 0)
		return NULL;
	bytes = map(most);
	if (bytes == MAP_FAILED)
		return refuse(memory->account, most);
	if (most >= LARGE)
		madvise(bytes, most, MADV_HUGEPAGE);
	memory->bytes = bytes;
	memory->room = most;
	return NULL;
}

struct error *memory_fill_room(struct memory *memory, size_t size)
{
	assert(size >= memory->size && size <= memory->room);
	if (!account_add(memory->account, size - memory->size))
		return refuse(memory->account, size - memory->size);
	memory->size = size;
	return NULL;
}

/* Release the addresses that the array does not fill. */
static void leave_room(struct memory *memory)
{
	size_t filled = whole_pages(memory->size);

	if (memory->room > filled)
		munmap((uint8_t *)memory->bytes + filled, memory->room - filled);
	if (filled == 0)
		memory->bytes = NULL;
	memory->room = 0;
}

struct error *memory_resize(struct memory *memory, size_t size)
{
	size_t more = size > memory->size ? size - memory->size : 0;
	size_t less = size < memory->size ? memory->size - size : 0;
	void *bytes;

	if (memory->room)
		leave_room(memory);
	if (size == memory->size)
		return NULL;
	assert(memory->account && !memory->gone);
	if (size == 0) {
		memory_release(memory);
		return NULL;
	}
	if (more && !account_add(memory->account, more))
		return refuse(memory->account, more);
	if (memory->bytes)
		bytes = remap(memory->bytes, memory->size, size);
	else
		bytes = map(size);
	if (bytes == MAP_FAILED) {
		account_subtract(memory->account, more);
		return refuse(memory->account, more);
	}
	/* The rest of the last page stays, and may come back. */
	if (size < memory->size)
		memset((uint8_t *)bytes + size, 0, whole_pages(size) - size);
	/* Large arrays are read here and there: large pages spare much time. */
	if (size >= LARGE)
		madvise(bytes, size, MADV_HUGEPAGE);
	account_subtract(memory->account, less);
	memory->bytes = bytes;
	memory->size = size;
	return NULL;
}

struct error *memory_reserve(struct memory *memory, size_t size)
{
	enum { MINIMUM = 1 << 16 };

	if (size <= memory->size)
		return NULL;
	size = MAX(size, MINIMUM);
	size = MAX(size, memory->size + memory->size / 4);
	/* Have the kernel use huge pages also where the array grows. */
	if (size >= LARGE)
		size = (size + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1);
	return memory_resize(memory, whole_pages(size));
}

size_t memory_give_back(struct memory *memory, size_t start, size_t end)
{
	assert(memory->account && !memory->room && start <= end && end <= memory->size);
	start = whole_pages(start);
	end -= end % (size_t)getpagesize();
	if (start >= end || madvise((uint8_t *)memory->bytes + start, end - start, MADV_DONTNEED))
		return end;
	memory->gone += end - start;
	account_subtract(memory->account, end - start);
	return end;
}

void memory_release(struct memory *memory)
{
	if (memory->room)
		leave_room(memory);
	if (!memory->bytes)
		return;
	if (memory->account) {
		munmap(memory->bytes, memory->size);
		account_subtract(memory->account, memory->size - memory->gone);
	}
	memory->bytes = NULL;
	memory->size = 0;
	memory->gone = 0;
}
