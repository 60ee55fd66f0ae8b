#include "analyzer/types/siblings.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/macros.h"
#include "analyzer/base/sort.h"
#include "analyzer/base/table.h"
#include "analyzer/types/siblings_search.h"

enum {
	MOST_STRANGERS = 64, /* compared of each size */
	MOST_COMPARED = 1 << 20,
	MOST_TYPES_OF_SIZE = 16,
	MANY_TIMES = 100,
	FIRST_SAMPLED = 256,
	SAMPLED_IN = 1 << 12,
	ENOUGH_SAMPLED = 16, /* to know what is seldom null */
	FEW_IN = 32,
	FEW_LETTERS = 3,
};

/*
 * Flags of a leaked allocation's number: its type is likely only if all others of its size have it;
 * or if nearly all others of its size that say as little have it.
 */
static const uint32_t IS_ALONE = UINT32_C(1) << 31;
static const uint32_t IS_SILENT = UINT32_C(1) << 30;

void siblings_destroy(struct siblings *siblings)
{
	if (!siblings)
		return;
	table_release(&siblings->types);
	array_release(&siblings->numbers);
	free(siblings);
}

/* True if the allocation begins with text; a few letters may be a number instead. */
static bool begins_with_text(const struct typing *typing, allocation_id id)
{
	struct memory_range range = range_of(typing, id);
	uint64_t size = typing_text_size(typing, range.start, range.end - range.start), word;

	if (size == 0)
		return is_text(typing, range.start);
	/* An address may have nothing but letters in it. */
	if (read_word(typing, range.start, &word) && find_used(typing, word) != NO_ALLOCATION)
		return false;
	range.start += (size + typing->word - 1) / typing->word * typing->word;
	return size - 1 > FEW_LETTERS || range.start >= range.end ||
	       !typing_refers_to_heap(typing, range);
}

/* Text of a size that leaked: all characters are one type here, "unsigned" or not. */
static struct error *add_text(struct sibling_search *search, allocation_id id)
{
	uint64_t size = allocation_size(search->typing->input.index, id), hash;
	struct sibling_type *known;

	if (!search->leaked || address_map_find(&search->sizes, size) == NOT_IN_MAP ||
	    !begins_with_text(search->typing, id))
		return NULL;
	if (search->character == NO_TYPE)
		search->character = known_type(search->typing, id);
	hash = hash_add(hash_add(0, size), search->character);
	known = table_find(search->types, hash, item, item->is_text && item->size == size);
	if (known) {
		known->count++;
		return NULL;
	}
	if (search->types->count >= MOST_SIBLING_TYPES)
		return NULL;
	return table_append(search->types, hash,
			    (struct sibling_type){ .type = search->character,
						   .size = size,
						   .count = 1,
						   .example = id,
						   .is_text = true,
						   .is_array = true });
}

/* Note what stands in the pointers of one that is held. */
static struct error *sample_words(struct sibling_search *search, allocation_id id, type_number type,
				  struct sibling_words *words)
{
	struct typing *typing = search->typing;
	struct pointer_words read;

	TRY(typing_read_pointers(typing, allocation_start(typing->input.index, id), type, &read));
	if (words->sampled == UINT16_MAX)
		return NULL;
	words->sampled++;
	words->texts += begins_with_text(typing, id);
	for (size_t i = 0; i < SAMPLED_WORDS_OF_SIBLINGS; i++)
		words->filled[i] += read.filled >> i & 1;
	words->odd[2] |= words->odd[1] & read.odd;
	words->odd[1] |= words->odd[0] & read.odd;
	words->odd[0] |= read.odd;
	return NULL;
}

/* Some of many: the first, and others among all. */
static bool is_sampled(uint64_t number)
{
	return number < FIRST_SAMPLED || number % SAMPLED_IN == 0;
}

static bool ends_in_text(const struct typing *typing, type_number type)
{
	type_number element;
	uint64_t offset;

	return type_find_tail(typing, type, &offset, &element) &&
	       typing_type(typing, element)->kind == TYPE_CHARACTER;
}

