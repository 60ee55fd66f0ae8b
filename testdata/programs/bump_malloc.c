/*
 * A malloc that heapcore does not know, to be preloaded: it hands out memory upwards from one
 * mapping, and never takes it back. 16 bytes before each block hold its size.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { HEADER = 16 };

/* heapcore's self-check touches each page of it. */
static const size_t RESERVED = (size_t)1 << 30;
static atomic_uintptr_t next;

static uintptr_t start(void)
{
	uintptr_t begin = atomic_load(&next), mapped;

	if (begin)
		return begin;
	mapped = (uintptr_t)mmap(NULL, RESERVED, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return atomic_compare_exchange_strong(&next, &begin, mapped) ? mapped : begin;
}

void *memalign(size_t alignment, size_t size)
{
	size_t unit = alignment < HEADER ? HEADER : alignment;
	uintptr_t old = start(), block;

	size = (size + HEADER - 1) & ~(size_t)(HEADER - 1);
	do {
		block = (old + HEADER + unit - 1) & ~(uintptr_t)(unit - 1);
	} while (!atomic_compare_exchange_weak(&next, &old, block + size));
	((size_t *)block)[-1] = size;
	return (void *)block;
}

void *malloc(size_t size)
{
	return memalign(HEADER, size);
}

void free(void *block)
{
	(void)block;
}

/* Memory of the mapping is zeros, and never used twice. */
void *calloc(size_t count, size_t size)
{
	size_t bytes;

	return __builtin_mul_overflow(count, size, &bytes) ? NULL : malloc(bytes);
}

size_t malloc_usable_size(void *block)
{
	return block ? ((size_t *)block)[-1] : 0;
}

void *realloc(void *block, size_t size)
{
	size_t old = malloc_usable_size(block);
	void *copy = malloc(size);

	return block ? memcpy(copy, block, old < size ? old : size) : copy;
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return memalign(alignment, size);
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
	*ret = memalign(alignment, size);
	return 0;
}
