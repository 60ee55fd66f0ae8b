#include "analyzer/types/sites_parts.h"
#include "analyzer/types/typing_parts.h"

static const type_number ANY_TYPE = UINT32_MAX;

enum { MOST_JUDGED = 4 /* of an array */, MOST_MADE = 16 };

/* The words of a block speak for or against what a call gives. */
enum verdict {
	AGAINST,
	NOTHING_SAID,
	POSSIBLE, /* pointers that may lead anywhere lead to the heap; or there are a few letters */
	IN_FAVOUR, /* most of its pointers lead to just what they should; or there is text */
};

/* A call's result, or, if its type is not known, the constant that it asks for; 0: it varies. */
struct made {
	type_number type;
	uint64_t size;
};

/* A block without a type, of which calls are compared with words. */
struct block_search {
	struct site_search search;
	struct typing *typing; /* NULL: words are not compared */
	struct memory_range range;
	struct memory_range words; /* of it, those behind the header of the call that is judged */
	size_t sized_end;	   /* of calls that do not ask for more than it has */
	enum verdict best;	   /* of all calls; calls that words speak for less do not count */
	bool may_vary;
	bool is_tight;	   /* calls count only if malloc nearly always rounds them so */
	bool may_be_plain; /* an array of pointers, or text */
	type_number type;  /* that all calls so far gave; ANY_TYPE: of none */
	enum verdict last; /* on that type, with so much before it */
	type_number last_type;
	uint16_t last_offset;
	struct made made[MOST_MADE]; /* by the calls that count */
	size_t made_count;
};

/* Judge a structure, with what stands behind it if it ends in an array. */
static struct error *judge_structure(struct block_search *block, struct memory_range range,
				     type_number type, enum verdict *ret)
{
	struct conformity conformity, behind;

	TRY(typing_conforms(block->typing, range.start, type, &conformity));
	TRY(typing_conforms_behind(block->typing, range, type, &behind));
	if (conformity.is_violated || behind.is_violated)
		*ret = AGAINST;
	else if (conformity.confirmed + behind.confirmed >
			 conformity.vague + behind.vague + conformity.doubtful + behind.doubtful ||
		 typing_points_behind(block->typing, range, type))
		*ret = IN_FAVOUR;
	return NULL;
}

/* A structure that ends in an array may be cut in it. */
static bool is_large_enough(const struct block_search *block, type_number type)
{
	uint64_t size = type_get(block->search.sites->input.types, type)->size, offset;
	type_number element;

	if (block->typing && type_find_tail(block->typing, type, &offset, &element))
		size = offset;
	return size <= block->words.end - block->words.start;
}

/* Judge an array of pointers. */
static struct error *judge_pointers(struct block_search *block, type_number type, enum verdict *ret)
{
	const struct type_table *types = block->search.sites->input.types;
	struct conformity conformity;
	uint64_t word;

	/* They may lead anywhere. */
	if (type_get(types, type_get(types, type)->target)->kind == TYPE_NONE) {
		if (read_word(block->typing, block->words.start, &word) &&
		    find_used(block->typing, word) != NO_ALLOCATION)
			*ret = POSSIBLE;
		return NULL;
	}
	TRY(typing_conforms_pointers(block->typing, block->words, type, &conformity));
	*ret = conformity.is_violated ? AGAINST : conformity.confirmed ? IN_FAVOUR : NOTHING_SAID;
	return NULL;
}

/* Judge bytes, for which text speaks; one of a few letters may be a number. */
static enum verdict judge_bytes(struct block_search *block)
{
	enum { FEW_LETTERS = 3 };
	const struct memory_range range = block->words;
	const uint64_t word = block->typing->word;
	uint64_t size = typing_text_size(block->typing, range.start, range.end - range.start);
	uint64_t end = range.start + (size + word - 1) / word * word;

	if (size == 0)
		return typing_refers_to_heap(block->typing, range) ? AGAINST : NOTHING_SAID;
	/* An address may have nothing but letters in it. */
	if (typing_refers_to_heap(block->typing, (struct memory_range){ range.start, end }))
		return AGAINST;
	return size - 1 > FEW_LETTERS ? IN_FAVOUR : POSSIBLE;
}

