/*
 * Finds the parts of values: blocks that their heads and bodies point to, by sv.h, hv.h, gp.h,
 * cv.h, mg.h and op.h of Perl 5.18 to 5.40; then blocks that only these point to.
 */
#include "analyzer/runtimes/perl/space.h"

#include "analyzer/base/sort.h"

enum {
	/* Fields of bodies. */
	MAGIC = 8,
	LENGTH = 24,	/* bytes that the text has room for; 0: it is not its own */
	INTEGER = 32,	/* of PVIV and above */
	LAST_ITEM = 16, /* of PVAV: its number */
	ITEMS = 32,	/* of PVAV: the block that has them */
	START = 40,	/* of PVCV: code */
	ROOT = 48,
	/* struct magic */
	MAGIC_TYPE = 18,
	MAGIC_OBJECT = 32,
	MOST_MAGIC = 64,
	BACK_REFERENCES = '<',
	/* struct xpvhv_aux */
	KNOWN_BY = 8,
	/* struct opslab */
	MOST_SLABS = 1 << 20,
	SHARED_KEY = 24, /* offset of the key in the entry of the table of all keys */
};

struct part_search {
	struct perl *perl;
	struct view view;
	struct perl_head head;
	allocation_id id;
	struct budget steps;
};

static bool word_at(struct part_search *search, uint64_t address, uint64_t *ret)
{
	return view_word(&search->view, address, ret);
}

allocation_id perl_claim_part(struct perl *perl, uint64_t address, enum perl_part part,
			      allocation_id owner)
{
	const struct allocation_index *index = perl->space.index;
	allocation_id id = address ? allocation_find(index, address) : NO_ALLOCATION;

	if (id == NO_ALLOCATION || !bitmap_get(allocation_used(index), id) ||
	    perl->parts.items[id] != PART_NONE)
		return NO_ALLOCATION;
	perl->parts.items[id] = (uint8_t)part;
	perl->links.items[id] = owner;
	return id;
}

/* Claim a part that may point to more; a later pass searches it. */
static struct error *claim(struct part_search *search, uint64_t address, enum perl_part part)
{
	allocation_id id = perl_claim_part(search->perl, address, part, search->id);

	return id == NO_ALLOCATION ? NULL : array_append(&search->perl->found, id);
}

static bool is_array(struct part_search *search, uint64_t address, struct perl_head *ret)
{
	return perl_find_head(search->perl, address) != NO_ALLOCATION &&
	       perl_read_head(&search->view, address, ret) && perl_type(ret) == PERL_PVAV;
}

/* The items of an array of weak references hold nothing. */
static void claim_weak_items(struct part_search *search, const struct perl_head *array,
			     uint64_t address)
{
	uint64_t items;

	if (word_at(search, array->body + ITEMS, &items))
		perl_claim_part(search->perl, items, PART_WEAK,
				perl_find_head(search->perl, address));
}

static struct error *claim_magic(struct part_search *search)
{
	uint64_t at, object, type;
	struct perl_head array;

	if (!word_at(search, search->head.body + MAGIC, &at))
		return NULL;
	for (int i = 0; i < MOST_MAGIC && at; i++) {
		enum perl_part part = PART_MAGIC;

		/* It may be a number instead. */
		if (at % PERL_WORD != 0 || !word_at(search, at + MAGIC_TYPE - 2, &type) ||
		    !word_at(search, at + MAGIC_OBJECT, &object))
			return NULL;
		if ((type >> 16 & 0xff) == BACK_REFERENCES) {
			if (is_array(search, object, &array))
				claim_weak_items(search, &array, object);
			else
				part = PART_WEAK;
		}
		TRY(claim(search, at, part));
		if (!word_at(search, at, &at))
			break;
	}
	return NULL;
}

/* If several weak references to the hash exist, they are in an array. */
static struct error *find_weak(struct part_search *search, const struct perl_hash *hash)
{
	struct perl *perl = search->perl;
	struct perl_head array;
	uint64_t known;

	if (!hash->more || !word_at(search, hash->more + KNOWN_BY, &known) || !known)
		return NULL;
	if (is_array(search, known, &array)) {
		claim_weak_items(search, &array, known);
		return NULL;
	}
	if (address_map_find(&perl->weak, known) != NOT_IN_MAP)
		return NULL;
	return address_map_add(&perl->weak, known, allocation_find(perl->space.index, hash->more));
}

