/*
 * A cache, and requests that are lost, each with a stale word into the cache.
 *
 *	static  cache 0x218 ── 64 entries 0x38 ── a text 0x108 each
 *	   │                        │                │
 *	   └────── a request 0x48 ──┴────────────────┘    lost, for each entry
 *
 * The last request is for the cache itself, so that no dead frame has an entry.
 */

#include "tests/cli/programs/blocks.h"

enum { ENTRIES = 63 };

/* The targets of first words that are signatures. */
static const char *const cache_kind[] = { "cache" };
static const char *const request_kind[] = { "request" };

static void **volatile cache;

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

int main(void)
{
	serve();
	scrub();
	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		return 1;
	for (;;)
		pause();
}
