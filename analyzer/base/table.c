#include "analyzer/base/table.h"

#include <sys/auxv.h>

enum { FIRST_SLOT_BITS = 6 };

uint64_t secret_factor(void)
{
	const void *random = (const void *)getauxval(AT_RANDOM);
	uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);

	/* The first half guards stacks: it is better not given away. */
	if (random)
		memcpy(&factor, (const char *)random + sizeof(factor), sizeof(factor));
	return factor | 1;
}

static void put(struct table_slots *slots, struct table_slot slot)
{
	size_t place = slot.hash >> slots->shift;

	while (slots->list[place].number)
		place = (place + 1) & (UINT32_MAX >> slots->shift);
	slots->list[place] = slot;
}

/* Twice as many slots, or the first. */
static struct error *grow(struct table_slots *slots, struct memory_account *account)
{
	size_t count = slots->memory.size / sizeof(struct table_slot);
	struct table_slots larger = {
		.memory.account = account,
		.factor = count ? slots->factor : secret_factor(),
		.shift = count ? slots->shift - 1 : 32 - FIRST_SLOT_BITS,
	};

	if (count > UINT32_MAX)
		return &error_no_memory;
	TRY(memory_resize(&larger.memory, sizeof(struct table_slot) << (32 - larger.shift)));
	for (size_t i = 0; i < count; i++)
		if (slots->list[i].number)
			put(&larger, slots->list[i]);
	memory_release(&slots->memory);
	*slots = larger;
	return NULL;
}

struct error *table_slots_add(struct table_slots *slots, struct memory_account *account,
			      uint64_t key, size_t count)
{
	if (count > slots->memory.size / sizeof(struct table_slot) / 4 * 3)
		TRY(grow(slots, account));
	put(slots, (struct table_slot){ secret_hash(key, slots->factor), (uint32_t)count });
	return NULL;
}
