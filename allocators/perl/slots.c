/* Finds the slots in use: heads say so themselves; others are used if a used one refers to them. */
#include "allocators/perl/perl.h"

#include "analyzer/base/keep.h"
#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"

enum {
	WORD = 8,
	MISSING = 16,	/* words that bodies of the types from PV to PVNV lack, in bytes */
	IV_MEMBER = 16, /* the head's last word is a member of the body that is not there: */
	NV_MEMBER = 24, /* so many bytes before the head, that would begin */
	HASH_BODY = 32, /* without struct xpvhv_aux */
	CHAINS = 24,	/* the number of the last one, in the body */
	ITERATED = 16,	/* in struct xpvhv_aux */
	MOST_SIZES = 4,
};

/* Sizes of bodies, by kind of arena; that of more than one differs between versions. */
static const uint32_t sizes[PERL_TYPES][MOST_SIZES] = {
	[PERL_ENTRIES] = { PERL_ENTRY },
	[PERL_LARGE_HASHES] = { 88, 144 },
	[PERL_PV] = { 16 },
	[PERL_INVLIST] = { 40 },
	[PERL_PVIV] = { 24 },
	[PERL_PVNV] = { 32 },
	[PERL_PVMG] = { 48 },
	[PERL_REGEXP] = { 192, 224, 184, 200 },
	[PERL_PVGV] = { 48 },
	[PERL_PVLV] = { 80 },
	[PERL_PVAV] = { 40 },
	[PERL_PVHV] = { HASH_BODY },
	[PERL_PVCV] = { 104, 112 },
	[PERL_PVIO] = { 136 },
	[PERL_PVOBJ] = { 32 },
};

struct perl_arena *perl_find_arena(const struct perl_arenas *arenas, uint64_t address)
{
	struct perl_arena *arena =
		LIST_LAST(arenas->list.items, arenas->list.count, address, address);

	return arena && address - arena->address < arena->size ? arena : NULL;
}

/* The number of the arena's slot that starts at address; false: none does. */
static bool perl_slot_at(const struct perl_arena *arena, uint64_t address, uint32_t *ret)
{
	uint64_t offset = address - arena->address;

	if (arena->slot == 0 || offset % arena->slot != 0 || arena->size - offset < arena->slot)
		return false;
	*ret = (uint32_t)(offset / arena->slot);
	return true;
}

/* The start of the body that the head points to. */
static uint64_t body_start(const struct perl_head *head)
{
	unsigned int type = perl_type(head);

	return head->body + (type >= PERL_PV && type <= PERL_PVNV ? MISSING : 0);
}

bool perl_find_body(const struct perl_arenas *arenas, uint64_t address,
		    const struct perl_head *head, uint64_t *ret)
{
	unsigned int type = perl_type(head);
	const struct perl_arena *arena;
	uint32_t slot;

	*ret = 0;
	if (type == PERL_NULL || type >= PERL_TYPES)
		return type == PERL_NULL && head->body == 0;
	if (type == PERL_IV || type == PERL_NV)
		return head->body == address - (type == PERL_IV ? IV_MEMBER : NV_MEMBER);
	*ret = body_start(head);
	if (type == PERL_PVFM)
		return head->body % WORD == 0; /* it is from malloc() */
	arena = perl_find_arena(arenas, *ret);
	return arena &&
	       (arena->kind == type || (arena->kind == PERL_LARGE_HASHES && type == PERL_PVHV)) &&
	       perl_slot_at(arena, *ret, &slot);
}

bool perl_read_hash(const struct perl_arenas *arenas, struct view *view,
		    const struct perl_head *head, struct perl_hash *ret)
{
	const struct perl_arena *arena = perl_find_arena(arenas, head->body);
	uint64_t last;

	if (perl_type(head) != PERL_PVHV || !arena || head->value == 0 ||
	    !view_word(view, head->body + CHAINS, &last) || last >= UINT32_MAX)
		return false;
	*ret = (struct perl_hash){ .table = head->value, .chains = last + 1 };
	if (head->flags & PERL_HAS_AUX)
		ret->more = arena->kind == PERL_LARGE_HASHES ? head->body + HASH_BODY
							     : ret->table + WORD * ret->chains;
	return true;
}

/* How many heads the arenas of a kind may have the bodies of, for each of its sizes. */
struct votes {
	size_t votes[PERL_TYPES][MOST_SIZES];
};

