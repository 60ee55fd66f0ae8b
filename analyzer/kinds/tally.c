#include "analyzer/kinds/tally.h"

#include "analyzer/base/secret.h"
#include "analyzer/base/sort.h"

enum { FIRST_CAPACITY = 256 };

void tally_table_init(struct tally_table *table, struct memory_account *account)
{
	*table = (struct tally_table){
		.memory = { .account = account },
		.factor = secret_factor(),
	};
}

void tally_table_deinit(struct tally_table *table)
{
	memory_release(&table->memory);
	*table = (struct tally_table){ 0 };
}

/* The slot of the key, or the empty one where it belongs. */
static struct tally *find_slot(struct tally *slots, size_t capacity, uint64_t factor, uint64_t key)
{
	size_t slot = secret_slot(key, factor, capacity);

	while (slots[slot].count && slots[slot].key != key)
		slot = (slot + 1) & (capacity - 1);
	return &slots[slot];
}

static struct error *grow(struct tally_table *table)
{
	size_t capacity = table->capacity ? table->capacity * 2 : FIRST_CAPACITY;
	struct memory memory = { .account = table->memory.account };
	struct error *error = memory_resize(&memory, capacity * sizeof(struct tally));

	if (error)
		return error;
	for (size_t i = 0; i < table->capacity; i++)
		if (table->slots[i].count)
			*find_slot(memory.bytes, capacity, table->factor, table->slots[i].key) =
				table->slots[i];
	memory_release(&table->memory);
	table->memory = memory;
	table->slots = memory.bytes;
	table->capacity = capacity;
	return NULL;
}

struct error *tally_add_numbered(struct tally_table *table, struct tally tally, uint32_t *ret)
{
	struct tally *slot;
	struct error *error;

	if (table->count * 2 >= table->capacity) {
		error = grow(table);
		if (error)
			return error;
	}
	slot = find_slot(table->slots, table->capacity, table->factor, tally.key);
	if (!slot->count)
		slot->number = (uint32_t)table->count++;
	slot->key = tally.key;
	slot->count += tally.count;
	slot->bytes += tally.bytes;
	slot->owned += tally.owned;
	*ret = slot->number;
	return NULL;
}

struct error *tally_add(struct tally_table *table, struct tally tally)
{
	uint32_t number;

	return tally.count ? tally_add_numbered(table, tally, &number) : NULL;
}

struct tally *tally_find(const struct tally_table *table, uint64_t key)
{
	struct tally *tally;

	if (!table->capacity)
		return NULL;
	tally = find_slot(table->slots, table->capacity, table->factor, key);
	return tally->count ? tally : NULL;
}

DEFINE_PUBLIC_COMPARE(tally_compare_counts, struct tally, DESCENDING(count), ASCENDING(key))

DEFINE_PUBLIC_COMPARE(tally_compare_bytes, struct tally, DESCENDING(bytes), ASCENDING(key))

DEFINE_PUBLIC_COMPARE(tally_compare_owned, struct tally, DESCENDING(owned), ASCENDING(key))

DEFINE_PUBLIC_COMPARE(tally_compare_keys, struct tally, ASCENDING(key))

DEFINE_PUBLIC_COMPARE(tally_compare_keys_down, struct tally, DESCENDING(key))

void tally_table_sort(struct tally_table *table, int (*order)(const void *a, const void *b))
{
	size_t count = 0;

	for (size_t i = 0; i < table->capacity; i++)
		if (table->slots[i].count)
			table->slots[count++] = table->slots[i];
	SORT(table->slots, count, order);
}
