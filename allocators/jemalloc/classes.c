/*
 * Size classes (size_classes.sh up to 5.0, sc.c from 5.1 on).
 *
 * Up to four times the quantum, they are its multiples; then each doubling is cut into four. With a
 * quantum of 16, the first class is 8.
 */
#include "allocators/jemalloc/jemalloc.h"

enum { LOG_TINY = 3, LOG_QUANTUM_MOST = 4, GROUP = 4 };

/* Slabs are of classes below the first that is a group of pages. */
static uint64_t largest_small(unsigned int log_page)
{
	return UINT64_C(7) << (log_page - 1);
}

void jemalloc_set_classes(struct jemalloc_layout *layout, unsigned int log_quantum,
			  unsigned int log_page, unsigned int word)
{
	const unsigned int largest = 8 * word - 2;
	unsigned int count = 0;
	uint64_t quantum = UINT64_C(1) << log_quantum;

	for (unsigned int i = LOG_TINY; i < log_quantum; i++)
		layout->classes[count++] = UINT64_C(1) << i;
	for (unsigned int i = 1; i <= GROUP; i++)
		layout->classes[count++] = i * quantum;
	for (unsigned int i = log_quantum + 2; i <= largest; i++)
		for (unsigned int j = 1; j <= GROUP && (i < largest || j < GROUP); j++)
			layout->classes[count++] =
				(UINT64_C(1) << i) + j * (UINT64_C(1) << (i - 2));
	layout->log_quantum = log_quantum;
	layout->class_count = count;
	layout->class_bits = word == sizeof(uint64_t) ? 8 : 7;
	for (layout->small_count = 0;
	     layout->classes[layout->small_count] <= largest_small(log_page);)
		layout->small_count++;
}

/* The distance of size classes just above wanted bytes. */
static uint64_t spacing(uint64_t wanted, unsigned int log_quantum)
{
	uint64_t quantum = UINT64_C(1) << log_quantum;

	if (wanted <= GROUP * quantum)
		return quantum;
	return UINT64_C(1) << (63 - __builtin_clzll(wanted - 1) - 2);
}

/* From 5.3.1 on, large allocations may be of any number of pages. */
bool jemalloc_size_fits(uint64_t size, uint64_t wanted, bool exactly)
{
	uint64_t coarse = spacing(wanted, LOG_QUANTUM_MOST);

	return size - wanted < coarse && (!exactly || size % (coarse < PAGE ? 8 : PAGE) == 0);
}
