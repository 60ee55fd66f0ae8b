#include "analyzer/gate/leak_kinds.h"

#include "analyzer/account/likely_held.h"
#include "analyzer/base/bytes.h"
#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/base/text.h"
#include "analyzer/classify/reference_judge.h"
#include "analyzer/gate/label.h"
#include "analyzer/gate/shape.h"
#include "analyzer/kinds/tally.h"

#include <inttypes.h>
#include <string.h>

static void kind_deinit(struct leak_kind *kind)
{
	free(kind->name);
	free(kind->held);
	free(kind->holder);
	free(kind->type_reason);
	free(kind->allocated_by);
	free(kind->source);
	free(kind->calls);
}

const char *fingerprint_text(uint64_t fingerprint, char buffer[static FINGERPRINT_SIZE])
{
	snprintf(buffer, FINGERPRINT_SIZE, "%016" PRIx64, fingerprint);
	return buffer;
}

void leak_kinds_deinit(struct leak_kinds *kinds)
{
	for (size_t i = 0; i < kinds->count; i++)
		kind_deinit(&kinds->list[i]);
	free(kinds->list);
	arrays_release(&kinds->certain.kinds, &kinds->likely.kinds);
	if (kinds->certain_leaks)
		leaks_destroy(kinds->certain_leaks);
	if (kinds->likely_leaks)
		leaks_destroy(kinds->likely_leaks);
	bitmap_deinit(&kinds->certain_lost);
	bitmap_deinit(&kinds->likely_lost);
}

/* The kinds found so far, and whose leaks are added to them. */
struct collector {
	struct shape_context shape;
	struct leak_kinds *kinds;
	struct tally_table *numbers; /* of kinds, by fingerprint */
	bool likely;
};

/* Describe the disguised pointer to a leaked allocation of the cycle, if one likely holds it. */
static struct error *find_disguised(struct analysis *analysis, const struct shape *shape,
				    struct leak_kind *kind)
{
	const struct disguised *disguised = NULL;

	for (size_t i = 0; i < shape->count && !disguised; i++)
		disguised = likely_held_find(analysis, shape->ids[i]);
	if (!disguised)
		return NULL;
	kind->held = format_text("%s at 0x%" PRIx64,
				 disguise_name(analysis_runtimes(analysis), disguised->disguise),
				 disguised->place);
	return kind->held ? NULL : &error_no_memory;
}

/*
 * Find what holds a likely leak: an anchored allocation whose words that refer to a member of the
 * cycle are stale.
 */
static struct error *find_holder(struct analysis *analysis, const struct shape *shape,
				 struct leak_kind *kind)
{
	/* Referrers with stale words are rarely many; do not search a long row of others. */
	enum { MOST_REFERRERS = 256 };
	const struct patterns *patterns = analysis_patterns(analysis);
	allocation_id holder = NO_ALLOCATION;
	const char *part = NULL;
	struct label label;

	if (bitmap_get(analysis_leaked(analysis), shape->name_giver))
		return find_disguised(analysis, shape, kind);
	TRY(analysis_need(analysis, STAGE_INCOMING));
	for (size_t i = 0; !part && i < shape->count; i++) {
		struct edges edges = graph_outgoing(analysis_incoming(analysis), shape->ids[i]);

		for (size_t j = 0;
		     shape->in_cycle[i] && !part && j < edges.count && j < MOST_REFERRERS; j++) {
			holder = edges.targets[j];
			if (bitmap_get(analysis_anchored(analysis), holder) &&
			    patterns_of(patterns, holder) != NO_PATTERN)
				part = patterns_find_taint(patterns, holder, shape->ids[i]);
		}
	}
	if (!part)
		return NULL;
	label = label_of(analysis, patterns, holder);
	kind->holder = label_name(label);
	kind->holder_module = label.module;
	if (kind->holder && asprintf(&kind->held, "the %s at 0x%" PRIx64, part,
				     allocation_start(analysis_index(analysis), holder)) < 0)
		kind->held = NULL;
	return kind->held ? NULL : &error_no_memory;
}

/*
 * Memory that a library never frees, which no program can change. All other memory that the C
 * library keeps stays reachable: under glibc 2.36, 2.41 and 2.43 nothing else was found unreachable
 * after locale, iconv, NSS, resolver, dlopen, dlmopen, threads, timers, aio, gettext, stdio and
 * time zones were used.
 */
static void find_library_leak(struct leak_kind *kind)
{
	static const struct {
		const char *name, *owner, *cause;
	} known[] = {
		{ CONVERSION, "libc", "the conversion of fopen() with ccs=" },
		{ "MallocExtension", "tcmalloc", "an object that it replaces when it starts" },
	};

	for (size_t i = 0; i < COUNT_OF(known); i++) {
		if (strcmp(kind->name, known[i].name) != 0)
			continue;
		kind->known_owner = known[i].owner;
		kind->known_cause = known[i].cause;
	}
}

