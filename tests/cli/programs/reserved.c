/*
 * Reserves far more memory than there is, and uses a page of it, which alone holds one of two
 * blocks. The kernel takes a minute to write a core with all of it: it writes the middle only.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t RESERVED = (size_t)1 << 37;
static const size_t WRITTEN = (size_t)1 << 28;

/* Far down the stack: below all that the C library's pause() has there. */
static __attribute__((noinline)) void lose(void)
{
	void *volatile lost[512];

	lost[0] = malloc(2000);
	lost[0] = NULL;
}

int main(void)
{
	void *volatile *reserved = mmap(NULL, RESERVED, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if ((void *)reserved == MAP_FAILED)
		return 1;
	size_t side = (RESERVED - WRITTEN) / 2;
	if (madvise((void *)reserved, side, MADV_DONTDUMP) ||
	    madvise((char *)reserved + RESERVED - side, side, MADV_DONTDUMP))
		return 1;
	reserved[RESERVED / 2 / sizeof(void *)] = malloc(1000);
	lose();
	/* So that nothing is left in registers. */
	if (write(1, "ready\n", 6) != 6)
		return 1;
	pause();
	return 0;
}