static struct error *add_sibling(struct sibling_search *search, allocation_id id)
{
	struct typing *typing = search->typing;
	bool has_tail = known_fit(typing, id) == FIT_TAIL;
	uint64_t size = has_tail ? ANY_SIZE : allocation_size(typing->input.index, id);
	type_number type = known_type(typing, id);
	uint64_t hash = hash_add(hash_add(0, size), type);
	struct sibling_type *known;
	const struct slot *slots;
	size_t count;

	if (search->leaked && !has_tail && address_map_find(&search->sizes, size) == NOT_IN_MAP)
		return NULL;
	known = table_find(search->types, hash, item,
			   item->type == type && item->size == size && !item->is_array);
	if (known) {
		return is_sampled(known->count++) ? sample_words(search, id, type, &known->words)
						  : NULL;
	}
	TRY(slots_of(&typing->slots, type, &slots, &count));
	if (search->types->count >= MOST_SIBLING_TYPES ||
	    (has_tail && count == 0 && !ends_in_text(typing, type)))
		return NULL;
	TRY(table_append(
		search->types, hash,
		(struct sibling_type){ .type = type, .size = size, .count = 1, .example = id }));
	return sample_words(search, id, type,
			    &search->types->items[search->types->count - 1].words);
}

/* Numbers say nothing about themselves: only their size does. */
static bool is_of_numbers(const struct typing *typing, type_number type)
{
	return typing_type(typing, type)->kind == TYPE_NUMBER;
}

static struct error *count_array(struct sibling_search *search, allocation_id id, uint64_t size)
{
	type_number type = known_type(search->typing, id);
	uint64_t hash = hash_add(hash_add(1, size), type);
	struct sibling_type *known =
		table_find(search->types, hash, item,
			   item->type == type && item->size == size && item->is_array);

	if (known)
		known->count++;
	if (known || search->types->count >= MOST_SIBLING_TYPES)
		return NULL;
	return table_append(
		search->types, hash,
		(struct sibling_type){
			.type = type, .size = size, .count = 1, .example = id, .is_array = true });
}

/* Arrays of structures and pointers: of a size that leaked, and of any. */
static struct error *add_array(struct sibling_search *search, allocation_id id)
{
	struct typing *typing = search->typing;
	uint64_t size = allocation_size(typing->input.index, id);

	if (!siblings_may_be_array(typing, known_type(typing, id)))
		return NULL;
	if (!search->leaked || address_map_find(&search->sizes, size) != NOT_IN_MAP)
		TRY(count_array(search, id, size));
	return is_of_numbers(typing, known_type(typing, id)) ? NULL
							     : count_array(search, id, ANY_ARRAY);
}

DEFINE_COMPARE(compare_sizes, struct sibling_type, ASCENDING(size), ASCENDING(type))

struct sibling_range siblings_of_size(const struct sibling_types *types, uint64_t size)
{
	const struct sibling_type *items = types->items;
	size_t first = BISECT(i, 0, types->count, items[i].size < size);
	size_t end = BISECT(i, first, types->count, items[i].size <= size);

	return (struct sibling_range){ first, end };
}

/*
 * Set *ret if a value of the type has pointers, and the allocation is neither text nor all zeros.
 */
static struct error *may_say_little(struct sibling_search *search, uint64_t start, type_number type,
				    bool *ret)
{
	struct typing *typing = search->typing;
	uint64_t size = typing_type(typing, type)->size, word;
	const struct slot *slots;
	size_t count;

	*ret = false;
	TRY(slots_of(&typing->slots, type, &slots, &count));
	if (count == 0 || is_text(typing, start))
		return NULL;
	for (uint64_t at = 0; at + typing->word <= size && !*ret; at += typing->word)
		*ret = read_word(typing, start + at, &word) && word != 0;
	return NULL;
}