/* An arena is filled as far as bodies fit, unless its size was computed in another way. */
static bool may_have(const struct perl_arena *arena, uint32_t slot)
{
	if (slot == 0 || sizes[arena->kind][1] == 0)
		return slot > 0 && arena->size >= slot;
	return arena->size % slot == 0 && PERL_ARENA - arena->size < slot;
}

static void vote(const struct perl_arenas *arenas, const struct perl_head *head,
		 struct votes *votes)
{
	unsigned int type = perl_type(head);
	const struct perl_arena *arena;
	uint64_t start;

	if (type < PERL_PV || type >= PERL_TYPES)
		return;
	start = body_start(head);
	arena = perl_find_arena(arenas, start);
	if (!arena || arena->kind >= PERL_TYPES)
		return;
	for (size_t i = 0; i < MOST_SIZES; i++)
		if (may_have(arena, sizes[arena->kind][i]) &&
		    (start - arena->address) % sizes[arena->kind][i] == 0)
			votes->votes[arena->kind][i]++;
}

/* Call visit for each head, in use or not. */
static void visit_heads(const struct image *image, struct perl_arenas *arenas,
			void (*visit)(struct perl_arenas *arenas, struct view *view,
				      struct perl_arena *arena, uint32_t slot,
				      const struct perl_head *head, void *data),
			void *data)
{
	struct view view = { image };
	struct perl_head head;

	array_for_each(arena, &arenas->list) {
		if (arena->kind != PERL_FREE)
			continue;
		for (uint32_t i = 1; i < arena->size / arena->slot; i++)
			if (perl_read_head(&view, arena->address + (uint64_t)i * arena->slot,
					   &head))
				visit(arenas, &view, arena, i, &head, data);
	}
}

static void vote_by(struct perl_arenas *arenas, struct view *view, struct perl_arena *arena,
		    uint32_t slot, const struct perl_head *head, void *data)
{
	vote(arenas, head, data);
}

static void set_sizes(const struct image *image, struct perl_arenas *arenas)
{
	struct votes votes = { 0 };

	visit_heads(image, arenas, vote_by, &votes);
	array_for_each(arena, &arenas->list) {
		size_t best = MOST_SIZES;

		if (arena->kind == PERL_FREE)
			continue;
		for (size_t i = 0; i < MOST_SIZES; i++)
			if (may_have(arena, sizes[arena->kind][i]) &&
			    (best == MOST_SIZES ||
			     votes.votes[arena->kind][i] > votes.votes[arena->kind][best]))
				best = i;
		arena->slot = best < MOST_SIZES ? sizes[arena->kind][best] : 0;
	}
}

static void set_bit(uint64_t *bits, uint32_t number)
{
	bits[number / 64] |= UINT64_C(1) << number % 64;
}

/* The entry at address becomes one in use; false: it is none, or was already. */
static bool claim_entry(struct perl_arenas *arenas, uint64_t address)
{
	struct perl_arena *arena = address ? perl_find_arena(arenas, address) : NULL;
	uint32_t slot;

	if (!arena || arena->kind != PERL_ENTRIES || !perl_slot_at(arena, address, &slot) ||
	    perl_bit(arena->claimed, slot))
		return false;
	set_bit(arena->claimed, slot);
	return true;
}

static void claim_entries(struct perl_arenas *arenas, struct view *view,
			  const struct perl_hash *hash)
{
	uint64_t entry;

	for (uint64_t i = 0; i < hash->chains && budget_take(&arenas->steps); i++) {
		if (!view_word(view, hash->table + WORD * i, &entry))
			break;
		while (claim_entry(arenas, entry) && view_word(view, entry, &entry))
			;
	}
	/* An entry that was deleted while the program was at it. */
	if (hash->more && view_word(view, hash->more + ITERATED, &entry))
		claim_entry(arenas, entry);
}

static void claim(struct perl_arenas *arenas, struct view *view, struct perl_arena *arena,
		  uint32_t slot, const struct perl_head *head, void *data)
{
	uint64_t start = 0;
	struct perl_arena *bodies;
	struct perl_hash hash;
	uint32_t body;
	bool is_valid;

	if (perl_type(head) == PERL_FREE)
		return;
	is_valid =
		perl_find_body(arenas, arena->address + (uint64_t)slot * arena->slot, head, &start);
	set_bit(is_valid ? arena->claimed : arena->doubtful, slot);
	bodies = start ? perl_find_arena(arenas, start) : NULL;
	if (bodies && bodies->kind != PERL_FREE && perl_slot_at(bodies, start, &body))
		set_bit(is_valid ? bodies->claimed : bodies->doubtful, body);
	if (is_valid && perl_read_hash(arenas, view, head, &hash))
		claim_entries(arenas, view, &hash);
}

