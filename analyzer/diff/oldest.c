#include "analyzer/diff/oldest.h"

#include "analyzer/base/bytes.h"

#include <string.h>

/*
 * An entry in the list: its type in two bytes, how far its start is behind the end of the one
 * before, its size and its key. Numbers have 7 bits in each byte, and the highest bit in all bytes
 * but the last.
 */
enum { MOST_ENTRY_BYTES = 32, STEP = 1 << 20 };

static uint8_t *write_number(uint8_t *at, uint64_t number)
{
	for (; number >> 7; number >>= 7)
		*at++ = (uint8_t)(number | 0x80);
	*at++ = (uint8_t)number;
	return at;
}

static const uint8_t *read_number(const uint8_t *at, uint64_t *ret)
{
	uint64_t number = *at & 0x7f;

	for (unsigned int shift = 7; *at++ & 0x80; shift += 7)
		number |= (uint64_t)(*at & 0x7f) << shift;
	*ret = number;
	return at;
}

static uint16_t find_type(struct matching *matching, allocation_id id)
{
	uint64_t signature = analysis_signature(matching->analysis, id);
	struct known_type *known = &matching->types[signature / 8 % KNOWN_TYPES];
	kind_key key;

	/* Without a signature it may have an identity. */
	if (signature && known->signature == signature)
		return known->type;
	key = census_class(matching->analysis, id);
	known->signature = signature;
	known->type = key ? hash_add(0, key) >> 48 | 1 : 0;
	return known->type;
}

void oldest_deinit(struct oldest *oldest)
{
	memory_release(&oldest->list);
	array_release(&oldest->groups);
	bitmap_deinit(&oldest->everywhere);
	oldest->count = 0;
}

static struct error *write_entry(struct matching *matching, struct oldest_entry entry)
{
	struct memory *list = &matching->oldest->list;
	uint64_t end = matching->entry.start + matching->entry.size;
	uint8_t *at;

	if (list->size - matching->bytes < MOST_ENTRY_BYTES)
		TRY(memory_fill_room(list, matching->bytes + STEP));
	at = (uint8_t *)list->bytes + matching->bytes;
	memcpy(at, &entry.type, sizeof(entry.type));
	at = write_number(at + sizeof(entry.type), entry.start - end);
	at = write_number(at, entry.size);
	at = write_number(at, entry.key);
	matching->bytes = (size_t)(at - (uint8_t *)list->bytes);
	matching->entry = entry;
	return NULL;
}

static void read_entry(struct matching *matching)
{
	const uint8_t *list = matching->oldest->list.bytes, *at = list + matching->bytes;
	struct oldest_entry *entry = &matching->entry;
	uint64_t gap, key;

	memcpy(&entry->type, at, sizeof(entry->type));
	at = read_number(at + sizeof(entry->type), &gap);
	entry->start += entry->size + gap;
	at = read_number(at, &entry->size);
	at = read_number(at, &key);
	entry->key = (uint32_t)key;
	matching->bytes = (size_t)(at - list);
	matching->is_found = false;
}

/* Go on to the next entry; if this one was not found, it is gone. */
static void leave_entry(struct matching *matching)
{
	struct oldest *oldest = matching->oldest;
	uint32_t key = matching->entry.key;

	if (!matching->is_found && !matching->is_newest)
		bitmap_clear(&oldest->everywhere, matching->number);
	else if (!matching->is_found && key)
		matching->groups->groups.items[oldest->groups.items[key - 1]].gone++;
	if (++matching->number < oldest->count)
		read_entry(matching);
}

static struct error *sort_out(struct matching *matching, allocation_id id, uint32_t key)
{
	__auto_type tallies = &matching->tallies;
	struct match_tally *tally;

	if (key >= tallies->count) {
		TRY(array_reserve(tallies, key + 1 - tallies->count));
		tallies->count = key + (size_t)1;
	}
	tally = tallies->items + key;
	if (!matching->is_found) {
		bitmap_set(&matching->added, id);
		tally->added++;
	} else if (bitmap_get(&matching->oldest->everywhere, matching->number)) {
		bitmap_set(&matching->survived, id);
		tally->survived++;
	}
	return NULL;
}

struct error *matching_begin(struct matching *matching)
{
	struct oldest *oldest = matching->oldest;
	struct memory_account *account = oldest->list.account;
	const struct allocation_index *index = analysis_index(matching->analysis);

	matching->tallies.memory.account = account;
	if (matching->is_oldest) {
		oldest->count = bitmap_weight(allocation_used(index));
		TRY(bitmap_init(&oldest->everywhere, oldest->count, account));
		bitmap_fill(&oldest->everywhere);
		return memory_keep_room(&oldest->list, oldest->count * MOST_ENTRY_BYTES + STEP);
	}
	if (oldest->count)
		read_entry(matching);
	if (matching->is_newest) {
		TRY(bitmap_init(&matching->added, allocation_count(index), account));
		TRY(bitmap_init(&matching->survived, allocation_count(index), account));
	}
	return NULL;
}

void matching_deinit(struct matching *matching)
{
	array_release(&matching->tallies);
	bitmap_deinit(&matching->added);
	bitmap_deinit(&matching->survived);
}

struct error *matching_visit(void *data, allocation_id id, struct memory_range range, uint32_t key)
{
	struct matching *matching = data;
	const struct oldest_entry *next = &matching->entry;
	uint64_t size = range.end - range.start;
	uint16_t type = find_type(matching, id);

	if (matching->is_oldest)
		return write_entry(matching, (struct oldest_entry){ range.start, size, type, key });
	while (matching->number < matching->oldest->count && next->start < range.start)
		leave_entry(matching);
	/* An entry of another type was freed there, and the address reused. */
	matching->is_found = matching->number < matching->oldest->count &&
			     next->start == range.start && next->size == size && next->type == type;
	return matching->is_newest ? sort_out(matching, id, key) : NULL;
}

struct error *matching_end(struct matching *matching, struct group_numbers *groups)
{
	const struct match_tally *tallies = matching->tallies.items;

	if (matching->is_oldest) {
		array_swap(&matching->oldest->groups, groups);
		return memory_resize(&matching->oldest->list, matching->bytes);
	}
	while (matching->number < matching->oldest->count)
		leave_entry(matching);
	for (size_t i = 0; i < groups->count && i + 1 < matching->tallies.count; i++) {
		struct diff_group *group = &matching->groups->groups.items[groups->items[i]];

		group->added += tallies[i + 1].added;
		group->survived += tallies[i + 1].survived;
	}
	return NULL;
}