static struct error *judge_type(struct block_search *block, type_number type, enum verdict *ret)
{
	*ret = is_large_enough(block, type) ? NOTHING_SAID : AGAINST;
	if (!block->typing || type == NO_TYPE || *ret == AGAINST)
		return NULL;
	switch (type_get(block->search.sites->input.types, type)->kind) {
	case TYPE_POINTER:
		return judge_pointers(block, type, ret);
	case TYPE_STRUCTURE:
	case TYPE_UNION:
		return judge_structure(block, block->words, type, ret);
	case TYPE_CHARACTER:
		*ret = judge_bytes(block);
		return NULL;
	default:
		if (typing_refers_to_heap(block->typing, block->words))
			*ret = AGAINST;
		return NULL;
	}
}

/* Keep the last verdict, for many calls give the same type. */
static struct error *judge(struct block_search *block, type_number type, uint16_t offset,
			   enum verdict *ret)
{
	if (block->typing)
		block->typing->header = offset;
	if (type != block->last_type || offset != block->last_offset) {
		block->words.start = MIN(block->range.start + offset, block->range.end);
		TRY(judge_type(block, type, &block->last));
		block->last_type = type;
		block->last_offset = offset;
	}
	*ret = block->last;
	return NULL;
}

/* A type that all calls so far gave, the only structure of each call's constant size. */
static void join_types(struct block_search *block, const struct site *site, uint64_t size)
{
	const struct sites *sites = block->search.sites;
	type_number type = site_structure(sites, site);

	bool is_first = block->type == ANY_TYPE;

	if (type == NO_TYPE || type_get(sites->input.types, type)->size != size ||
	    (!is_first && block->type != type))
		block->type = NO_TYPE;
	else
		block->type = type;
}

/* Tell whether a call counts on which words give that verdict, where they speak for others. */
static bool counts(const struct block_search *block, type_number type, enum verdict verdict)
{
	return verdict == block->best ||
	       (verdict == NOTHING_SAID && type == NO_TYPE && block->best < IN_FAVOUR);
}

/* Add a call that gives that; false: there are too many. */
static bool add_call(struct block_search *block, const struct site *site, struct made made)
{
	if (block->made_count < MOST_MADE)
		block->made[block->made_count++] = made;
	return site_search_add(&block->search, site);
}

/* True if malloc rounds that to the block's size; if tight, without a small rest behind it. */
static bool is_rounded(const struct block_search *block, uint64_t size)
{
	enum { REST = 16 };
	const struct allocation_index *index = block->search.sites->input.index;
	struct memory_range range = block->range, without = { range.start, range.end - REST };

	return allocation_fits(index, range, size, true) &&
	       !(block->is_tight && (range.end - range.start) % REST == REST / 2 &&
		 range.end - range.start > REST && allocation_fits(index, without, size, true));
}

/* Calls of constant sizes that malloc rounds to the block's; ret: whether they are few enough. */
static struct error *add_sized(struct block_search *block, bool *ret)
{
	struct sites *sites = block->search.sites;
	const struct sized_call *calls = sites->sized.items;

	for (size_t i = block->sized_end; i-- > 0 && *ret;) {
		const struct site *site = &sites->all.items[calls[i].site];
		type_number type = site_leads_to(sites, site);
		enum verdict verdict;

		if (!is_rounded(block, calls[i].size))
			continue;
		TRY(judge(block, type, site->offset, &verdict));
		if (!counts(block, type, verdict)) {
			block->may_vary |= verdict == NOTHING_SAID;
			continue;
		}
		join_types(block, site, calls[i].size);
		*ret = add_call(block, site, (struct made){ type, calls[i].size });
	}
	return NULL;
}

/* Pointers and letters stand in arrays. */
static bool is_plain(const struct sites *sites, type_number type)
{
	enum type_kind kind = type_get(sites->input.types, type)->kind;

	return kind == TYPE_POINTER || kind == TYPE_CHARACTER;
}

/*
 * Judge what a call of a varying size gives: structures in sequence, or one with something behind
 * it that it ends in, or refers to, or text.
 */
static struct error *judge_varying(struct block_search *block, const struct varying_call *call,
				   enum verdict *ret)
{
	const type_number type = call->type;
	const struct type_table *types = block->search.sites->input.types;
	const struct allocation_index *index = block->search.sites->input.index;
	uint64_t size = type_get(types, type)->size, offset;
	struct memory_range range;
	enum verdict verdict;
	type_number element;