bool perl_key_is_value(struct view *view, uint64_t entry, uint64_t *ret)
{
	enum { KEY_LENGTH = 4, KEY_IS_VALUE = -2 };
	int32_t length;

	return view_word(view, entry + WORD, ret) && *ret != 0 &&
	       view_read(view, *ret + KEY_LENGTH, &length, sizeof(length)) &&
	       length == KEY_IS_VALUE;
}

/*
 * True if an entry in no chain is a tied hash's for one of its elements: hv_common() of hv.c makes
 * its key, which is a value. An element points to it, or the interpreter's list of such entries to
 * reuse.
 */
static bool is_of_tied(struct view *view, uint64_t entry)
{
	uint64_t next, key;

	return perl_key_is_value(view, entry, &key) && view_word(view, entry, &next) &&
	       (next == 0 || perl_key_is_value(view, next, &key));
}

static void claim_of_tied(struct perl_arenas *arenas, struct view *view)
{
	array_for_each(arena, &arenas->list) {
		if (arena->kind != PERL_ENTRIES || arena->slot == 0)
			continue;
		for (uint32_t i = 0; i < arena->size / arena->slot; i++) {
			uint64_t entry = arena->address + (uint64_t)i * arena->slot;

			if (!perl_bit(arena->claimed, i) && is_of_tied(view, entry))
				set_bit(arena->claimed, i);
		}
	}
}

/*
 * A free body has a link to the next one, or none. One that is neither free nor of a head in an
 * arena is of a constant value, which is in the interpreter's struct.
 */
static bool may_be_free(const struct perl_arenas *arenas, struct view *view,
			const struct perl_arena *arena, uint64_t address)
{
	const struct perl_arena *next_arena;
	uint64_t next;
	uint32_t slot;

	if (!view_word(view, address, &next))
		return false;
	if (next == 0)
		return arenas->damaged == 0;
	next_arena = perl_find_arena(arenas, next);
	return next_arena && next_arena->kind == arena->kind &&
	       perl_slot_at(next_arena, next, &slot);
}

/* The entry that an unclaimed one leads to, if that is unclaimed, too. */
static struct perl_arena *next_unclaimed(const struct perl_arenas *arenas, struct view *view,
					 uint64_t entry, uint64_t *ret_next, uint32_t *ret_slot)
{
	struct perl_arena *arena;

	if (!view_word(view, entry, ret_next) || !*ret_next)
		return NULL;
	arena = perl_find_arena(arenas, *ret_next);
	return arena && arena->kind == PERL_ENTRIES && perl_slot_at(arena, *ret_next, ret_slot) &&
			       !perl_bit(arena->claimed, *ret_slot)
		       ? arena
		       : NULL;
}

/* Call visit for each entry that is not claimed. */
static void visit_unclaimed(struct perl_arenas *arenas, struct view *view,
			    void (*visit)(struct perl_arenas *arenas, struct view *view,
					  struct perl_arena *arena, uint32_t slot, void *data),
			    void *data)
{
	array_for_each(arena, &arenas->list)
		for (uint32_t i = 0; arena->kind == PERL_ENTRIES && arena->slot > 0 &&
				     i < arena->size / arena->slot;
		     i++)
			if (!perl_bit(arena->claimed, i))
				visit(arenas, view, arena, i, data);
}

/* For a while, doubtful entries are those to which others lead. */
static void mark_next(struct perl_arenas *arenas, struct view *view, struct perl_arena *arena,
		      uint32_t slot, void *data)
{
	uint64_t next;
	uint32_t next_slot;
	struct perl_arena *of_next = next_unclaimed(
		arenas, view, arena->address + (uint64_t)slot * arena->slot, &next, &next_slot);

	if (of_next)
		set_bit(of_next->doubtful, next_slot);
}

struct chain {
	uint64_t start, length;
};

static void measure_chain(struct perl_arenas *arenas, struct view *view, struct perl_arena *arena,
			  uint32_t slot, void *data)
{
	struct chain *longest = data, chain = { arena->address + (uint64_t)slot * arena->slot, 1 };
	uint64_t entry = chain.start;
	uint32_t next_slot;

	if (perl_bit(arena->doubtful, slot))
		return;
	while (budget_take(&arenas->steps) &&
	       next_unclaimed(arenas, view, entry, &entry, &next_slot))
		chain.length++;
	if (chain.length > longest->length)
		*longest = chain;
}

