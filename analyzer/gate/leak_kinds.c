#include "analyzer/gate/leak_kinds.h"

#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/gate/holder.h"
#include "analyzer/gate/label.h"
#include "analyzer/gate/likely.h"
#include "analyzer/gate/shape.h"
#include "analyzer/kinds/tally.h"

#include <string.h>

static void kind_deinit(struct leak_kind *kind)
{
	free(kind->name);
	free(kind->held);
	free(kind->holder);
}

void leak_kinds_deinit(struct leak_kinds *kinds)
{
	for (size_t i = 0; i < kinds->count; i++)
		kind_deinit(&kinds->list[i]);
	free(kinds->list);
	array_release(&kinds->certain.kinds);
	array_release(&kinds->likely.kinds);
	if (kinds->likely_leaks)
		leaks_destroy(kinds->likely_leaks);
	bitmap_deinit(&kinds->likely_lost);
}

/* The kinds found so far, and whose leaks are looked at. */
struct collector {
	struct shape_context shape;
	struct leak_kinds *kinds;
	struct tally_table *numbers; /* of kinds, by fingerprint */
	bool likely;
};

/* What the kind's example is, and of likely ones what holds it. */
static struct error *describe(const struct collector *collector, const struct shape *shape,
			      struct leak_kind *kind)
{
	struct analysis *analysis = collector->shape.analysis;
	const struct allocation_index *index = analysis_index(analysis);
	struct label label = label_of(analysis, collector->shape.patterns, shape->name_giver);
	uint64_t size = allocation_size(index, shape->name_giver);

	*kind = (struct leak_kind){
		.fingerprint = shape->fingerprint,
		.name = label_name(label),
		.full_name = label.full,
		.module = label.module,
		.size = size,
		.smallest_size = size,
		.address = allocation_start(index, shape->name_giver),
		.likely = collector->likely,
	};
	if (!kind->name)
		return &error_no_memory;
	return collector->likely ? holder_find(analysis, shape, kind) : NULL;
}

static struct error *add_kind(struct collector *collector, const struct shape *shape)
{
	struct leak_kinds *kinds = collector->kinds;
	struct leak_kind kind = { 0 };
	struct error *error = NULL;

	if (!LIST_GROW(kinds->list, kinds->count))
		error = &error_no_memory;
	if (!error)
		error = describe(collector, shape, &kind);
	if (error) {
		kind_deinit(&kind);
		return error;
	}
	kinds->list[kinds->count++] = kind;
	return NULL;
}

/* The number of the root's kind, which may be a new one. */
static struct error *find_kind(struct collector *collector, const struct shape *shape, size_t *ret)
{
	struct tally one = { .key = shape->fingerprint, .count = 1 };
	uint32_t number;
	struct error *error = tally_add_numbered(collector->numbers, one, &number);

	if (error)
		return error;
	*ret = number;
	return *ret == collector->kinds->count ? add_kind(collector, shape) : NULL;
}

static struct error *add_root(struct collector *collector, const struct leak_root *root,
			      uint32_t *ret_kind)
{
	const struct allocation_index *index = analysis_index(collector->shape.analysis);
	struct leak_kind *kind;
	struct shape shape;
	struct error *error;
	uint64_t size;
	size_t number;

	shape_find(&collector->shape, root, &shape);
	error = find_kind(collector, &shape, &number);
	if (error)
		return error;
	kind = &collector->kinds->list[number];
	size = allocation_size(index, shape.name_giver);
	kind->roots++;
	kind->likely_roots += collector->likely;
	kind->allocations += root->owned_count;
	kind->bytes += root->owned_bytes;
	if (size > kind->size)
		kind->size = size;
	if (size < kind->smallest_size)
		kind->smallest_size = size;
	*ret_kind = (uint32_t)number;
	return NULL;
}

static struct error *add_roots(struct collector *collector, struct leak_side *side)
{
	enum { BETWEEN_LOOKS = 256 };
	struct progress *progress = analysis_progress(collector->shape.analysis);
	size_t count = leak_root_count(side->leaks);
	struct error *error = array_resize(&side->kinds, count);

	progress_begin(progress, "telling leaks apart", count);
	for (size_t i = 0; !error && i < count; i++) {
		error = add_root(collector, leak_root(side->leaks, i), side->kinds.items + i);
		if (!error && i % BETWEEN_LOOKS == BETWEEN_LOOKS - 1 &&
		    !progress_step(progress, BETWEEN_LOOKS))
			error = error_create(ERROR_INTERRUPTED, "interrupted");
	}
	return error;
}

static struct error *add_side(struct analysis *analysis, const struct patterns *patterns,
			      struct tally_table *numbers, struct leak_kinds *kinds,
			      struct leak_side *side)
{
	struct collector collector = {
		.kinds = kinds,
		.numbers = numbers,
		.likely = side == &kinds->likely,
	};
	struct error *error = shape_context_init(&collector.shape, analysis, patterns, side->lost);

	side->kinds.memory.account = analysis_account(analysis);
	if (!error)
		error = add_roots(&collector, side);
	shape_context_deinit(&collector.shape);
	return error;
}

static struct error *add_certain(struct analysis *analysis, struct tally_table *numbers,
				 struct leak_kinds *kinds)
{
	struct error *error = analysis_need(analysis, STAGE_LEAKS);

