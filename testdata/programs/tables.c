/*
 * Large tables of pointers to small blocks: one of 40 MB, which is kept, one of 16 MB, which is
 * lost, and a hundred of 200 KB of each kind. Nothing else refers to the blocks. One that scans
 * tables in parts must lose nothing where two parts meet.
 */

#include "truth.h"

enum {
	BLOCKS = 20000,
	KEPT_WORDS = 5 << 20,
	LOST_WORDS = 2 << 20,
	TABLES = 100,
	TABLE_WORDS = 25000,
};

static void **volatile kept;

/* Some of those in the table, in any order, some of them twice. */
static OUT_OF_LINE void copy_some(void **table, size_t begin, size_t end, void **from, size_t count,
				  uint32_t *random)
{
	for (size_t i = begin; i < end; i++)
		table[i] = from[truth_random(random, (uint32_t)count)];
}

static OUT_OF_LINE void **make_tables(size_t words, void (*tell)(const void *block))
{
	void **table = truth_block(words * sizeof(*table));
	uint32_t random = (uint32_t)words;

	tell(table);
	for (size_t i = 0; i < BLOCKS; i++) {
		table[i] = truth_block(16 + i % 100);
		tell(table[i]);
	}
	for (size_t i = 0; i < TABLES; i++) {
		void **small = truth_block(TABLE_WORDS * sizeof(*small));

		tell(small);
		copy_some(small, 0, TABLE_WORDS, table, BLOCKS, &random);
		table[BLOCKS + i] = small;
	}
	copy_some(table, BLOCKS + TABLES, words, table, BLOCKS + TABLES, &random);
	return table;
}

static OUT_OF_LINE void populate(void)
{
	kept = make_tables(KEPT_WORDS, truth_kept);
	make_tables(LOST_WORDS, truth_lost);
}

int main(void)
{
	truth_open();
	populate();
	truth_ready();
}
