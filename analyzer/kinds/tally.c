#include "analyzer/kinds/tally.h"

#include "analyzer/base/secret.h"

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

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

int tally_compare_counts(const void *a, const void *b)
{
	const struct tally *left = a, *right = b;
	int order = compare(right->count, left->count);

	return order ? order : compare(left->key, right->key);
}

int tally_compare_bytes(const void *a, const void *b)
{
	const struct tally *left = a, *right = b;
	int order = compare(right->bytes, left->bytes);

	return order ? order : compare(left->key, right->key);
}

int tally_compare_owned(const void *a, const void *b)
{
	const struct tally *left = a, *right = b;
	int order = compare(right->owned, left->owned);

	return order ? order : compare(left->key, right->key);
}

int tally_compare_keys(const void *a, const void *b)
{
	const struct tally *left = a, *right = b;

	return compare(left->key, right->key);
}

int tally_compare_keys_down(const void *a, const void *b)
{
	const struct tally *left = a, *right = b;

	return compare(right->key, left->key);
}

void tally_table_sort(struct tally_table *table, int (*order)(const void *a, const void *b))
{
	size_t count = 0;

	for (size_t i = 0; i < table->capacity; i++)
		if (table->slots[i].count)
			table->slots[count++] = table->slots[i];
	if (count)
		qsort(table->slots, count, sizeof(*table->slots), order);
}