/* An interpreter that lost the root, if it is known for that. */
struct known_leak {
	const char *owner, *cause;
};

static struct known_leak find_known_leak(const struct analysis *analysis, allocation_id id)
{
	struct known_leak known = { 0 };

	known.cause = runtimes_known_leak(analysis_runtimes(analysis), id, &known.owner);
	return known;
}

static struct error *add_kind(struct collector *collector, const struct shape *shape,
			      struct known_leak known)
{
	struct analysis *analysis = collector->shape.analysis;
	const struct allocation_index *index = analysis_index(analysis);
	struct label label = label_of(analysis, collector->shape.patterns, shape->name_giver);
	struct leak_kinds *kinds = collector->kinds;
	uint64_t size = allocation_size(index, shape->name_giver);
	struct leak_kind kind = {
		.fingerprint = shape->fingerprint,
		.name = label_name(label),
		.full_name = label.full,
		.module = label.module,
		.size = size,
		.smallest_size = size,
		.address = allocation_start(index, shape->name_giver),
		.likely = collector->likely,
		.known_owner = known.cause ? known.owner : NULL,
		.known_cause = known.cause,
	};
	struct error *error = kind.name ? NULL : &error_no_memory;

	if (!error && !known.cause)
		find_library_leak(&kind);
	if (!error && collector->likely)
		error = find_holder(analysis, shape, &kind);
	if (!error)
		error = LIST_APPEND(kinds->list, kinds->count, kind);
	if (error)
		kind_deinit(&kind);
	return error;
}

static struct error *add_root(struct collector *collector, const struct leak_root *root,
			      uint32_t *ret_kind)
{
	const struct allocation_index *index = analysis_index(collector->shape.analysis);
	struct leak_kind *kind;
	struct known_leak known = find_known_leak(collector->shape.analysis, root->id);
	struct shape shape;
	uint64_t size, key;

	shape_find(&collector->shape, root, &shape);
	/* The program may lose what looks alike. */
	key = known.cause ? hash_text(shape.fingerprint, known.cause) : shape.fingerprint;
	TRY(tally_add_numbered(collector->numbers, (struct tally){ .key = key, .count = 1 },
			       ret_kind));
	if (*ret_kind == collector->kinds->count)
		TRY(add_kind(collector, &shape, known));
	kind = &collector->kinds->list[*ret_kind];
	size = allocation_size(index, shape.name_giver);
	kind->roots++;
	kind->likely_roots += collector->likely;
	kind->allocations += root->owned_count;
	kind->bytes += root->owned_bytes;
	if (size > kind->size)
		kind->size = size;
	if (size < kind->smallest_size)
		kind->smallest_size = size;
	return NULL;
}

static struct error *add_side(struct analysis *analysis, const struct patterns *patterns,
			      struct tally_table *numbers, struct leak_kinds *kinds,
			      struct leak_side *side)
{
	enum { BETWEEN_STEPS = 256 };
	struct progress *progress = analysis_progress(analysis);
	size_t count = side->leaks->count;
	struct collector collector = {
		.kinds = kinds,
		.numbers = numbers,
		.likely = side == &kinds->likely,
	};
	struct error *error = shape_context_init(&collector.shape, analysis, patterns, side->lost);

	side->kinds.memory.account = analysis_account(analysis);
	if (!error)
		error = array_resize(&side->kinds, count);
	progress_begin(progress, "grouping leaks", count);
	for (size_t i = 0; !error && i < count; i++) {
		error = add_root(&collector, &side->leaks->roots[i], side->kinds.items + i);
		if (!error && i % BETWEEN_STEPS == BETWEEN_STEPS - 1)
			error = progress_check(progress, BETWEEN_STEPS);
	}
	shape_context_deinit(&collector.shape);
	return error;
}

/* The leaks of a side, other than all there are. */
static struct error *find_leaks(struct analysis *analysis, const struct bitmap *lost,
				struct leaks **owned, struct leak_side *side)
{
	TRY(leaks_create(analysis_graph(analysis), analysis_index(analysis),
			 analysis_runtimes(analysis), lost, analysis_account(analysis),
			 analysis_progress(analysis), owned));
	side->leaks = *owned;
	side->lost = lost;
	return NULL;
}

/* Without those that are likely held, if there are any. */
static struct error *leave_out_held(struct analysis *analysis, struct leak_kinds *kinds)
{
	const struct bitmap *leaked = analysis_leaked(analysis);

