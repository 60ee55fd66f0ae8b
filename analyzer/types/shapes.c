#include "analyzer/types/inference.h"

#include "analyzer/base/keep.h"

/*
 * Structures to which nothing with a type leads, as where pointers are kept in numbers or in arrays
 * of bytes. Several pointers in them lead to just what they should, so their words alone tell:
 *
 *	struct symbol { char *name; struct symbol *parent, *left, *right; ... };
 *
 * Allocations without a type are taken by size, of each size a sample. A structure of that size is
 * accepted if several of the sample have its shape, and far fewer that of any other one. Then all
 * of that size that have the shape are of the type.
 */

enum {
	LEAST_POINTERS = 3, /* to what is just as large, or known */
	LEAST_SLOTS = 4,
	MOST_WORDS = 256, /* of a structure */
	MOST_OF_SIZE = 64 /* structures */
};

/* The untyped allocations of one size, in words. */
struct of_size {
	uint32_t count, seen, sampled;
	allocation_id sample[SAMPLE];
};

struct shapes {
	struct inference *inference;
	struct typing *typing;
	ARRAY(struct of_size) sizes;
	uint32_t number[MOST_WORDS + 1]; /* of the size, plus 1 */
	type_number chosen[MOST_WORDS + 1];
};

/* True if its shape may tell: it has enough pointers to what has a type. */
static struct error *may_tell(struct typing *typing, type_number number, bool *ret)
{
	const struct slot *slots;
	size_t count, told = 0;

	TRY(slots_of(&typing->slots, number, &slots, &count));
	for (size_t i = 0; i < count; i++)
		told += !slots[i].is_choice &&
			typing_type(typing, slots[i].target)->kind != TYPE_NONE;
	*ret = told >= LEAST_SLOTS;
	return NULL;
}

/* Set *ret if enough pointers of the allocation lead to what is just as large as the type says. */
static struct error *has_shape(struct typing *typing, allocation_id id, type_number number,
			       bool *ret)
{
	const struct memory_range range = range_of(typing, id);
	const uint64_t odd = typing_wide_numbers(typing, number);
	struct conformity conformity, led_to;
	bool leads_to_text;

	*ret = false;
	if (typing_fit_of_one(typing, range, number) != FIT_ONE)
		return NULL;
	TRY(typing_conforms_but(typing, range.start, number, odd, &conformity));
	if (conformity.is_violated || MAX(conformity.exact, conformity.known) < LEAST_POINTERS ||
	    conformity.confirmed - conformity.vague < LEAST_POINTERS)
		return NULL;
	TRY(typing_leads_to_text(typing, range.start, number, &leads_to_text));
	TRY(typing_conforms_led_to(typing, range.start, number, &led_to));
	*ret = !leads_to_text &&
	       (conformity.doubtful * 2 <= conformity.exact || !led_to.is_violated);
	return NULL;
}

static bool is_looked_at(const struct typing *typing, allocation_id id)
{
	return known_fit(typing, id) == FIT_NONE && !typing_is_settled(typing, id) &&
	       bitmap_get(allocation_used(typing->input.index), id) &&
	       !(typing->input.leaked && bitmap_get(typing->input.leaked, id));
}

static uint32_t words_of(const struct typing *typing, allocation_id id)
{
	return (uint32_t)MIN(allocation_size(typing->input.index, id) / typing->word,
			     MOST_WORDS + 1);
}

/* Visit the untyped allocations of sizes that structures have. */
static struct error *for_each_untyped(struct shapes *shapes,
				      struct error *(*visit)(struct shapes *shapes,
							     allocation_id id, uint32_t words))
{
	const struct typing *typing = shapes->typing;

	for (allocation_id id = 0; id < typing->allocations.count; id++) {
		uint32_t words;

		if (!is_looked_at(typing, id))
			continue;
		words = words_of(typing, id);
		if (words <= MOST_WORDS && shapes->number[words])
			TRY(visit(shapes, id, words));
	}
	return NULL;
}

static struct error *count_one(struct shapes *shapes, allocation_id id, uint32_t words)
{
	shapes->sizes.items[shapes->number[words] - 1].count++;
	return NULL;
}

