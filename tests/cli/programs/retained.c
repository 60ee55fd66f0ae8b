/*
 * Allocations that hold others, alone or along with others.
 *
 *	static	cache 0x28 ─┬─ entry 0x38 ─┬─ 0x108
 *		            │              ├─ 0x208, of both entries
 *		            ├─ entry 0x38 ─┴─ 0x118
 *		            └─ 0x408 ── 0x88
 *	static	the 0x408 as well
 *	static	node 0x18 ── node 0x18 ── node 0x18 ── 0x48
 *	lost	0x68 ── 0x78 ── the 0x68: a ring, that refers to 0x98
 *	free	0x308, to which the second entry refers
 */

#include "tests/cli/programs/blocks.h"

/* The targets of first words that are signatures. */
static const char *const cache_kind[] = { "cache" };
static const char *const entry_kind[] = { "entry" };
static const char *const node_kind[] = { "node" };

static void **volatile cache;
static void **volatile pinned;
static void **volatile nodes;

static OUT_OF_LINE void **entry(size_t size, void **shared)
{
	void **memory = block(0x38, entry_kind);

	memory[1] = block(size, NULL);
	memory[2] = shared;
	return memory;
}

static OUT_OF_LINE void fill_cache(void)
{
	void **shared = block(0x208, NULL), **second;

	cache = block(0x28, cache_kind);
	cache[1] = entry(0x108, shared);
	cache[2] = second = entry(0x118, shared);
	cache[3] = pinned = block(0x408, NULL);
	pinned[7] = block(0x88, NULL);
	second[3] = block(0x308, NULL);
	free(second[3]);
}

static OUT_OF_LINE void fill_nodes(void)
{
	for (int i = 0; i < 3; i++) {
		void **node = block(0x18, node_kind);

		node[1] = nodes ? nodes : block(0x48, NULL);
		nodes = node;
	}
}

static OUT_OF_LINE void lose_ring(void)
{
	void **first = block(0x68, NULL), **second = block(0x78, NULL);

	first[3] = second;
	second[3] = first;
	second[4] = block(0x98, NULL);
}

int main(void)
{
	fill_cache();
	fill_nodes();
	lose_ring();
	scrub();
	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		return 1;
	for (;;)
		pause();
}
