#include "analyzer/base/memory.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { LARGE = 8 << 20, PAGE = 4096 };

static void account(struct memory_account *account, size_t more, size_t less)
{
	size_t used =
		atomic_fetch_add(&account->used, more - less) + more - less;
	size_t peak = atomic_load(&account->peak);

	while (used > peak &&
	       !atomic_compare_exchange_weak(&account->peak, &peak, used))
		;
}

struct error *memory_resize(struct memory *memory, size_t size)
{
	void *bytes;

	if (size == memory->size)
		return NULL;
	if (size == 0) {
		memory_release(memory);
		return NULL;
	}
	if (memory->bytes)
		bytes = mremap(memory->bytes, memory->size, size,
			       MREMAP_MAYMOVE);
	else
		bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			     0);
	if (bytes == MAP_FAILED)
		return &error_no_memory;
	/* The rest of the last page stays, and may come back. */
	if (size < memory->size && size % PAGE != 0)
		memset((uint8_t *)bytes + size, 0, PAGE - size % PAGE);
	/* Large arrays are read here and there: large pages spare much time. */
	if (size >= LARGE)
		madvise(bytes, size, MADV_HUGEPAGE);
	account(memory->account, size, memory->size);
	memory->bytes = bytes;
	memory->size = size;
	return NULL;
}

struct error *memory_reserve(struct memory *memory, size_t size)
{
	enum { MINIMUM = 1 << 16 };

	if (size <= memory->size)
		return NULL;
	if (size < MINIMUM)
		size = MINIMUM;
	if (size < memory->size + memory->size / 4)
		size = memory->size + memory->size / 4;
	return memory_resize(memory, (size + 4095) & ~(size_t)4095);
}

void memory_release(struct memory *memory)
{
	if (!memory->bytes)
		return;
	munmap(memory->bytes, memory->size);
	account(memory->account, 0, memory->size);
	memory->bytes = NULL;
	memory->size = 0;
}