static struct error *sample_one(struct shapes *shapes, allocation_id id, uint32_t words)
{
	struct of_size *size = &shapes->sizes.items[shapes->number[words] - 1];
	uint64_t place = (uint64_t)size->seen++ * SAMPLE;

	if (size->count <= SAMPLE || place / size->count != (place + SAMPLE) / size->count)
		size->sample[size->sampled++] = id;
	return NULL;
}

static struct error *set_one(struct shapes *shapes, allocation_id id, uint32_t words)
{
	struct typing *typing = shapes->typing;
	type_number type = shapes->chosen[words];
	bool has = false;

	if (type != NO_TYPE && !typing_is_denied(typing, id, type))
		TRY(has_shape(typing, id, type, &has));
	return has ? typing_begin_at(typing, id, type, FIT_ONE, OF_VARIABLE | type, true) : NULL;
}

/* Find the sizes that allocations of structures with enough pointers may have. */
static struct error *find_sizes(struct shapes *shapes)
{
	const struct sized *all = shapes->inference->structures.items;
	const size_t word = shapes->typing->word, unsplit = MALLOC_UNIT / word;

	for (size_t i = 0; i < shapes->inference->structures.count; i++) {
		uint64_t words = (all[i].size + word - 1) / word;
		bool tells = false;

		if (words > MOST_WORDS)
			break;
		TRY(may_tell(shapes->typing, all[i].type, &tells));
		for (uint64_t j = words; tells && j <= words + 1 + unsplit && j <= MOST_WORDS;
		     j++) {
			if (shapes->number[j])
				continue;
			TRY(array_append(&shapes->sizes, (struct of_size){ 0 }));
			shapes->number[j] = (uint32_t)shapes->sizes.count;
		}
	}
	return NULL;
}

/* How many of the sample have the shape of the type. */
static struct error *count_shape(struct shapes *shapes, const struct of_size *size,
				 type_number type, size_t *ret)
{
	*ret = 0;
	for (size_t i = 0; i < size->sampled; i++) {
		bool has;

		/* Most sizes have nothing of the type. */
		if (i >= 4 * (size_t)ENOUGH && *ret == 0)
			return NULL;
		shapes->inference->tests++;
		TRY(has_shape(shapes->typing, size->sample[i], type, &has));
		*ret += has;
	}
	return NULL;
}

/* The structure whose shape many of the sample have, and few that of any other. */
static struct error *choose(struct shapes *shapes, const struct of_size *size, uint32_t words)
{
	const struct sized *all = shapes->inference->structures.items;
	size_t count = shapes->inference->structures.count, most = 0, next = 0;
	const uint64_t end = (uint64_t)words * shapes->typing->word;
	size_t i = BISECT(j, 0, count, all[j].size + MALLOC_UNIT <= end), last = i + MOST_OF_SIZE;
	type_number best = NO_TYPE;

	for (; i < count && all[i].size <= end; i++) {
		size_t found = 0;
		bool tells;

		if (i == last)
			return NULL;
		TRY(may_tell(shapes->typing, all[i].type, &tells));
		if (tells)
			TRY(count_shape(shapes, size, all[i].type, &found));
		next = found > most ? most : MAX(next, found);
		if (found > most) {
			most = found;
			best = all[i].type;
		}
	}
	if (most >= ENOUGH && next * 10 <= most)
		shapes->chosen[words] = best;
	return NULL;
}

/* malloc does not split off what is too small for a block: so much may be behind a structure. */
static struct error *choose_or_take_smaller(struct shapes *shapes, const struct of_size *size,
					    uint32_t words)
{
	const uint32_t unsplit = (uint32_t)(MALLOC_UNIT / shapes->typing->word);

	if (size->sampled >= ENOUGH)
		TRY(choose(shapes, size, words));
	if (shapes->chosen[words] == NO_TYPE && words >= unsplit)
		shapes->chosen[words] = shapes->chosen[words - unsplit];
	return NULL;
}

static struct error *infer(struct shapes *shapes)
{
	struct typing *typing = shapes->typing;