	if (kinds->certain.leaks->count == 0)
		return NULL;
	TRY(analysis_need(analysis, STAGE_DISGUISED));
	if (!bitmap_meets(likely_held(analysis), leaked))
		return NULL;
	TRY(bitmap_init_minus(&kinds->certain_lost, leaked, likely_held(analysis),
			      analysis_account(analysis)));
	return find_leaks(analysis, &kinds->certain_lost, &kinds->certain_leaks, &kinds->certain);
}

static struct error *add_certain(struct analysis *analysis, enum leak_choice choice,
				 struct tally_table *numbers, struct leak_kinds *kinds)
{
	TRY(analysis_need(analysis, STAGE_LEAKS));
	TRY(analysis_need(analysis, STAGE_CLASSES));
	TRY(analysis_need(analysis, STAGE_LEAKED_PATTERNS));
	kinds->certain.leaks = analysis_leaks(analysis);
	kinds->certain.lost = analysis_leaked(analysis);
	if (choice != LEAKS_ALL)
		TRY(leave_out_held(analysis, kinds));
	return add_side(analysis, analysis_leaked_patterns(analysis), numbers, kinds,
			&kinds->certain);
}

/* The allocations that are reached, and those of them whose edges are still to be followed. */
struct marking {
	struct analysis *analysis;
	struct reference_judge judge;
	struct bitmap *reached;
	ARRAY(allocation_id) stack;
};

static struct error *reach(void *data, allocation_id id)
{
	struct marking *marking = data;

	if (bitmap_get(marking->reached, id))
		return NULL;
	TRY(array_append(&marking->stack, id));
	bitmap_set(marking->reached, id);
	return NULL;
}

/* Follow the edges whose words are in use. */
static struct error *follow(struct marking *marking, allocation_id id)
{
	struct reference_judge *judge = &marking->judge;
	struct edges edges = graph_outgoing(analysis_graph(marking->analysis), id);
	size_t i = 0;

	while (i < edges.count && bitmap_get(marking->reached, edges.targets[i]))
		i++;
	if (i == edges.count)
		return NULL;
	if (patterns_of(judge->patterns, id) != NO_PATTERN) {
		reference_judge_set_source(judge, id);
		if (reference_judge_finds_taint(judge))
			return reference_judge_visit_untainted(judge, reach, marking);
	}
	for (; i < edges.count; i++)
		TRY(reach(marking, edges.targets[i]));
	return NULL;
}

static struct error *mark(struct marking *marking)
{
	const struct roots *roots = analysis_roots(marking->analysis);
	struct progress *progress = analysis_progress(marking->analysis);
	struct error *error = NULL;

	for (enum root_kind kind = 0; kind < ROOT_KINDS; kind++)
		bitmap_for_each(id, root_targets(roots, kind))
			if (!error)
				error = reach(marking, (allocation_id)id);
	while (!error && marking->stack.count > 0) {
		const allocation_id *stack = marking->stack.items;

		if (atomic_load_explicit(&progress->interrupted, memory_order_relaxed))
			return error_create(ERROR_INTERRUPTED, "interrupted");
		error = follow(marking, stack[--marking->stack.count]);
	}
	return error;
}

/*
 * Likely leaks are anchored, but only by stale words, as in the spare capacity of a vector or
 * behind the end of a string (patterns_is_tainted()): the program can no longer find them, but a
 * word with their address is still there.
 */
static struct error *find_likely(struct analysis *analysis, struct bitmap *ret)
{
	struct memory_account *account = analysis_account(analysis);
	size_t count;
	_cleanup_(bitmap_deinit) struct bitmap reached = { 0 };
	struct marking marking = {
		.analysis = analysis,
		.reached = &reached,
		.stack.memory.account = account,
	};
	struct error *error = analysis_need(analysis, STAGE_REACHABILITY);

	if (!error)
		error = analysis_need(analysis, STAGE_OWNERS);
	if (error)
		return error;
	count = allocation_count(analysis_index(analysis));
	reference_judge_init(&marking.judge, analysis_patterns(analysis));
	error = bitmap_init(&reached, count, account);
	if (!error)
		error = mark(&marking);
	array_release(&marking.stack);
	if (!error)
		error = bitmap_init(ret, count, account);
	if (error)
		return error;
	bitmap_copy(ret, analysis_anchored(analysis));
	bitmap_minus(ret, &reached);
	return NULL;
}

static struct error *add_likely(struct analysis *analysis, struct tally_table *numbers,
				struct leak_kinds *kinds)
{
	TRY(find_likely(analysis, &kinds->likely_lost));
	if (kinds->certain_leaks)
		bitmap_or(&kinds->likely_lost, likely_held(analysis));
	TRY(find_leaks(analysis, &kinds->likely_lost, &kinds->likely_leaks, &kinds->likely));
	return add_side(analysis, analysis_patterns(analysis), numbers, kinds, &kinds->likely);
}

/* A kind and its number as it was found. */
struct place {
	struct leak_kind kind;
	uint32_t number;
};

