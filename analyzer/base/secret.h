/*
 * A number for hash tables whose keys come from a dump.
 *
 * The maker of a dump could choose keys that a known hash puts into one slot, and
 * each lookup would pass all of them. Multiplied by an odd number that they cannot know, few of any
 * keys share their highest bits (Dietzfelbinger et al., 1997); these go into the lowest, and the
 * product with another number, so that keys at even distances do not fill neighbouring slots. So
 * nothing that is shown may depend on the order of slots.
 */
#ifndef ANALYZER_BASE_SECRET_H
#define ANALYZER_BASE_SECRET_H

#include <stddef.h>
#include <stdint.h>

/* Odd; the same in all of a process's life, drawn by the kernel. */
uint64_t secret_factor(void);

/* The key's slot of so many, a power of two and at least 2. */
static inline size_t secret_slot(uint64_t key, uint64_t factor, size_t slots)
{
	uint64_t mixed = key * factor;

	mixed = (mixed ^ mixed >> 32) * UINT64_C(0x9e3779b97f4a7c15);
	return (size_t)(mixed >> (64 - __builtin_ctzl(slots)));
}

#endif
