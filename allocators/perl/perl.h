/*
 * The arenas of Perl 5, sv.c, 5.16 to 5.40, with threads and without.
 *
 * A value (SV) is a head of 24 bytes; what its type needs besides is a body. Heads and bodies are
 * slots of arenas of 4,080 bytes, each a block of malloc(). The first slot of an arena of heads
 * links to the next one; arenas of bodies are in tables:
 *
 *	heads    | next, u32 slots, u32 0 | head | head | ...
 *	head     | body, u32 count of references, u32 flags | text, items, target, number |
 *	table    | next, u32 room, u32 arenas | address, size, u32 type | address, size, ...
 *	bodies   | body | body | ...
 *
 * Bodies of some types lack their first words, but a head's address of them is as if they had them;
 * numbers have no body, and that address is as if the head's last word were a member of one.
 *Entries of hashes are slots, too. A slot is in use if a head or a hash leads to it; so nothing is
 *needed but memory.
 */
#pragma once

#include "analyzer/base/budget.h"
#include "analyzer/heap/allocator.h"
#include "analyzer/image/view.h"

enum {
	PERL_ARENA = 4080,
	PERL_HEAD = 24,
	PERL_ENTRY = 24,
	PERL_LEAST_BODY = 16,
	PERL_SLOTS = PERL_ARENA / PERL_LEAST_BODY + 1,
	PERL_SLOT_WORDS = (PERL_SLOTS + 63) / 64,
};

/* Types of values, from 5.20 on. */
enum perl_type {
	PERL_NULL,
	PERL_IV, /* or a reference */
	PERL_NV,
	PERL_PV,
	PERL_INVLIST,
	PERL_PVIV,
	PERL_PVNV,
	PERL_PVMG,
	PERL_REGEXP,
	PERL_PVGV,
	PERL_PVLV,
	PERL_PVAV,
	PERL_PVHV,
	PERL_PVCV,
	PERL_PVFM,
	PERL_PVIO,
	PERL_PVOBJ,
	PERL_TYPES,
	PERL_FREE = 0xff, /* also: what kind of arena has heads */
};

/* Kinds of arenas that are the types of no body. */
enum { PERL_ENTRIES = PERL_NULL, PERL_LARGE_HASHES = PERL_IV };

static const uint32_t PERL_OK_ROK = 1U << 11, PERL_HAS_AUX = 1U << 25;

struct perl_head {
	uint64_t body;
	uint32_t count, flags;
	uint64_t value;
};

static inline unsigned int perl_type(const struct perl_head *head)
{
	return head->flags & 0xff;
}

struct perl_arena {
	uint64_t address;
	uint32_t size; /* of all slots */
	uint32_t slot; /* bytes of each; 0: not known yet */
	uint32_t kind; /* a type, or PERL_FREE: of heads */
	uint64_t room; /* of the block that it is in; set by the allocator */
	uint64_t claimed[PERL_SLOT_WORDS];
	/* Neither used nor free for certain: it makes no sense, or one such leads to it. */
	uint64_t doubtful[PERL_SLOT_WORDS];
};

struct perl_arenas {
	ARRAY(struct perl_arena) list;	   /* once slots are claimed, by address and apart */
	ARRAY(struct memory_range) tables; /* as far as they are in use */
	struct budget steps;		   /* of walks along chains */
	uint64_t damaged;		   /* heads that make no sense */
};

/* The allocator of Perl's heaps, which reports the slots in use. */
extern const struct allocator allocator_perl;
const struct perl_arenas *perl_heap_arenas(const struct heap *heap);

/* Find all arenas of the dump, also freed ones, in any order: these are to be left out. */
struct error *perl_find_arenas(const struct image *image, struct perl_arenas *ret);
void perl_arenas_deinit(struct perl_arenas *arenas);
DEFINE_DEINIT(perl_arenas_deinit, struct perl_arenas)

/* Sort the arenas, find the size of slots, and which of them are in use. */
void perl_claim_slots(const struct image *image, struct perl_arenas *arenas);

/* The arena that has the address, or NULL. */
struct perl_arena *perl_find_arena(const struct perl_arenas *arenas, uint64_t address);

static inline bool perl_bit(const uint64_t *bits, uint32_t number)
{
	return bits[number / 64] >> number % 64 & 1;
}

bool perl_read_head(struct view *view, uint64_t address, struct perl_head *ret);

/*
 * Find the body of the head at address: *ret is 0 if its type needs none. False if the head is
 * inconsistent.
 */
bool perl_find_body(const struct perl_arenas *arenas, uint64_t address,
		    const struct perl_head *head, uint64_t *ret);

/* True if the key of the entry, which ret is the address of, is a value instead of a text. */
bool perl_key_is_value(struct view *view, uint64_t entry, uint64_t *ret);

/* The chains of a hash. */
struct perl_hash {
	uint64_t table, chains;
	uint64_t more; /* the address of struct xpvhv_aux; 0: it has none */
};

/* False: the head is no hash, or has no entries and never had. */
bool perl_read_hash(const struct perl_arenas *arenas, struct view *view,
		    const struct perl_head *head, struct perl_hash *ret);