DEFINE_COMPARE(compare, struct place, ASCENDING(kind.likely), DESCENDING(kind.bytes),
	       ASCENDING(kind.fingerprint), ASCENDING(number))

/* The roots of a side know their kinds by new numbers now. */
static void renumber(struct leak_side *side, const uint32_t *numbers)
{
	size_t count = side->leaks ? side->leaks->count : 0;
	uint32_t *kinds = side->kinds.items;

	for (size_t i = 0; i < count; i++)
		kinds[i] = numbers[kinds[i]];
}

static struct error *sort(struct leak_kinds *kinds)
{
	_cleanup_(free) struct place *places = calloc(kinds->count, sizeof(*places));
	_cleanup_(free) uint32_t *numbers = calloc(kinds->count, sizeof(*numbers));

	TRY_MEMORY(places && numbers);
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

struct error *leak_kinds_find(struct analysis *analysis, enum leak_choice choice,
			      struct leak_kinds *ret)
{
	_cleanup_(table_release) struct tally_table numbers = {
		.memory.account = analysis_account(analysis),
	};

	TRY(add_certain(analysis, choice, &numbers, ret));
	if (choice == LEAKS_AND_LIKELY)
		TRY(add_likely(analysis, &numbers, ret));
	return ret->count == 0 ? NULL : sort(ret);
}

struct set_total leak_kinds_shared(const struct leak_kinds *kinds)
{
	const struct leaks *sides[] = { kinds->certain.leaks, kinds->likely.leaks };
	struct set_total total = { 0 };

	for (size_t i = 0; i < 2; i++)
		if (sides[i])
			set_total_add(&total, (struct set_total){ sides[i]->shared_count,
								  sides[i]->shared_bytes });
	return total;
}

const char *leak_state_name(enum leak_state state)
{
	static const char *const names[] = {
		[LEAK_NEW] = "new",
		[LEAK_KNOWN] = "known",
		[LEAK_MORE] = "more",
		[LEAK_SUPPRESSED] = "suppressed",
	};

	return names[state];
}

bool leak_counts(const struct leak_kind *kind)
{
	return kind->state == LEAK_NEW || kind->state == LEAK_MORE;
}

bool leak_is_known(const struct leak_kind *kind)
{
	return kind->known_cause && kind->rule == kind->known_cause;
}

/* amount * part / whole, rounded up; part is not more than whole. */
static uint64_t share(uint64_t amount, uint64_t part, uint64_t whole)
{
	return (uint64_t)(((unsigned __int128)amount * part + whole - 1) / whole);
}

struct set_total leak_counted(const struct leak_kind *kind)
{
	uint64_t excess = kind->roots - kind->allowed;

	if (!leak_counts(kind))
		return (struct set_total){ 0 };
	if (kind->state == LEAK_NEW)
		return (struct set_total){ kind->allocations, kind->bytes };
	return (struct set_total){
		share(kind->allocations, excess, kind->roots),
		share(kind->bytes, excess, kind->roots),
	};
}

/* Add all that the roots of kinds that count reach, less what each of them owns. */
static struct error *add_shared(struct analysis *analysis, const struct leak_kinds *kinds,
				const struct leak_side *side, struct set_total *total)
{
	struct memory_account *account = analysis_account(analysis);
	_cleanup_(bitmap_deinit) struct bitmap from = { 0 }, reached = { 0 };

	TRY(bitmap_init(&from, side->lost->count, account));
	TRY(bitmap_init(&reached, side->lost->count, account));
	for (size_t i = 0; i < side->leaks->count; i++) {
		const struct leak_root *root = &side->leaks->roots[i];

		if (!leak_counts(&kinds->list[side->kinds.items[i]]))
			continue;
		bitmap_set(&from, root->id);
		total->count -= root->owned_count;
		total->bytes -= root->owned_bytes;
	}
	TRY(graph_mark_within(analysis_graph(analysis), side->lost, &from, &reached, account,
			      analysis_progress(analysis)));
	bitmap_for_each(id, &reached) {
		uint64_t size = allocation_size(analysis_index(analysis), (allocation_id)id);

		set_total_add(total, (struct set_total){ 1, size });
	}
	return NULL;
}

struct error *leak_kinds_count(struct analysis *analysis, const struct leak_kinds *kinds,
			       struct set_total *ret)
{
	const struct leak_side *sides[] = { &kinds->certain, &kinds->likely };
	struct set_total total = { 0 };

	for (size_t i = 0; i < 2; i++)
		if (sides[i]->leaks && sides[i]->leaks->shared_count > 0)
			TRY(add_shared(analysis, kinds, sides[i], &total));
	for (size_t i = 0; i < kinds->count; i++)
		set_total_add(&total, leak_counted(&kinds->list[i]));
	*ret = total;
	return NULL;
}
