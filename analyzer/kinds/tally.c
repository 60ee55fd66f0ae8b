#include "analyzer/kinds/tally.h"

struct tally *tally_find(const struct tally_table *table, uint64_t key)
{
	return table_find(table, key, tally, tally->key == key);
}

struct error *tally_add_numbered(struct tally_table *table, struct tally tally, uint32_t *ret)
{
	struct tally *known = tally_find(table, tally.key);

	*ret = tally.number = known ? known->number : (uint32_t)table->count;
	if (!known)
		return table_append(table, tally.key, tally);
	known->count += tally.count;
	known->bytes += tally.bytes;
	known->owned += tally.owned;
	return NULL;
}

struct error *tally_add(struct tally_table *table, struct tally tally)
{
	uint32_t number;

	return tally.count ? tally_add_numbered(table, tally, &number) : NULL;
}

DEFINE_PUBLIC_COMPARE(tally_compare_counts, struct tally, DESCENDING(count), ASCENDING(key))

DEFINE_PUBLIC_COMPARE(tally_compare_bytes, struct tally, DESCENDING(bytes), ASCENDING(key))

DEFINE_PUBLIC_COMPARE(tally_compare_owned, struct tally, DESCENDING(owned), ASCENDING(key))

DEFINE_PUBLIC_COMPARE(tally_compare_keys, struct tally, ASCENDING(key))

DEFINE_PUBLIC_COMPARE(tally_compare_keys_down, struct tally, DESCENDING(key))