struct error *siblings_compare(struct sibling_search *search, allocation_id id,
			       const struct sibling_type *sibling, enum resemblance *ret)
{
	struct typing *typing = search->typing;
	const type_number type = sibling->type;
	const bool has_tail = sibling->size == ANY_SIZE;
	struct memory_range range = range_of(typing, id);
	struct conformity conformity, tail = { .is_violated = false };
	bool says_little = false;

	*ret = UNLIKE;
	if (sibling->is_text) {
		*ret = begins_with_text(typing, id) ? LIKE : UNLIKE;
		return NULL;
	}
	if (sibling->is_array)
		return siblings_compare_array(search, id, sibling, ret);
	if (has_tail && typing_fit_of_one(typing, range, type) < FIT_TAIL)
		return NULL;
	TRY(typing_conforms_but(typing, range.start, type, sibling->words.odd[2], &conformity));
	if (conformity.is_violated)
		return NULL;
	if (has_tail)
		TRY(typing_conforms_behind(typing, range, type, &tail));
	if (tail.is_violated || (has_tail && is_text(typing, range.start)))
		return NULL;
	if (conformity.confirmed + tail.confirmed > conformity.doubtful + tail.doubtful)
		*ret = LIKE;
	else if (!has_tail && conformity.confirmed == 0 && conformity.doubtful == 0)
		TRY(may_say_little(search, range.start, type, &says_little));
	if (says_little)
		*ret = LIKE_IF_ALONE;
	return NULL;
}

/* True if a pointer is null that hardly ever is in allocations known to have the type. */
static bool lacks_pointer(const struct sibling_search *search, allocation_id id,
			  const struct sibling_type *type)
{
	const struct typing *typing = search->typing;
	uint64_t start = allocation_start(typing->input.index, id), word;

	for (size_t i = 0; i < SAMPLED_WORDS_OF_SIBLINGS; i++)
		if ((type->words.sampled - type->words.filled[i]) * FEW_IN <= type->words.sampled &&
		    read_word(typing, start + i * typing->word, &word) && word == 0)
			return true;
	return false;
}

/*
 * If enough allocations of each of several types are held, drop the types of which a pointer is
 * missing, unless one is missing for all.
 */
static void drop_lacking(const struct sibling_search *search, allocation_id id,
			 struct sibling_range range, bool *is_like)
{
	bool lacks[MOST_TYPES_OF_SIZE] = { false };
	size_t left = 0, count = range.end - range.first;

	for (size_t i = 0; i < count; i++) {
		lacks[i] = is_like[i] &&
			   lacks_pointer(search, id, &search->types->items[range.first + i]);
		left += is_like[i] && !lacks[i];
		if (is_like[i] &&
		    search->types->items[range.first + i].words.sampled < ENOUGH_SAMPLED)
			return;
	}
	for (size_t i = 0; i < count && left > 0; i++)
		is_like[i] = is_like[i] && !lacks[i];
}

/* True if the type is so rare that it does not compete with the most frequent one. */
static bool is_rare(const struct sibling_type *type, uint64_t most)
{
	return type->count < LEAST_SIBLINGS && type->count * MANY_TIMES <= most;
}

/* Text is none where a structure of the size begins with text, too. */
static void drop_text(const struct sibling_search *search, struct sibling_range range,
		      bool *is_like)
{
	bool is_ambiguous = false;

	for (size_t i = range.first; i < range.end; i++)
		is_ambiguous |= search->types->items[i].words.texts > 0;
	for (size_t i = range.first; i < range.end && is_ambiguous; i++)
		if (search->types->items[i].is_text)
			is_like[i - range.first] = false;
}

/* Numbers, which anything may be, count only where nothing else does. */
static void drop_numbers(const struct sibling_search *search, struct sibling_range range,
			 bool *is_like)
{
	const struct sibling_type *types = search->types->items;
	bool is_more = false;

	for (size_t i = range.first; i < range.end; i++)
		is_more |=
			is_like[i - range.first] && !is_of_numbers(search->typing, types[i].type);
	for (size_t i = range.first; i < range.end && is_more; i++)
		if (is_of_numbers(search->typing, types[i].type))
			is_like[i - range.first] = false;
}