	TRY(judge(block, type, call->offset, ret));
	range = block->words;
	if (*ret != IN_FAVOUR || is_plain(block->search.sites, type) || size == 0 ||
	    type_find_tail(block->typing, type, &offset, &element) ||
	    typing_points_behind(block->typing, range, type) ||
	    is_text(block->typing, range.start + size))
		return NULL;
	if (!allocation_fits(index, block->range,
			     call->offset + (range.end - range.start) / size * size, true))
		*ret = NOTHING_SAID;
	for (uint64_t at = range.start + size;
	     *ret == IN_FAVOUR && at < range.start + MOST_JUDGED * size && size <= range.end - at;
	     at += size) {
		verdict = NOTHING_SAID;
		TRY(judge_structure(block, (struct memory_range){ at, range.end }, type, &verdict));
		*ret = verdict == AGAINST ? AGAINST : *ret;
	}
	return NULL;
}

/* Calls of sizes that are not known, where words speak for what they give. */
static struct error *add_varying(struct block_search *block, bool *ret)
{
	struct sites *sites = block->search.sites;

	array_for_each(call, &sites->varying) {
		enum verdict verdict;

		TRY(judge_varying(block, call, &verdict));
		if (verdict != block->best)
			continue;
		block->type = NO_TYPE;
		block->may_be_plain |= is_plain(sites, call->type);
		*ret = add_call(block, &sites->all.items[call->site],
				(struct made){ call->type, 0 }) &&
		       *ret;
	}
	return NULL;
}

/* Find what words speak for most, and whether calls whose sizes are not known may have given it. */
static struct error *weigh(struct block_search *block)
{
	const struct sites *sites = block->search.sites;
	const struct sized_call *calls = sites->sized.items;
	enum verdict verdict;

	for (size_t i = block->sized_end; i-- > 0 && block->best < IN_FAVOUR;) {
		const struct site *site = &sites->all.items[calls[i].site];

		if (!allocation_fits(sites->input.index, block->range, calls[i].size, true))
			continue;
		TRY(judge(block, site_leads_to(sites, site), site->offset, &verdict));
		block->best = verdict > block->best ? verdict : block->best;
	}
	for (size_t i = 0; i < sites->varying.count; i++) {
		if (block->best == IN_FAVOUR && block->may_vary)
			break;
		TRY(judge_varying(block, &sites->varying.items[i], &verdict));
		block->best = verdict > block->best ? verdict : block->best;
		block->may_vary |= verdict == NOTHING_SAID;
	}
	return NULL;
}

/* Count the types of what is held, by size: in a large heap, of some. */
static struct error *count_held(struct sites *sites, const struct typing *typing)
{
	enum { MOST_COUNTED = 1 << 18 };
	size_t all = allocation_count(sites->input.index), step = 1 + all / MOST_COUNTED;

	for (size_t id = 0; id < all; id += step) {
		enum type_fit fit = known_fit(typing, (allocation_id)id);
		struct held_type now = { .size = allocation_size(sites->input.index,
								 (allocation_id)id) };
		struct held_type *known;

		if (fit == FIT_NONE)
			continue;
		if (fit != FIT_REGION && fit != FIT_TABLE)
			now.type = known_type(typing, (allocation_id)id);
		known = table_obtain(&sites->held, now.size ^ (uint64_t)now.type << 40, item,
				     item->size == now.size && item->type == now.type, now);
		if (!known)
			return &error_no_memory;
		known->count++;
	}
	return NULL;
}

static bool is_made(const struct block_search *block, type_number type)
{
	const struct sites *sites = block->search.sites;
	uint64_t size = type_get(sites->input.types, type)->size;

	for (size_t i = 0; i < block->made_count && type != NO_TYPE; i++)
		if (block->made[i].type == NO_TYPE
			    ? block->made[i].size == size
			    : sites_are_alike(sites, block->made[i].type, type))
			return true;
	return false;
}

/*
 * Tell whether most of the held blocks of the size, as far as this one may be of their types, are
 * not what the calls give: then others ask for as much, as through a pointer to a function.
 */
static struct error *find_contradiction(struct block_search *block, bool *ret)
{
	enum { LEAST = 3 };
	struct sites *sites = block->search.sites;
	uint64_t held = 0, made = 0;
	enum verdict verdict;