	TRY(inference_find_structures(shapes->inference));
	TRY(find_sizes(shapes));
	if (shapes->sizes.count == 0)
		return NULL;
	TRY(for_each_untyped(shapes, count_one));
	TRY(for_each_untyped(shapes, sample_one));
	for (uint32_t words = 0; words <= MOST_WORDS; words++) {
		const struct of_size *size =
			shapes->number[words] ? &shapes->sizes.items[shapes->number[words] - 1]
					      : NULL;

		if (!size)
			continue;
		TRY(choose_or_take_smaller(shapes, size, words));
		/* A few are enough to name leaks. */
		for (size_t i = 0; typing->input.leaked && i < size->sampled; i++)
			TRY(set_one(shapes, size->sample[i], words));
	}
	return typing->input.leaked ? NULL : for_each_untyped(shapes, set_one);
}

/*
 * Set *ret to the only structure that ends just at the end, or a bit before if malloc may have
 * rounded, and whose pointers there lead to what they should.
 */
static struct error *find_at(struct shapes *shapes, uint64_t start, uint64_t end, uint64_t rounded,
			     type_number *ret)
{
	struct typing *typing = shapes->typing;
	const struct sized *all = shapes->inference->structures.items;
	size_t count = shapes->inference->structures.count, found = 0;
	size_t i = BISECT(j, 0, count, all[j].size + rounded < end - start);

	*ret = NO_TYPE;
	for (size_t last = i + MOST_OF_SIZE; i < count && all[i].size <= end - start; i++) {
		struct conformity conformity;
		bool tells;

		if (i == last)
			found = 2;
		TRY(may_tell(typing, all[i].type, &tells));
		if (!tells || found > 1)
			continue;
		TRY(typing_conforms(typing, start, all[i].type, &conformity));
		if (conformity.is_violated || conformity.doubtful > conformity.exact ||
		    MAX(conformity.exact, conformity.known) < LEAST_POINTERS)
			continue;
		*ret = all[i].type;
		found++;
	}
	if (found != 1)
		*ret = NO_TYPE;
	return NULL;
}

/* True if units define other structures of the name, so that nobody knows which is meant. */
static bool is_ambiguous(const struct shapes *shapes, type_number type)
{
	const char *name = typing_type(shapes->typing, type)->name;
	size_t count = 0;

	array_for_each(structure, &shapes->inference->structures) {
		const char *other = typing_type(shapes->typing, structure->type)->name;

		count += name && other && strcmp(name, other) == 0;
	}
	return count > 1;
}

/* Forget what has a type by now, or is led to by a pointer of one meaning. */
static void drop_clear(struct shapes *shapes)
{
	struct typing *typing = shapes->typing;

	array_keep(&typing->opaque, opaque, last,
		   known_fit(typing, opaque->in) == FIT_NONE && is_ambiguous(shapes, opaque->type));
}

/*
 * Each program of a binary of many may define what the same variable points to. A structure may end
 * where the pointer leads to, too:
 *
 *	globals = (char *)malloc(sizeof(struct first) + sizeof(struct second)) + sizeof(struct
 *first);
 */
static struct error *infer_opaque(struct shapes *shapes, struct headed headed)
{
	struct typing *typing = shapes->typing;
	struct memory_range range = range_of(typing, headed.in);
	uint64_t middle = headed.address;
	type_number first = NO_TYPE, second;

	if (known_fit(typing, headed.in) != FIT_NONE || middle % typing->word != 0)
		return NULL;
	if (middle > range.start)
		TRY(find_at(shapes, range.start, middle, 0, &first));
	TRY(find_at(shapes, middle, range.end, MALLOC_UNIT - 1, &second));
	if (second != NO_TYPE && middle == range.start)
		return typing_begin_at(typing, headed.in, second, FIT_ONE, OF_VARIABLE | second,
				       true);
	if (second != NO_TYPE)
		TRY(typing_add_region(typing, &headed, second));
	headed.address = range.start;
	return first == NO_TYPE ? NULL : typing_add_region(typing, &headed, first);
}

struct error *infer_shapes(struct inference *inference)
{
	struct shapes shapes = { .inference = inference, .typing = inference->typing };
	struct error *error;

	shapes.sizes.memory.account = inference->typing->input.account;
	error = infer(&shapes);
	if (!error)
		drop_clear(&shapes);
	for (size_t i = 0; !error && i < shapes.typing->opaque.count; i++)
		error = infer_opaque(&shapes, shapes.typing->opaque.items[i]);
	array_release(&shapes.sizes);
	return error;
}
