#include "analyzer/gate/shape.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/keep.h"
#include "analyzer/base/sort.h"
#include "analyzer/gate/label.h"

#include <stdlib.h>
#include <string.h>

struct step {
	uint16_t source, target; /* numbers of allocations of the shape */
};

/* The state of finding a shape. */
struct search {
	struct shape_context *context;
	struct shape *shape;
	uint16_t slots[SHAPE_SLOTS]; /* a hash table of numbers, plus 1 */
	struct step steps[MOST_SHAPE_STEPS];
	size_t step_count;
	size_t looks;		       /* at references */
	bool counts[MOST_SHAPE_NODES]; /* for the fingerprint */
};

struct error *shape_context_init(struct shape_context *context, struct analysis *analysis,
				 const struct patterns *patterns, const struct bitmap *leaked)
{
	*context = (struct shape_context){
		.analysis = analysis,
		.patterns = patterns,
		.leaked = leaked,
		.hashes.memory.account = analysis_account(analysis),
	};
	return array_resize(&context->hashes, leaked->count);
}

void shape_context_deinit(struct shape_context *context)
{
	array_release(&context->hashes);
}

/* Flags in the low bits of a label's hash. */
enum { LOOKED_AT = 1, IS_PATTERN = 2, IS_UNRECOGNIZED = 4, MARKS = 7 };

static uint64_t label_word(struct shape_context *context, allocation_id id)
{
	uint64_t *hash = context->hashes.items + id;
	struct label label;

	if (*hash)
		return *hash;
	label = label_of(context->analysis, context->patterns, id);
	*hash = (hash_text(label.is_pattern, label.text) & ~(uint64_t)MARKS) | LOOKED_AT;
	if (label.is_pattern)
		*hash |= IS_PATTERN;
	else if (strcmp(label.text, UNRECOGNIZED) == 0)
		*hash |= IS_UNRECOGNIZED;
	return *hash;
}

/* Buffers of a pattern are of any size. */
static uint64_t sized_hash(struct shape_context *context, allocation_id id)
{
	uint64_t word = label_word(context, id);

	if (word & IS_PATTERN)
		return word;
	return hash_add(word, allocation_size(analysis_index(context->analysis), id));
}

/* The place of id in the table, or where it belongs. */
static uint16_t *find_slot(struct search *search, allocation_id id)
{
	size_t slot = hash_add(0, id) % SHAPE_SLOTS;

	while (search->slots[slot] && search->shape->ids[search->slots[slot] - 1] != id)
		slot = (slot + 1) % SHAPE_SLOTS;
	return &search->slots[slot];
}

static void add_target(struct search *search, size_t source, allocation_id id)
{
	struct shape *shape = search->shape;
	uint16_t *slot = find_slot(search, id);

	if (!*slot) {
		if (shape->count == MOST_SHAPE_NODES)
			return;
		shape->ids[shape->count++] = id;
		*slot = (uint16_t)shape->count;
	}
	search->steps[search->step_count++] = (struct step){
		(uint16_t)source,
		(uint16_t)(*slot - 1),
	};
}

static void add_list(struct search *search, size_t source, const allocation_id *targets,
		     size_t count)
{
	for (size_t i = 0; i < count && search->looks < MOST_SHAPE_STEPS; i++) {
		search->looks++;
		if (bitmap_get(search->context->leaked, targets[i]))
			add_target(search, source, targets[i]);
	}
}

/*
 * An unrecognized allocation may be a buffer that was partly written, with stale contents behind.
 * Trust its references only in a root, and only to the start of others. But in a cycle, words are
 * hardly stale, and links within its members may have closed it.
 */
static void add_targets(struct search *search, size_t source, bool is_cycle)
{
	struct shape_context *context = search->context;
	allocation_id id = search->shape->ids[source];
	allocation_id starts[MOST_START_WORDS];
	struct edges edges;

	if (is_cycle || !(label_word(context, id) & IS_UNRECOGNIZED)) {
		edges = graph_outgoing(analysis_graph(context->analysis), id);
		add_list(search, source, edges.targets, edges.count);
	} else if (source == 0) {
		add_list(search, source, starts, starts_find(context->analysis, id, starts));
	}
}

/* Put the sources of the steps behind each other, by target. */
static void chunk_steps(const struct search *search, uint16_t *sources,
			size_t starts[static MOST_SHAPE_NODES + 1])
{
	size_t places[MOST_SHAPE_NODES];

	memset(starts, 0, (MOST_SHAPE_NODES + 1) * sizeof(*starts));
	for (size_t i = 0; i < search->step_count; i++)
		starts[search->steps[i].target + 1]++;
	for (size_t i = 0; i < MOST_SHAPE_NODES; i++) {
		starts[i + 1] += starts[i];
		places[i] = starts[i];
	}
	for (size_t i = 0; i < search->step_count; i++)
		sources[places[search->steps[i].target]++] = search->steps[i].source;
}

/*
 * Find the members of the root's cycle: those that lead to it. Nothing outside of its cycle does.
 */