/* Before all others: which arrays are of weak references. */
static struct error *find_first(struct part_search *search)
{
	struct perl_hash hash;

	if (perl_type(&search->head) >= PERL_PVMG)
		TRY(claim_magic(search));
	if (perl_read_hash(search->perl->arenas, &search->view, &search->head, &hash))
		TRY(find_weak(search, &hash));
	return NULL;
}

static struct error *claim_text(struct part_search *search)
{
	const struct perl_head *head = &search->head;
	uint64_t length;

	if ((head->flags & PERL_ROK) || !word_at(search, head->body + LENGTH, &length) || !length)
		return NULL;
	return claim(search, head->value, PART_TEXT);
}

/* Memory that C code keeps for a blessed value, by its address as an integer. */
static struct error *claim_data(struct part_search *search)
{
	const struct perl_head *head = &search->head;
	uint64_t address = head->value;

	if (!(head->flags & PERL_IOK) || (head->flags & PERL_ROK) ||
	    !(head->flags & PERL_BLESSED) || perl_type(head) != PERL_PVMG ||
	    !word_at(search, head->body + INTEGER, &address))
		return NULL;
	perl_claim_part(search->perl, address, PART_DATA, search->id);
	return NULL;
}

static struct error *claim_entries(struct part_search *search, uint64_t entry, bool has_own_keys)
{
	struct perl *perl = search->perl;
	uint64_t key;

	while (entry && budget_take(&search->steps)) {
		const struct perl_arena *arena = perl_find_arena(perl->arenas, entry);
		allocation_id id = perl_claim_part(
			perl, entry, arena ? PART_ENTRY : PART_SHARED_KEY, search->id);

		if (id == NO_ALLOCATION)
			break;
		if (arena && has_own_keys && word_at(search, entry + PERL_WORD, &key))
			TRY(claim(search, key, PART_KEY));
		if (!word_at(search, entry, &entry))
			break;
	}
	return NULL;
}

static struct error *claim_hash(struct part_search *search)
{
	bool has_own_keys = !(search->head.flags & PERL_SHARES_KEYS);
	struct perl_hash hash;
	uint64_t entry;

	if (!perl_read_hash(search->perl->arenas, &search->view, &search->head, &hash))
		return NULL;
	TRY(claim(search, hash.table, PART_CHAINS));
	for (uint64_t i = 0; i < hash.chains && budget_take(&search->steps); i++) {
		if (!word_at(search, hash.table + PERL_WORD * i, &entry))
			break;
		TRY(claim_entries(search, entry, has_own_keys));
	}
	/* The entry that an iterator is at may be in no chain any more. */
	if (hash.more && word_at(search, hash.more + 2 * (uint64_t)PERL_WORD, &entry) &&
	    perl_find_arena(search->perl->arenas, entry))
		TRY(claim_entries(search, entry, has_own_keys));
	return NULL;
}

/* A slab of code leads to the next one, and to the first. */
static struct error *claim_slabs(struct part_search *search, uint64_t op)
{
	struct perl *perl = search->perl;
	const struct allocation_index *index = perl->space.index;
	allocation_id id = op ? allocation_find(index, op) : NO_ALLOCATION;
	uint64_t first, at, head;

	if (id == NO_ALLOCATION || perl->parts.items[id] != PART_NONE ||
	    !word_at(search, allocation_start(index, id) + PERL_WORD, &first))
		return NULL;
	at = first;
	for (int i = 0;
	     i < MOST_SLABS && at && word_at(search, at + PERL_WORD, &head) && head == first; i++) {
		size_t found = perl->found.count;

		TRY(claim(search, at, PART_OPS));
		if (perl->found.count == found || !word_at(search, at, &at))
			break;
	}
	return NULL;
}

static struct error *claim_code(struct part_search *search)
{
	uint64_t op;

	for (uint64_t at = START; at <= ROOT; at += PERL_WORD)
		if (word_at(search, search->head.body + at, &op))
			TRY(claim_slabs(search, op));
	return NULL;
}

/* Items that an array does not count stay behind its end. */
static struct error *claim_items(struct part_search *search)
{
	const struct perl_head *head = &search->head;
	uint64_t start, last;
	allocation_id id;

