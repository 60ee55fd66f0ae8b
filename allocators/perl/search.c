/*
 * Finding the arenas: the first words of one of heads, and of a table of others, are constants but
 * for links, and what follows proves them. Several interpreters of a process have arenas each.
 */
#include "allocators/perl/perl.h"

#include "analyzer/base/list.h"

enum {
	WORD = 8,
	STEP = 16, /* blocks of malloc() are at its multiples */
	PIECE = 1 << 20,
	HEADS = PERL_ARENA / PERL_HEAD,
	TABLE_ENTRY = 24,
	TABLE_ENTRIES = (PERL_ARENA - STEP) / TABLE_ENTRY,
};

void perl_arenas_deinit(struct perl_arenas *arenas)
{
	arrays_release(&arenas->list, &arenas->tables);
}

bool perl_read_head(struct view *view, uint64_t address, struct perl_head *ret)
{
	return view_read(view, address, ret, sizeof(*ret));
}

/* Most heads of an arena do, also in a damaged one. The count of one never used is anything. */
static bool makes_sense(const struct perl_head *head)
{
	return head->body % WORD == 0 &&
	       (perl_type(head) == PERL_FREE ? head->flags == PERL_FREE
					     : perl_type(head) < PERL_TYPES && head->flags != 0);
}

static bool is_of_heads(struct view *view, uint64_t address)
{
	struct perl_head heads[HEADS];
	unsigned int valid = 0;

	if (!view_read(view, address, heads, sizeof(heads)))
		return false;
	for (unsigned int i = 1; i < HEADS; i++)
		valid += makes_sense(&heads[i]) || (heads[i].body == 0 && heads[i].count > 0);
	return valid >= HEADS / 4 * 3;
}

struct table_entry {
	uint64_t address, size;
	uint32_t type, padding;
};

static bool is_entry(struct view *view, const struct table_entry *entry)
{
	uint64_t word;

	return entry->address != 0 && entry->address % WORD == 0 &&
	       entry->size >= PERL_LEAST_BODY && entry->size <= PERL_ARENA &&
	       entry->type < PERL_TYPES && view_word(view, entry->address, &word);
}

/* Add the arenas of the table; what makes no sense in it is left out. */
static struct error *add_table(struct perl_arenas *arenas, struct view *view, uint64_t address,
			       uint64_t count)
{
	struct table_entry entries[TABLE_ENTRIES];
	uint64_t valid = 0;

	if (!view_read(view, address + STEP, entries, count * sizeof(*entries)))
		return NULL;
	for (uint64_t i = 0; i < count; i++)
		valid += is_entry(view, &entries[i]);
	if (2 * valid <= count)
		return NULL;
	for (uint64_t i = 0; i < count; i++) {
		struct perl_arena arena = {
			.address = entries[i].address,
			.size = (uint32_t)entries[i].size,
			.kind = entries[i].type,
		};

		if (is_entry(view, &entries[i]))
			TRY(array_append(&arenas->list, arena));
	}
	return array_append(
		&arenas->tables,
		(struct memory_range){ address, address + STEP + count * sizeof(*entries) });
}

static struct error *look_at(struct perl_arenas *arenas, struct view *view, uint64_t address,
			     const uint64_t words[2])
{
	static const struct perl_arena heads = {
		.size = HEADS * PERL_HEAD,
		.slot = PERL_HEAD,
		.kind = PERL_FREE,
	};
	uint64_t low = words[1] & UINT32_MAX, high = words[1] >> 32;
	struct perl_arena arena = heads;

	if (words[0] % WORD != 0)
		return NULL;
	arena.address = address;
	if (low == HEADS && high == 0 && is_of_heads(view, address))
		return array_append(&arenas->list, arena);
	if (low == TABLE_ENTRIES && high > 0 && high <= TABLE_ENTRIES)
		return add_table(arenas, view, address, high);
	return NULL;
}

static struct error *find_in(const struct image *image, const struct region *region,
			     struct perl_arenas *ret)
{
	struct view view = { image };
	uint64_t words[2], next;

	for (uint64_t at = region->start; at < region->end; at = next) {
		const uint8_t *bytes = region->bytes + (at - region->start);
		uint64_t left = region->end - at, size = left < PIECE ? left : PIECE;

		for (uint64_t i = 0; i + sizeof(words) <= size; i += STEP) {
			memcpy(words, bytes + i, sizeof(words));
			if ((uint32_t)words[1] - TABLE_ENTRIES <= HEADS - TABLE_ENTRIES)
				TRY(look_at(ret, &view, at + i, words));
		}
		ret->steps.left += size / WORD;
		next = at + size;
		if (next < region->end)
			next = image_next_data(image, next) / STEP * STEP;
		next = MAX(next, at + size);
	}
	return NULL;
}

struct error *perl_find_arenas(const struct image *image, struct perl_arenas *ret)
{
	list_for_each(region, image->regions, image->region_count) {
		if (region->bytes && (region->rights & RIGHT_WRITE) && !region->untouched)
			TRY(find_in(image, region, ret));
	}
	return NULL;
}
