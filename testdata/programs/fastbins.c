/*
 * Free blocks in every list that malloc has: the thread's cache, fast bins, small bins, large bins
 * and the list of the unsorted.
 */

#include "truth.h"

#include <malloc.h>
#include <stdlib.h>

enum {
	BIN_CLASSES = 140,
	BLOCKS_PER_CLASS = 12,
	FAST_CLASSES = 10,
	FAST_BLOCKS_PER_CLASS = 60,
	UNSORTED_BLOCKS = 20,
	SPACERS = BIN_CLASSES * BLOCKS_PER_CLASS + UNSORTED_BLOCKS,
};

static void *volatile spacers[SPACERS];
static size_t spacer_count;

/* Between two blocks that are freed, so that they are not merged. */
static void add_spacer(void)
{
	void *block = truth_block(8 + spacer_count % 30);

	if (spacer_count % 2) {
		truth_lost(block);
	} else {
		truth_kept(block);
		spacers[spacer_count] = block;
	}
	spacer_count++;
}

/* Sixteen bytes apart where bins are, and then wider. */
static size_t bin_class_size(size_t i)
{
	return i < 80 ? 24 + 16 * i : 1400 + (i - 80) * (i - 80) * 25;
}

static OUT_OF_LINE void fill_bins(void)
{
	void *blocks[BIN_CLASSES][BLOCKS_PER_CLASS];

	for (size_t i = 0; i < BIN_CLASSES; i++) {
		for (size_t j = 0; j < BLOCKS_PER_CLASS; j++) {
			blocks[i][j] = truth_block(bin_class_size(i));
			add_spacer();
		}
	}
	for (size_t i = 0; i < BIN_CLASSES; i++)
		for (size_t j = 0; j < BLOCKS_PER_CLASS; j++)
			truth_free(blocks[i][j]);

	/* None of the unsorted fits: each goes to the bin of its size. */
	truth_lost(truth_block(120000));
}

/* Fast bins last: malloc() of anything large would empty them. */
static OUT_OF_LINE void fill_unsorted_and_fast_bins(void)
{
	void *unsorted[UNSORTED_BLOCKS];
	void *fast[FAST_CLASSES][FAST_BLOCKS_PER_CLASS];

	for (size_t i = 0; i < UNSORTED_BLOCKS; i++) {
		unsorted[i] = truth_block(110000 + 16 * i);
		add_spacer();
	}
	for (size_t i = 0; i < FAST_CLASSES; i++)
		for (size_t j = 0; j < FAST_BLOCKS_PER_CLASS; j++)
			fast[i][j] = truth_block(8 + 16 * i);
	for (size_t i = 0; i < UNSORTED_BLOCKS; i++)
		truth_free(unsorted[i]);
	for (size_t j = 0; j < FAST_BLOCKS_PER_CLASS; j++)
		for (size_t i = 0; i < FAST_CLASSES; i++)
			truth_free(fast[i][j * 7 % FAST_BLOCKS_PER_CLASS]);
}

int main(void)
{
	truth_open();
	truth_warm_up();
	/* The largest that malloc accepts. */
	mallopt(M_MXFAST, 160);
	fill_bins();
	fill_unsorted_and_fast_bins();
	truth_ready();
}