	if (!word_at(search, head->body + ITEMS, &start) ||
	    !word_at(search, head->body + LAST_ITEM, &last))
		return NULL;
	if (head->flags & PERL_COUNTS_ITEMS)
		return claim(search, start, PART_ITEMS);
	id = perl_claim_part(search->perl, start, PART_ARGUMENTS, search->id);
	return id == NO_ALLOCATION || allocation_find(search->perl->space.index, head->value) != id
		       ? NULL
		       : perl_add_live(search->perl, id, head->value, last + 1);
}

static struct error *find_own(struct part_search *search)
{
	const struct perl_head *head = &search->head;
	unsigned int type = perl_type(head);

	if (type == PERL_IV)
		return NULL;
	if (type == PERL_PVAV)
		return claim_items(search);
	if (type == PERL_PVHV)
		return claim_hash(search);
	if (type == PERL_PVCV)
		return claim_code(search);
	if (head->flags & PERL_GLOB && (type == PERL_PVGV || type == PERL_PVLV))
		return claim(search, head->value, PART_GLOB);
	TRY(claim_data(search));
	return type >= PERL_PV && type <= PERL_PVLV ? claim_text(search) : NULL;
}

static struct error *visit_heads(struct part_search *search,
				 struct error *(*visit)(struct part_search *search))
{
	struct perl *perl = search->perl;
	size_t hint = 0;

	for (size_t i = 0; i < perl->parts.count; i++) {
		if (perl->parts.items[i] != PART_HEAD)
			continue;
		search->id = (allocation_id)i;
		if (perl_read_head(
			    &search->view,
			    allocation_range_near(perl->space.index, search->id, &hint).start,
			    &search->head))
			TRY(visit(search));
	}
	return NULL;
}

static struct error *claim_body(struct part_search *search)
{
	struct perl *perl = search->perl;
	uint64_t address = allocation_start(perl->space.index, search->id), body;

	if (!perl_find_body(perl->arenas, address, &search->head, &body) || !body)
		return NULL;
	if (perl_type(&search->head) < PERL_PVMG) {
		perl_claim_part(perl, body, PART_BODY, search->id);
		return NULL;
	}
	return claim(search, body, PART_BODY);
}

/* Blocks that start where a word of the part says, and are nothing yet. */
static struct error *look_through(struct part_search *search, allocation_id part)
{
	struct perl *perl = search->perl;
	const struct allocation_index *index = perl->space.index;
	uint64_t start = allocation_start(index, part), size = allocation_size(index, part), word;
	struct heap_bounds bounds = allocation_bounds(index);

	search->id = perl->links.items[part];
	for (uint64_t i = 0; i + PERL_WORD <= size; i += PERL_WORD) {
		allocation_id id;

		if (!word_at(search, start + i, &word) || !heap_bounds_hold(&bounds, word) ||
		    word % PERL_WORD != 0)
			continue;
		id = allocation_find(index, word);
		if (id != NO_ALLOCATION && perl->parts.items[id] == PART_NONE &&
		    allocation_start(index, id) == word)
			TRY(claim(search, word,
				  perl->parts.items[part] == PART_INTERPRETER ? PART_INTERPRETER
									      : PART_OTHER));
	}
	return NULL;
}

static bool may_lead_on(const struct perl *perl, allocation_id id)
{
	enum perl_part part = perl->parts.items[id];

	return part != PART_TEXT && part != PART_KEY && part != PART_ITEMS;
}

DEFINE_COMPARE(compare_words, struct perl_word, ASCENDING(word))

struct error *perl_find_parts(struct perl *perl)
{
	struct part_search search = {
		.perl = perl,
		.view = { perl->space.image },
		.steps = perl->arenas->steps,
	};

	array_for_each(table, &perl->arenas->tables)
		perl_claim_part(perl, table->start, PART_TABLE, NO_ALLOCATION);
	TRY(visit_heads(&search, find_first));
	TRY(visit_heads(&search, claim_body));
	TRY(visit_heads(&search, find_own));
	array_sort(&perl->live, compare_words);
	for (size_t i = 0; i < perl->parts.count; i++)
		if (perl->parts.items[i] == PART_INTERPRETER)
			TRY(array_append(&perl->found, (allocation_id)i));
	for (size_t i = 0; i < perl->found.count; i++)
		if (may_lead_on(perl, perl->found.items[i]))
			TRY(look_through(&search, perl->found.items[i]));
	return NULL;
}
