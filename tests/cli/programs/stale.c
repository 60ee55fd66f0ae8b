/*
 * A cache, and requests that are lost, each with a stale word into the cache.
 *
 *	static  cache 0x218 ── 64 entries 0x38 ── a text 0x108 each
 *	   │                        │                │
 *	   └────── a request 0x48 ──┴────────────────┘    lost, for each entry
 *
 * The last request is for the cache itself, so that no dead frame has an entry.
 *
 * Nothing of libc that would allocate is used.
 */

#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#define OUT_OF_LINE __attribute__((noinline, noclone))

enum { ENTRIES = 63 };

/* What first words that are signatures point to. */
static const char *const cache_kind[] = { "cache" };
static const char *const request_kind[] = { "request" };

static void **volatile cache;

/* A zeroed block of that size, to its last byte. */
static OUT_OF_LINE void **block(size_t size, const char *const *kind)
{
	void **memory = calloc(1, size);

	if (!memory || malloc_usable_size(memory) != size)
		abort();
	memory[0] = (void *)kind;
	return memory;
}

static OUT_OF_LINE void lose_request(void **entry, void **text)
{
	void **request = block(0x48, request_kind);

	request[3] = entry;
	request[5] = text;
}

static OUT_OF_LINE void serve(void)
{
	cache = block(0x218, cache_kind);
	for (int i = 0; i < ENTRIES; i++) {
		void **entry = block(0x38, NULL);

		entry[2] = block(0x108, NULL);
		cache[1 + i] = entry;
		lose_request(entry, entry[2]);
	}
	cache[0x40] = block(0x18, NULL);
	lose_request(cache, cache);
}

/* Overwrite what dead frames left behind, and registers. */
static OUT_OF_LINE void scrub(void)
{
	volatile char dead[1 << 16];

	for (size_t i = 0; i < sizeof(dead); i++)
		dead[i] = 0;
	__asm__ volatile(""
			 :
			 :
			 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10",
			   "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1",
			   "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
}

int main(void)
{
	serve();
	scrub();
	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		return 1;
	for (;;)
		pause();
}