static void mark_doubtful(struct perl_arenas *arenas, struct view *view, struct perl_arena *arena,
			  uint32_t slot, void *data)
{
	set_bit(arena->doubtful, slot);
}

/*
 * The entries of damaged hashes are not claimed, and link to each other as free entries do. Since
 * there is only one free list, keep the longest chain and doubt the others.
 */
static void doubt_entries(struct perl_arenas *arenas, struct view *view)
{
	struct chain longest = { 0 };
	struct perl_arena *arena;
	uint64_t entry;
	uint32_t slot;

	visit_unclaimed(arenas, view, mark_next, NULL);
	visit_unclaimed(arenas, view, measure_chain, &longest);
	visit_unclaimed(arenas, view, mark_doubtful, NULL);
	entry = longest.start;
	arena = entry ? perl_find_arena(arenas, entry) : NULL;
	if (arena && !perl_slot_at(arena, entry, &slot))
		arena = NULL;
	for (uint64_t i = 0; i < longest.length && arena; i++) {
		arena->doubtful[slot / 64] &= ~(UINT64_C(1) << slot % 64);
		arena = next_unclaimed(arenas, view, entry, &entry, &slot);
	}
}

/* Doubt an entry that is a chain by itself, unless it is the free list. */
static void doubt_alone(struct perl_arenas *arenas, struct view *view, struct perl_arena *arena,
			uint32_t slot, void *data)
{
	const struct chain *free_list = data;
	uint64_t entry = arena->address + (uint64_t)slot * arena->slot, next;
	bool is_led_to = perl_bit(arena->doubtful, slot);
	uint32_t next_slot;

	arena->doubtful[slot / 64] &= ~(UINT64_C(1) << slot % 64);
	if (!is_led_to && entry != free_list->start &&
	    !next_unclaimed(arenas, view, entry, &next, &next_slot))
		set_bit(arena->doubtful, slot);
}

/*
 * An entry that was just taken out of its hash is in no chain yet: hfree_next_entry() of hv.c
 * unlinks it before its value is freed, whose destructor may run any code. Chains of several
 * entries may be the free lists of more interpreters.
 */
static void doubt_taken_out(struct perl_arenas *arenas, struct view *view)
{
	struct chain longest = { 0 };

	visit_unclaimed(arenas, view, mark_next, NULL);
	visit_unclaimed(arenas, view, measure_chain, &longest);
	visit_unclaimed(arenas, view, doubt_alone, &longest);
}

static unsigned int count_bits(const uint64_t *bits)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < PERL_SLOT_WORDS; i++)
		count += (unsigned int)__builtin_popcountll(bits[i]);
	return count;
}

/* Doubt unused slots that cannot be free. */
static void doubt(struct perl_arenas *arenas, struct view *view, struct perl_arena *arena)
{
	for (unsigned int i = 0; i < PERL_SLOT_WORDS; i++)
		arena->doubtful[i] &= ~arena->claimed[i];
	for (uint32_t i = 0; arena->kind != PERL_FREE && i < arena->size / arena->slot; i++)
		if (!perl_bit(arena->claimed, i) &&
		    !may_be_free(arenas, view, arena, arena->address + (uint64_t)i * arena->slot))
			set_bit(arena->doubtful, i);
}

DEFINE_COMPARE(compare_arenas, struct perl_arena, ASCENDING(address), ASCENDING(size))

/* Sort them; of two that overlap, one is left. */
static void drop_overlapping(struct perl_arenas *arenas)
{
	array_sort(&arenas->list, compare_arenas);
	array_keep(&arenas->list, arena, last,
		   !last || arena->address >= last->address + last->size);
}

void perl_claim_slots(const struct image *image, struct perl_arenas *arenas)
{
	struct view view = { image };

	drop_overlapping(arenas);
	set_sizes(image, arenas);
	visit_heads(image, arenas, claim, NULL);
	claim_of_tied(arenas, &view);
	array_for_each(arena, &arenas->list)
		if (arena->kind == PERL_FREE)
			arenas->damaged += count_bits(arena->doubtful);
	if (arenas->damaged == 0)
		doubt_taken_out(arenas, &view);
	array_for_each(arena, &arenas->list)
		if (arena->slot > 0 && (arena->kind != PERL_ENTRIES || arenas->damaged == 0))
			doubt(arenas, &view, arena);
	if (arenas->damaged > 0)
		doubt_entries(arenas, &view);
}
