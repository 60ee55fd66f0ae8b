/*
 * Damage of one sort that an allocator met: how often, and where first.
 */
#pragma once

#include "analyzer/base/error.h"

#include <stdint.h>

struct heap_damage {
	uint64_t count, first;
};

static inline void heap_damage_note(struct heap_damage *damage, uint64_t address)
{
	if (damage->count++ == 0)
		damage->first = address;
}

/* Damage to lists of free blocks, by the damaged block. */
struct heap_list_damage {
	struct heap_damage links; /* lead elsewhere: the blocks were written to */
	struct heap_damage twice; /* blocks that lists have twice: they were freed twice */
};

/* Say what they are of blocks such as "objects"; what follows in a broken list counts as used. */
void heap_list_damage_report(const struct heap_list_damage *damage, struct findings *findings,
			     const char *allocator, const char *blocks);

/* Say what it is and what follows, if there is any. */
void heap_damage_report(const struct heap_damage *damage, struct findings *findings,
			const char *allocator, const char *what, const char *follows);