	if (!error)
		error = analysis_need(analysis, STAGE_CLASSES);
	if (!error)
		error = analysis_need(analysis, STAGE_LEAKED_PATTERNS);
	if (error)
		return error;
	kinds->certain.leaks = analysis_leaks(analysis);
	kinds->certain.lost = analysis_leaked(analysis);
	return add_side(analysis, analysis_leaked_patterns(analysis), numbers, kinds,
			&kinds->certain);
}

static struct error *add_likely(struct analysis *analysis, struct tally_table *numbers,
				struct leak_kinds *kinds)
{
	struct error *error = likely_leaked(analysis, &kinds->likely_lost);

	if (!error)
		error = leaks_create(analysis_graph(analysis), analysis_index(analysis),
				     &kinds->likely_lost, analysis_account(analysis),
				     analysis_progress(analysis), &kinds->likely_leaks);
	if (error)
		return error;
	kinds->likely.leaks = kinds->likely_leaks;
	kinds->likely.lost = &kinds->likely_lost;
	return add_side(analysis, analysis_patterns(analysis), numbers, kinds, &kinds->likely);
}

/* A kind and its number as it was found. */
struct place {
	struct leak_kind kind;
	uint32_t number;
};

static int compare(const void *a, const void *b)
{
	const struct leak_kind *left = &((const struct place *)a)->kind;
	const struct leak_kind *right = &((const struct place *)b)->kind;

	if (left->likely != right->likely)
		return left->likely - right->likely;
	if (left->bytes != right->bytes)
		return left->bytes < right->bytes ? 1 : -1;
	return (left->fingerprint > right->fingerprint) - (left->fingerprint < right->fingerprint);
}

/* The roots of a side know their kinds by new numbers now. */
static void renumber(struct leak_side *side, const uint32_t *numbers)
{
	size_t count = side->leaks ? leak_root_count(side->leaks) : 0;
	uint32_t *kinds = side->kinds.items;

	for (size_t i = 0; i < count; i++)
		kinds[i] = numbers[kinds[i]];
}

static struct error *sort(struct leak_kinds *kinds)
{
	_cleanup_(free) struct place *places = calloc(kinds->count, sizeof(*places));
	_cleanup_(free) uint32_t *numbers = calloc(kinds->count, sizeof(*numbers));

	if (!places || !numbers)
		return &error_no_memory;
	for (size_t i = 0; i < kinds->count; i++)
		places[i] = (struct place){ kinds->list[i], (uint32_t)i };
	SORT(places, kinds->count, compare);
	for (size_t i = 0; i < kinds->count; i++) {
		kinds->list[i] = places[i].kind;
		numbers[places[i].number] = (uint32_t)i;
	}
	renumber(&kinds->certain, numbers);
	renumber(&kinds->likely, numbers);
	return NULL;
}

struct error *leak_kinds_find(struct analysis *analysis, bool likely, struct leak_kinds *ret)
{
	_cleanup_(table_release) struct tally_table numbers = {
		.memory.account = analysis_account(analysis),
	};
	struct error *error = add_certain(analysis, &numbers, ret);

	if (!error && likely)
		error = add_likely(analysis, &numbers, ret);
	return error || ret->count == 0 ? error : sort(ret);
}

struct leak_total leak_kinds_shared(const struct leak_kinds *kinds)
{
	const struct leaks *sides[] = { kinds->certain.leaks, kinds->likely.leaks };
	struct leak_total total = { 0 };

	for (size_t i = 0; i < 2; i++) {
		total.count += sides[i] ? leaks_shared_count(sides[i]) : 0;
		total.bytes += sides[i] ? leaks_shared_bytes(sides[i]) : 0;
	}
	return total;
}

/* All that the roots reach, less what each of them owns. */
static struct error *count_side(struct analysis *analysis, const struct leak_kinds *kinds,
				const struct leak_side *side,
				bool (*counts)(const struct leak_kind *), struct leak_total *total)
{
	const struct allocation_index *index = analysis_index(analysis);
	struct memory_account *account = analysis_account(analysis);
	_cleanup_(bitmap_deinit) struct bitmap from = { 0 }, reached = { 0 };
	const uint32_t *numbers = side->kinds.items;
	struct error *error = bitmap_init(&from, side->lost->count, account);

	if (!error)
		error = bitmap_init(&reached, side->lost->count, account);
	if (error)
		return error;
	for (size_t i = 0; i < leak_root_count(side->leaks); i++) {
		const struct leak_root *root = leak_root(side->leaks, i);

		if (!counts(&kinds->list[numbers[i]]))
			continue;
		bitmap_set(&from, root->id);
		total->count -= root->owned_count;
		total->bytes -= root->owned_bytes;
	}
	error = graph_mark_within(analysis_graph(analysis), side->lost, &from, &reached, account,
				  analysis_progress(analysis));
	if (error)
		return error;
	bitmap_for_each(id, &reached) {
		total->count++;
		total->bytes += allocation_size(index, (allocation_id)id);
	}
	return NULL;
}

struct error *leak_kinds_count_shared(struct analysis *analysis, const struct leak_kinds *kinds,
				      bool (*counts)(const struct leak_kind *),
				      struct leak_total *ret)
{
	const struct leak_side *sides[] = { &kinds->certain, &kinds->likely };
	struct leak_total total = { 0 };
	struct error *error = NULL;

	for (size_t i = 0; !error && i < 2; i++)
		if (sides[i]->leaks && leaks_shared_count(sides[i]->leaks) > 0)
			error = count_side(analysis, kinds, sides[i], counts, &total);
	if (!error)
		*ret = total;
	return error;
}