/*
 * How many types of the range it looks like that much, and the last of these; without rare ones.
 * None if the range has more than MOST_TYPES_OF_SIZE.
 */
static struct error *count_likes(struct sibling_search *search, allocation_id id,
				 struct sibling_range range, enum resemblance least,
				 size_t *ret_count, size_t *ret_last)
{
	bool is_like[MOST_TYPES_OF_SIZE] = { false };
	uint64_t most = 0;

	*ret_count = 0;
	if (range.end - range.first > MOST_TYPES_OF_SIZE)
		return NULL;
	for (size_t i = range.first; i < range.end; i++) {
		const struct sibling_type *type = &search->types->items[i];
		enum resemblance resemblance;

		TRY(siblings_compare(search, id, type, &resemblance));
		/* Arrays of all sizes are compared with each other. */
		is_like[i - range.first] = resemblance >= least &&
					   (least < LIKE || !type->is_array || type->is_text ||
					    type->size == ANY_ARRAY) &&
					   !typing_is_denied(search->typing, id, type->type);
		if (is_like[i - range.first] && type->count > most)
			most = type->count;
	}
	drop_text(search, range, is_like);
	drop_numbers(search, range, is_like);
	drop_lacking(search, id, range, is_like);
	for (size_t i = range.first; i < range.end; i++) {
		if (!is_like[i - range.first] || is_rare(&search->types->items[i], most))
			continue;
		*ret_last = i;
		++*ret_count;
	}
	return NULL;
}

static size_t count_structures(const struct sibling_types *types, struct sibling_range range)
{
	size_t count = 0;

	for (size_t i = range.first; i < range.end; i++)
		count += !types->items[i].is_text;
	return count;
}

/* Choose where little speaks for it: all others of its size are of it, or nearly all are such
 * arrays. */
static struct error *choose_alone(struct sibling_search *search, allocation_id id,
				  struct sibling_range exact)
{
	size_t count, found = 0;

	TRY(count_likes(search, id, exact, LIKE_IF_ALONE, &count, &found));
	if (count != 1 ||
	    (count_structures(search->types, exact) != 1 && !search->types->items[found].is_array))
		return NULL;
	search->types->items[found].is_wanted_alone = true;
	search->siblings->numbers.items[id] = ((uint32_t)found + 1) | IS_ALONE;
	return NULL;
}

/* Choose where it says little: by all others of its size, or by those that say as little. */
static struct error *choose_by_size(struct sibling_search *search, allocation_id id,
				    struct sibling_range exact)
{
	uint32_t *number = &search->siblings->numbers.items[id];
	bool may_be_silent;

	TRY(choose_alone(search, id, exact));
	TRY(siblings_want_silent(search, id, exact, &may_be_silent));
	if (may_be_silent)
		*number |= IS_SILENT;
	return NULL;
}

static bool is_of_pointers(const struct sibling_search *search, size_t number)
{
	const struct sibling_type *type = &search->types->items[number];

	return type->is_array && typing_type(search->typing, type->type)->kind == TYPE_POINTER;
}

/*
 * Which type it looks like, if only one of its size; or else only one that ends in an array; or
 * else, as little speaks for it, one of its size if all others are of that.
 */
static struct error *choose(struct sibling_search *search, allocation_id id)
{
	struct sibling_range exact =
		siblings_of_size(search->types, allocation_size(search->typing->input.index, id));
	const uint64_t any[] = { ANY_SIZE, ANY_ARRAY };
	uint32_t *number = &search->siblings->numbers.items[id];
	size_t count, found = 0;
	bool is_plain = false;