	*ret = false;
	if (!block->typing || block->typing->allocations.count == 0 ||
	    block->made_count == MOST_MADE)
		return NULL;
	if (!sites->has_held)
		TRY(count_held(sites, block->typing));
	sites->has_held = true;
	array_for_each(known, &sites->held) {
		if (known->size != block->range.end - block->range.start)
			continue;
		TRY(judge(block, known->type, 0, &verdict));
		if (verdict == AGAINST)
			continue;
		held += known->count;
		made += is_made(block, known->type) ? known->count : 0;
	}
	*ret = held >= LEAST && made < held / 2;
	return NULL;
}

/* Blocks of the size that are held tell of calls that are not read. */
static struct error *compare_with_held(struct block_search *block, enum regex_share share,
				       bool *is_few)
{
	bool is_contradicted;

	if (block->search.found.count == 0)
		return NULL;
	if (share == SOME_REGEX) {
		*is_few = site_search_add_regex(&block->search) && *is_few;
		block->type = NO_TYPE;
		return NULL;
	}
	TRY(find_contradiction(block, &is_contradicted));
	*is_few = *is_few && !is_contradicted;
	return NULL;
}

/* Add all calls that count; ret: whether they are few enough. */
static struct error *add_calls(struct block_search *block, bool *ret)
{
	struct site_functions sized;

	*ret = true;
	TRY(weigh(block));
	TRY(add_sized(block, ret));
	/* At most one block in 200 has more than malloc rounds, for a rest was too small to keep.
	 */
	if (!*ret) {
		block->search.found = (struct site_functions){ .count = 0 };
		block->made_count = 0;
		block->type = ANY_TYPE;
		*ret = block->is_tight = block->may_vary = true;
		TRY(add_sized(block, ret));
	}
	if (block->best == NOTHING_SAID || !*ret)
		return NULL;
	sized = block->search.found;
	TRY(add_varying(block, ret));
	/* A call for just as much is more likely than arrays of structures. */
	if (!*ret && sized.count > 0 && !block->may_be_plain) {
		block->search.found = sized;
		*ret = block->may_vary = true;
	}
	return NULL;
}

/*
 * Nearly all of the size are parts of regular expressions: the functions that have these made; or,
 * if they are too many, the C library, and the few others that ask for the size; false: words speak
 * for calls.
 */
static struct error *find_regex(struct block_search *block, bool *ret)
{
	struct site_functions *found = &block->search.found;
	bool is_few = true;

	*ret = block->may_vary = true;
	if (site_search_add_regex(&block->search))
		return NULL;
	*found = (struct site_functions){ .names = { REGEX_NAME }, .count = 1 };
	TRY(weigh(block));
	if (block->best == IN_FAVOUR) {
		found->count = 0;
		*ret = false;
		return NULL;
	}
	block->is_tight = true;
	TRY(add_sized(block, &is_few));
	if (!is_few)
		found->count = 1;
	return NULL;
}

static struct error *find_by_size(struct sites *sites, struct typing *typing, allocation_id id,
				  struct site_functions *ret)
{
	uint64_t start = allocation_start(sites->input.index, id);
	uint64_t size = allocation_size(sites->input.index, id);
	const struct sized_call *calls = sites->sized.items;
	struct block_search block = {
		.search.sites = sites,
		.typing = typing,
		.range = { start, start + size },
		.words = { start, start + size },
		.sized_end = BISECT(i, 0, sites->sized.count, calls[i].size <= size),
		.best = NOTHING_SAID,
		.may_vary = sites->has_unread,
		.type = ANY_TYPE,
		.last_type = ANY_TYPE,
	};
	enum regex_share share;
	bool is_few;

	*ret = (struct site_functions){ .count = 0 };
	if (sites->is_cut)
		return NULL;
	TRY(sites_find_regex_share(sites, typing, size, &share));
	if (share == MOSTLY_REGEX)
		TRY(find_regex(&block, &is_few));
	if (share != MOSTLY_REGEX || !is_few) {
		TRY(add_calls(&block, &is_few));
		TRY(compare_with_held(&block, share, &is_few));
	}
	if (!is_few || block.search.found.count == 0)
		return NULL;
	*ret = block.search.found;
	ret->may_vary = block.may_vary;
	ret->type = block.may_vary ? NO_TYPE : block.type;
	return NULL;
}

struct error *sites_find_by_size(struct sites *sites, struct typing *typing, allocation_id id,
				 struct site_functions *ret)
{
	struct error *error = find_by_size(sites, typing, id, ret);

	if (typing)
		typing->header = 0;
	return error;
}