static size_t find_cycle(struct search *search)
{
	struct shape *shape = search->shape;
	uint16_t sources[MOST_SHAPE_STEPS], stack[MOST_SHAPE_NODES];
	size_t starts[MOST_SHAPE_NODES + 1], depth = 1, found = 1;

	chunk_steps(search, sources, starts);
	stack[0] = 0;
	while (depth > 0) {
		uint16_t target = stack[--depth];

		for (size_t i = starts[target]; i < starts[target + 1]; i++) {
			if (shape->in_cycle[sources[i]])
				continue;
			shape->in_cycle[sources[i]] = true;
			stack[depth++] = sources[i];
			found++;
		}
	}
	return found;
}

/* True if the targets of an allocation certainly belong to it. */
static bool leads_on(const struct search *search, size_t number)
{
	const struct shape *shape = search->shape;

	return shape->in_cycle[number] ||
	       !(label_word(search->context, shape->ids[number]) & IS_UNRECOGNIZED);
}

/*
 * Finding a cycle followed all references. What was reached only through buffers outside of it does
 * not count.
 */
static void find_counted(struct search *search)
{
	enum { MOST_PASSES = 4 };
	bool found = true;

	memcpy(search->counts, search->shape->in_cycle, sizeof(search->counts));
	for (size_t pass = 0; found && pass < MOST_PASSES; pass++) {
		found = false;
		for (size_t i = 0; i < search->step_count; i++) {
			struct step step = search->steps[i];

			if (search->counts[step.target] || !search->counts[step.source] ||
			    !leads_on(search, step.source))
				continue;
			search->counts[step.target] = true;
			found = true;
		}
	}
}

/*
 * The first of the cycle: a class rather than a pattern, and that rather than what is not
 * recognized; the larger; and then either, but always the same.
 */
static bool gives_name_before(struct shape_context *context, allocation_id one, allocation_id other)
{
	const struct allocation_index *index = analysis_index(context->analysis);
	uint64_t word = label_word(context, one);
	uint64_t other_word = label_word(context, other);
	uint64_t size = allocation_size(index, one);
	uint64_t other_size = allocation_size(index, other);

	if ((word & MARKS) != (other_word & MARKS))
		return (word & MARKS) < (other_word & MARKS);
	if (size != other_size)
		return size > other_size;
	return word < other_word;
}

/* Each of the hashes once, whatever their order. Returns how many there are. */
static size_t make_set(uint64_t *hashes, size_t count)
{
	SORT(hashes, count, compare_u64);
	return LIST_KEEP(hashes, count, hash, last, !last || *hash != *last);
}

static uint64_t add_set(uint64_t hash, const uint64_t *hashes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		hash = hash_add(hash, hashes[i]);
	return hash_add(hash, count);
}

static size_t hash_cycle(const struct search *search, uint64_t *ret)
{
	struct shape *shape = search->shape;
	size_t count = 0;

	shape->name_giver = shape->ids[0];
	for (size_t i = 0; i < shape->count; i++) {
		if (!shape->in_cycle[i])
			continue;
		ret[count++] = sized_hash(search->context, shape->ids[i]);
		if (gives_name_before(search->context, shape->ids[i], shape->name_giver))
			shape->name_giver = shape->ids[i];
	}
	return make_set(ret, count);
}

/*
 * Hash the rest of the shape. Leave out nodes like members of the cycle, so that lists of one and
 * of many nodes are the same, and possible buffers, whose number depends on data.
 */
static size_t hash_rest(const struct search *search, const uint64_t *cycle, size_t cycle_count,
			uint64_t *ret)
{
	const struct shape *shape = search->shape;
	size_t count = 0;

	for (size_t i = 0; i < shape->count; i++) {
		uint64_t hash = sized_hash(search->context, shape->ids[i]);

		if (shape->in_cycle[i] || !search->counts[i] ||
		    label_word(search->context, shape->ids[i]) & IS_UNRECOGNIZED ||
		    bsearch(&hash, cycle, cycle_count, sizeof(*cycle), compare_u64))
			continue;
		ret[count++] = hash;
	}
	return make_set(ret, count);
}

static uint64_t find_fingerprint(const struct search *search)
{
	uint64_t cycle[MOST_SHAPE_NODES], rest[MOST_SHAPE_NODES];
	size_t cycle_count = hash_cycle(search, cycle);
	size_t rest_count = hash_rest(search, cycle, cycle_count, rest);

	return add_set(add_set(0, cycle, cycle_count), rest, rest_count);
}

void shape_find(struct shape_context *context, const struct leak_root *root, struct shape *ret)
{
	struct search search = { .context = context, .shape = ret };

	*ret = (struct shape){ .ids = { root->id }, .count = 1 };
	*find_slot(&search, root->id) = 1;
	for (size_t i = 0; i < ret->count; i++)
		add_targets(&search, i, root->members > 1);
	ret->in_cycle[0] = true;
	/*
	 * If the cycle is larger than the limit, count all as members: the point at which it was
	 * entered is accidental.
	 */
	if (root->members > 1 && find_cycle(&search) < root->members)
		memset(ret->in_cycle, true, ret->count);
	find_counted(&search);
	ret->fingerprint = find_fingerprint(&search);
}