	if (exact.end - exact.first > MOST_TYPES_OF_SIZE)
		return NULL;
	TRY(count_likes(search, id, exact, LIKE, &count, &found));
	for (size_t i = 0; i < COUNT_OF(any) && count == 0; i++)
		TRY(count_likes(search, id, siblings_of_size(search->types, any[i]), LIKE, &count,
				&found));
	if (count == 1 && is_of_pointers(search, found))
		TRY(siblings_may_be_plain(search, id, &is_plain));
	if (count == 1 && !is_plain) {
		search->types->items[found].is_wanted = true;
		*number = (uint32_t)found + 1;
	}
	return count == 0 ? choose_by_size(search, id, exact) : NULL;
}

/*
 * True if more allocations without a type must be compared, to know whether they outnumber the
 * type's.
 */
static bool wants_strangers(const struct sibling_type *type)
{
	return type->is_wanted && !type->is_text && type->count <= MOST_STRANGERS &&
	       type->strangers < type->count;
}

/* Arrays say more about themselves than their size does: a few others may be there. */
static bool has_others(const struct sibling_type *type)
{
	return type->others > (type->is_array ? type->count / MANY_TIMES : 0);
}

static bool wants_others(const struct sibling_type *type)
{
	return type->is_wanted_alone && !has_others(type) && type->compared < MOST_COMPARED;
}

static struct error *compare_with(struct sibling_search *search, allocation_id id, size_t number)
{
	struct typing *typing = search->typing;
	struct sibling_type *type = &search->types->items[number];
	enum type_fit fit = known_fit(typing, id);
	enum resemblance resemblance;

	TRY(siblings_count_silent(search, id, number));
	if (fit != FIT_NONE) {
		type->others +=
			type->is_wanted_alone && (fit != (type->is_array ? FIT_ARRAY : FIT_ONE) ||
						  known_type(typing, id) != type->type);
		return NULL;
	}
	if (!wants_strangers(type) && !wants_others(type))
		return NULL;
	TRY(siblings_compare(search, id, type, &resemblance));
	type->compared++;
	type->strangers += resemblance == LIKE;
	type->others += resemblance == UNLIKE || is_of_numbers(typing, type->type);
	return NULL;
}

/* Compare one that is not leaked with the types of its size that leaked ones look like. */
static struct error *compare_held(struct sibling_search *search, allocation_id id)
{
	struct sibling_range exact =
		siblings_of_size(search->types, allocation_size(search->typing->input.index, id));
	const uint64_t others[] = { ANY_SIZE, ANY_ARRAY };

	for (size_t i = exact.first; i < exact.end; i++)
		TRY(compare_with(search, id, i));
	for (size_t j = 0; j < COUNT_OF(others) && known_fit(search->typing, id) == FIT_NONE; j++) {
		struct sibling_range any = siblings_of_size(search->types, others[j]);

		for (size_t i = any.first; i < any.end; i++)
			TRY(compare_with(search, id, i));
	}
	return NULL;
}

/* True if the type that was chosen turned out to be no other's as well. */
static bool stands(const struct sibling_search *search, uint32_t number, bool is_alone)
{
	const struct sibling_type *type = &search->types->items[number - 1];

	return type->count >= LEAST_SIBLINGS &&
	       (is_alone ? !has_others(type) : type->strangers < type->count);
}

/* Drop what turned out to look like others as well. */
static struct error *settle(struct sibling_search *search, allocation_id id)
{
	struct siblings *siblings = search->siblings;
	uint32_t *number = &siblings->numbers.items[id];
	const bool is_alone = *number & IS_ALONE, is_silent = *number & IS_SILENT;
	const struct sibling_type *type;

	*number &= ~(IS_ALONE | IS_SILENT);
	if (*number && stands(search, *number, is_alone)) {
		siblings->count++;
		return NULL;
	}
	type = *number ? &siblings->types.items[*number - 1] : NULL;
	*number = 0;
	/* Some of those without a type may have it. */
	if (type && typing_is_partial(search->typing) && !is_alone && !type->is_array &&
	    type->count + type->strangers >= LEAST_SIBLINGS)
		siblings->suffice = false;
	if (is_silent)
		TRY(siblings_settle_silent(search, id, number));
	siblings->count += *number != 0;
	return NULL;
}

enum sibling_pass { FIND_SIZES, FIND_SIBLINGS, COMPARE_HELD, SETTLE, SIBLING_PASSES };

static struct error *visit(struct sibling_search *search, enum sibling_pass pass, allocation_id id)
{
	struct typing *typing = search->typing;
	enum type_fit fit = known_fit(typing, id);
	uint64_t size;

	switch (pass) {
	case FIND_SIZES:
		size = allocation_size(typing->input.index, id);
		return fit == FIT_NONE && address_map_find(&search->sizes, size) == NOT_IN_MAP
			       ? address_map_add(&search->sizes, size, 0)
			       : NULL;
	case FIND_SIBLINGS:
		if (fit == FIT_ARRAY &&
		    typing_type(typing, known_type(typing, id))->kind == TYPE_CHARACTER)
			return add_text(search, id);
		if (fit == FIT_ARRAY)
			return add_array(search, id);
		return (fit == FIT_ONE || fit == FIT_TAIL) &&
				       typing_type(typing, known_type(typing, id))->kind ==
					       TYPE_STRUCTURE
			       ? add_sibling(search, id)
			       : NULL;
	case COMPARE_HELD:
		return compare_held(search, id);
	default:
		return settle(search, id);
	}
}

/*
 * Choose for each leaked one in turn. What they are compared with stands anywhere in memory, so it
 * is fetched ahead as for the queue of what is to be followed.
 */
static struct error *choose_all(struct sibling_search *search)
{
	struct typing *typing = search->typing;
	uint64_t passed = 0;

	bitmap_for_each(id, search->leaked)
		if (known_fit(typing, (allocation_id)id) == FIT_NONE)
			TRY(array_append(&typing->queue, (allocation_id)id));
	while (typing->queued_from < typing->queue.count) {
		typing_fetch_ahead(typing);
		TRY(choose(search, typing->queue.items[typing->queued_from++]));
		if (!progress_pass(typing->input.progress, typing->queued_from, &passed))
			return error_create(ERROR_INTERRUPTED, "interrupted");
	}
	return NULL;
}

/* Visit those that leaked, or all others. */
static struct error *run_pass(struct sibling_search *search, enum sibling_pass pass)
{
	const bool is_of_leaked = pass == FIND_SIZES || pass == SETTLE;
	const struct bitmap *used = allocation_used(search->typing->input.index);
	struct progress *progress = search->typing->input.progress;
	uint64_t passed = 0;

	/* Only what has a type says what it looks like. */
	bitmap_for_each(id, is_of_leaked	    ? search->leaked
			    : pass == FIND_SIBLINGS ? &search->typing->reached
						    : used) {
		if (!is_of_leaked &&
		    (!bitmap_get(used, id) || (search->leaked && bitmap_get(search->leaked, id))))
			continue;
		TRY(visit(search, pass, (allocation_id)id));
		if (!progress_pass(progress, id, &passed))
			return error_create(ERROR_INTERRUPTED, "interrupted");
	}
	return NULL;
}

static struct error *find_siblings(struct sibling_search *search)
{
	TRY(run_pass(search, FIND_SIBLINGS));
	if (search->types->count)
		SORT(search->types->items, search->types->count, compare_sizes);
	return NULL;
}

/* Set *ret if it looks like a type of some allocations of its size, leaked or not. */
static struct error *resembles_any(struct sibling_search *search, allocation_id id, bool *ret)
{
	struct sibling_range ranges[] = {
		siblings_of_size(search->types, allocation_size(search->typing->input.index, id)),
		siblings_of_size(search->types, ANY_SIZE),
		siblings_of_size(search->types, ANY_ARRAY),
	};

	for (size_t i = 0; i < COUNT_OF(ranges) && !*ret; i++) {
		size_t count, last;

		TRY(count_likes(search, id, ranges[i], LIKE_IF_ALONE, &count, &last));
		*ret = count > 0;
	}
	return NULL;
}

struct error *siblings_expect(struct typing *typing, struct memory_account *account, bool *ret)
{
	struct sibling_types types = { .memory.account = account };
	struct sibling_search search = { .typing = typing,
					 .types = &types,
					 .plain.memory.account = account };
	uint64_t passed = 0;
	struct error *error;

	*ret = false;
	if (!typing || typing->allocations.count == 0)
		return NULL;
	progress_begin(typing->input.progress, "finding candidates for types",
		       2 * allocation_count(typing->input.index));
	error = find_siblings(&search);
	bitmap_for_each(id, allocation_used(typing->input.index)) {
		if (error || *ret)
			break;
		if (known_fit(typing, (allocation_id)id) == FIT_NONE)
			error = resembles_any(&search, (allocation_id)id, ret);
		if (!error)
			error = progress_check_at(typing->input.progress, id, &passed);
	}
	table_release(&types);
	array_release(&search.plain);
	return error;
}

static bool wants_comparison(const struct sibling_search *search)
{
	const struct sibling_types *types = search->types;

	for (size_t i = 0; i < types->count; i++)
		if (wants_strangers(&types->items[i]) || wants_others(&types->items[i]))
			return true;
	return search->silent.count > 0;
}

static struct error *find_all(struct sibling_search *search)
{
	struct siblings *siblings = search->siblings;

	TRY(array_resize(&siblings->numbers, allocation_count(search->typing->input.index)));
	TRY(run_pass(search, FIND_SIZES));
	if (search->sizes.count == 0)
		return NULL;
	TRY(find_siblings(search));
	TRY(choose_all(search));
	if (wants_comparison(search))
		TRY(run_pass(search, COMPARE_HELD));
	TRY(run_pass(search, SETTLE));
	if (siblings->suffice && typing_is_partial(search->typing))
		TRY(siblings_find_unseen(search, &siblings->suffice));
	return siblings_follow(search);
}

struct error *siblings_create(struct typing *typing, const struct bitmap *leaked,
			      struct memory_account *account, struct siblings **ret)
{
	_cleanup_(siblings_destroy) struct siblings *siblings = calloc(1, sizeof(*siblings));
	struct sibling_search search = { .typing = typing, .leaked = leaked };
	struct error *error = NULL;

	TRY_MEMORY(siblings);
	arrays_use(account, &siblings->types, &siblings->numbers, &search.sizes, &search.plain,
		   &search.silent);
	siblings->suffice = true;
	search.siblings = siblings;
	search.types = &siblings->types;
	if (typing && typing->allocations.count && bitmap_weight(leaked) > 0) {
		progress_begin(typing->input.progress, "comparing leaks with types",
			       SIBLING_PASSES * allocation_count(typing->input.index));
		error = find_all(&search);
		table_release(&search.sizes);
		arrays_release(&search.plain, &search.silent);
		typing_release_work(typing);
	}
	if (!error)
		*ret = take(siblings);
	return error;
}

const struct sibling_type *siblings_of(const struct siblings *siblings, allocation_id id)
{
	uint32_t number =
		siblings && id < siblings->numbers.count ? siblings->numbers.items[id] : 0;

	return number ? &siblings->types.items[number - 1] : NULL;
}

bool siblings_typed(const struct siblings *siblings, allocation_id id, struct typed *ret)
{
	const struct sibling_type *like = siblings_of(siblings, id);

	if (like)
		*ret = (struct typed){ like->type, like->is_array ? FIT_LIKE_ARRAY : FIT_LIKE };
	return like;
}

size_t siblings_count(const struct siblings *siblings)
{
	return siblings->count;
}

bool siblings_suffice(const struct siblings *siblings)
{
	return siblings->suffice;
}
