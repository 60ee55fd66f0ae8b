#include "analyzer/analysis/parts.h"
#include "analyzer/base/text.h"
#include "analyzer/graph/disguises.h"
#include "analyzer/graph/signal_stacks.h"

#include <inttypes.h>
#include <string.h>

static struct error *build_image(struct analysis *analysis, uint64_t *ret_count)
{
	/* Opened along with the analysis. */
	*ret_count = analysis->image->region_count;
	return NULL;
}

static struct error *build_program(struct analysis *analysis, uint64_t *ret_count)
{
	_cleanup_(image_advice_end) struct image_advice advice =
		image_advise_random(analysis->image);

	TRY(program_create(analysis->image, &analysis->findings, &analysis->program));
	*ret_count = analysis->program->thread_count;
	return NULL;
}

struct heap_context analysis_heap_context(struct analysis *analysis)
{
	return (struct heap_context){
		.image = analysis->image,
		.program = analysis->program,
		.findings = &analysis->findings,
		.account = &analysis->account,
		.progress = analysis->progress,
	};
}

static struct error *build_heap(struct analysis *analysis, uint64_t *ret_count)
{
	const struct heap_context context = analysis_heap_context(analysis);

	TRY(heaps_create(&context, &analysis->heaps));
	analysis->index = heaps_index(analysis->heaps);
	*ret_count = allocation_count(analysis->index);
	return NULL;
}

static struct error *build_fibers(struct analysis *analysis, uint64_t *ret_count)
{
	const struct runtime_context context = {
		.image = analysis->image,
		.program = analysis->program,
		.index = analysis->index,
		.account = &analysis->account,
	};

	TRY(runtimes_create(analysis->runtime_kinds, &context, &analysis->runtimes));
	*ret_count = fiber_count(runtimes_fibers(analysis->runtimes));
	return NULL;
}

struct roots_input analysis_roots_input(struct analysis *analysis)
{
	return (struct roots_input){ analysis->image,	 analysis->program,  analysis->index,
				     analysis->runtimes, &analysis->account, analysis->progress };
}

static struct error *build_roots(struct analysis *analysis, uint64_t *ret_count)
{
	const struct roots_input input = analysis_roots_input(analysis);

	TRY(roots_create(&input, &analysis->roots));
	*ret_count = root_range_count(analysis->roots);
	return NULL;
}

static struct error *build_graph(struct analysis *analysis, uint64_t *ret_count)
{
	/* Threads ask the allocators for what they left in blocks. */
	struct error *error = heaps_wake(analysis->heaps);

	if (!error)
		error = graph_create(analysis->image, analysis->index, &analysis->account,
				     analysis->progress, &analysis->graph);

	if (!error)
		*ret_count = graph_edge_count(analysis->graph);
	return error;
}

struct error *analysis_mark(struct analysis *analysis, enum root_kind first, enum root_kind last,
			    struct bitmap *ret)
{
	_cleanup_(bitmap_deinit) struct bitmap from = { 0 };
	size_t count = allocation_count(analysis->index);
	struct bitmap reached = { 0 };
	struct error *error = bitmap_init(&from, count, &analysis->account);

	if (!error)
		error = bitmap_init(&reached, count, &analysis->account);
	if (error)
		return error;
	for (enum root_kind kind = first; kind <= last; kind++)
		bitmap_or(&from, root_targets(analysis->roots, kind));
	error = graph_mark(analysis->graph, &from, &reached, &analysis->account,
			   analysis->progress);
	if (error) {
		bitmap_deinit(&reached);
		return error;
	}
	bitmap_and(&reached, allocation_used(analysis->index));
	*ret = reached;
	return NULL;
}

struct disguises_input analysis_disguises_input(struct analysis *analysis,
						const struct bitmap *in_use,
						const struct bitmap *wanted)
{
	return (struct disguises_input){
		.image = analysis->image,
		.index = analysis->index,
		.roots = analysis->roots,
		.graph = analysis->graph,
		.incoming = analysis->incoming,
		.in_use = in_use,
		.wanted = wanted,
		.disguises = DISGUISED_POINTERS,
		.account = &analysis->account,
		.progress = analysis->progress,
	};
}

/* Add what integers of interpreters hold, where something would be lost. */
static struct error *add_integers(struct analysis *analysis, struct bitmap *anchored)
{
	_cleanup_(bitmap_deinit) struct bitmap wanted = { 0 };
	_cleanup_(disguises_deinit) struct disguises integers = { 0 };
	struct disguises_input input = analysis_disguises_input(analysis, anchored, &wanted);

	if (!runtimes_have_integers(analysis->runtimes))
		return NULL;
	input.disguises = 0;
	input.integers = analysis->runtimes;
	TRY(bitmap_init_minus(&wanted, allocation_used(analysis->index), anchored,
			      &analysis->account));
	TRY(disguises_find(&input, &integers));
	bitmap_or(anchored, &integers.reached);
	return roots_add_integers(analysis->roots, integers.list.items, integers.list.count);
}

static void note_stacks(struct analysis *analysis, const struct bitmap *stacks)
{
	allocation_id first = (allocation_id)bitmap_next(stacks, 0);
	size_t count = bitmap_weight(stacks);
	char size[NUMBER_SIZE];

	findings_add(
		&analysis->findings, FINDING_NOTE,
		"the program calls sigaltstack(), and the core does not tell with what: %zu block%s of %s bytes to which nothing refers, %s 0x%" PRIx64
		", %s taken for alternate signal stacks ('heapcore run' sees them being set)",
		count, count == 1 ? "" : "s",
		grouped(allocation_size(analysis->index, first), size),
		count == 1 ? "at" : "first at", allocation_start(analysis->index, first),
		count == 1 ? "is" : "are");
}

/* Add what the kernel alone may hold, though the core does not say so. */
static struct error *add_signal_stacks(struct analysis *analysis, struct bitmap *anchored)
{
	_cleanup_(bitmap_deinit) struct bitmap unreachable = { 0 };
	_cleanup_(bitmap_deinit) struct bitmap stacks = { 0 };
	_cleanup_(bitmap_deinit) struct bitmap reached = { 0 };
	const struct signal_stacks_input input = {
		analysis->image, analysis->program, analysis->index,
		analysis->graph, &unreachable,	    &analysis->account,
	};

	TRY(bitmap_init_minus(&unreachable, allocation_used(analysis->index), anchored,
			      &analysis->account));
	TRY(signal_stacks_guess(&input, &stacks));
	if (!stacks.words)
		return NULL;
	note_stacks(analysis, &stacks);
	roots_assume_stacks(analysis->roots, &stacks);
	TRY(bitmap_init(&reached, anchored->count, &analysis->account));
	TRY(graph_mark(analysis->graph, &stacks, &reached, &analysis->account, analysis->progress));
	bitmap_and(&reached, &unreachable);
	bitmap_or(anchored, &reached);
	return NULL;
}

static void note_runtimes(struct analysis *analysis)
{
	for (size_t i = 0; i < runtime_count(analysis->runtimes); i++) {
		const char *note = runtime_at(analysis->runtimes, i)->leaks_note;

		if (note)
			findings_add(&analysis->findings, FINDING_NOTE, "%s", note);
	}
}

static struct error *build_reachability(struct analysis *analysis, uint64_t *ret_count)
{
	struct bitmap anchored = { 0 };
	struct error *error = analysis_mark(analysis, ROOT_STATIC, ROOT_KERNEL, &anchored);

	if (error)
		return error;
	error = add_integers(analysis, &anchored);
	if (!error)
		error = add_signal_stacks(analysis, &anchored);
	if (!error)
		error = liveness_init(&analysis->liveness, analysis->graph, analysis->index,
				      &anchored, &analysis->account, analysis->progress);
	if (error) {
		bitmap_deinit(&anchored);
		return error;
	}
	analysis->anchored = anchored;
	note_runtimes(analysis);
	*ret_count = bitmap_weight(&analysis->liveness.leaked);
	return NULL;
}

/* What a function of the program marks, nobody else knows of. */
void analysis_doubt_risk(struct analysis *analysis)
{
	if (analysis->risk_doubted)
		return;
	analysis->risk_doubted = true;
	switch (heaps_more_roots(analysis->heaps)) {
	case MORE_ROOTS_CALLBACK:
		findings_add(
			&analysis->findings, FINDING_CAVEAT,
			"the program marks memory for its collector by functions of its own: what is said to be at risk may be safe by that");
		break;
	case MORE_ROOTS_UNKNOWN:
		findings_add(
			&analysis->findings, FINDING_CAVEAT,
			"it cannot be told whether the program marks memory for its collector by functions of its own: if so, what is said to be at risk may be safe by that");
		break;
	default:
		break;
	}
}

static struct error *build_collector(struct analysis *analysis, uint64_t *ret_count)
{
	const struct collector_input input = {
		.program = analysis->program,
		.index = analysis->index,
		.roots = analysis->roots,
		.graph = analysis->graph,
		.account = &analysis->account,
		.progress = analysis->progress,
	};
	const struct bitmap *collectable = allocation_having(analysis->index, TRAIT_COLLECTABLE);
	_cleanup_(bitmap_deinit) struct bitmap kept = { 0 };
	struct bitmap at_risk = { 0 };

	*ret_count = 0;
	if (!collectable)
		return NULL;
	TRY(collector_mark(&input, &kept));
	TRY(bitmap_init_minus(&at_risk, &analysis->anchored, &kept, &analysis->account));
	bitmap_and(&at_risk, collectable);
	analysis->at_risk = at_risk;
	*ret_count = bitmap_weight(&at_risk);
	return NULL;
}

static struct error *build_leaks(struct analysis *analysis, uint64_t *ret_count)
{
	TRY(leaks_create(analysis->graph, analysis->index, &analysis->liveness.leaked,
			 &analysis->account, analysis->progress, &analysis->leaks));
	*ret_count = leak_root_count(analysis->leaks);
	return NULL;
}

static struct error *build_incoming(struct analysis *analysis, uint64_t *ret_count)
{
	TRY(graph_transpose(analysis->graph, &analysis->account, analysis->progress,
			    &analysis->incoming));
	*ret_count = graph_edge_count(analysis->incoming);
	return NULL;
}

static void add_leak_roots(const struct leaks *leaks, struct bitmap *ret)
{
	for (size_t i = 0; i < leak_root_count(leaks); i++)
		bitmap_set(ret, leak_root(leaks, i)->id);
}

/* The same of what a collector will free, and what only that leads to. */
static struct error *add_garbage_roots(struct analysis *analysis, struct bitmap *ret)
{
	const struct liveness *liveness = &analysis->liveness;
	_cleanup_(leaks_destroy) struct leaks *roots = NULL;
	_cleanup_(bitmap_deinit) struct bitmap lost = { 0 };

	if (!liveness->garbage.words)
		return NULL;
	TRY(bitmap_init(&lost, ret->count, &analysis->account));
	bitmap_or(&lost, &liveness->garbage);
	bitmap_or(&lost, &liveness->held);
	TRY(leaks_create(analysis->graph, analysis->index, &lost, &analysis->account,
			 analysis->progress, &roots));
	add_leak_roots(roots, ret);
	return NULL;
}

/* The dominator tree begins at what roots refer to, and at leak roots. */
static struct error *build_retained(struct analysis *analysis, uint64_t *ret_count)
{
	_cleanup_(bitmap_deinit) struct bitmap entries = { 0 };
	const struct dominators_input input = {
		.graph = analysis->graph,
		.incoming = analysis->incoming,
		.index = analysis->index,
		.entries = &entries,
		.anchored = &analysis->anchored,
		.leaked = &analysis->liveness.leaked,
		.account = &analysis->account,
		.progress = analysis->progress,
	};

	TRY(bitmap_init(&entries, allocation_count(analysis->index), &analysis->account));
	for (enum root_kind kind = 0; kind < ROOT_KINDS; kind++)
		bitmap_or(&entries, root_targets(analysis->roots, kind));
	add_leak_roots(analysis->leaks, &entries);
	TRY(add_garbage_roots(analysis, &entries));
	TRY(dominators_create(&input, &analysis->dominators));
	*ret_count = dominators_count(analysis->dominators);
	return NULL;
}

/* What programs do to pointers: one pass finds all that is held so. */
static struct error *build_disguised(struct analysis *analysis, uint64_t *ret_count)
{
	const struct disguises_input input =
		analysis_disguises_input(analysis, &analysis->anchored, &analysis->liveness.leaked);

	TRY(disguises_find(&input, &analysis->disguised));
	disguises_sort(&analysis->disguised);
	*ret_count = analysis->disguised.list.count;
	return NULL;
}

static struct error *build_debug(struct analysis *analysis, uint64_t *ret_count)
{
	static const struct debug_options none = { NULL };
	const struct debug_options *options = analysis->options ? analysis->options : &none;

	*ret_count = analysis->program->module_count;
	return debug_create(analysis->image, analysis->program, options, &analysis->findings,
			    &analysis->debug);
}

static struct error *build_objects(struct analysis *analysis, uint64_t *ret_count)
{
	struct error *error = runtimes_find_objects(analysis->runtimes, analysis->debug);

	*ret_count = error ? 0 : runtimes_class_count(analysis->runtimes);
	return error;
}

/* Where links of glibc's free lists lead that end in no block. */
static uint64_t find_links(const struct analysis *analysis)
{
	for (size_t i = 0; i < heaps_arena_count(analysis->heaps); i++) {
		struct arena arena = heaps_arena(analysis->heaps, (arena_number)i);

		if (arena.address && program_find_module(analysis->program, arena.address))
			return arena.address;
	}
	return 0;
}

static struct error *build_signature_judge(struct analysis *analysis)
{
	const struct signature_judge_input input = {
		.image = analysis->image,
		.program = analysis->program,
		.debug = analysis->debug,
		.classes = analysis->classes,
		.index = analysis->index,
		.links = find_links(analysis),
		.account = &analysis->account,
	};

	return signature_judge_create(&input, &analysis->signature_judge);
}

static struct error *build_classes(struct analysis *analysis, uint64_t *ret_count)
{
	struct error *error = classes_create(analysis->image, analysis->program, analysis->debug,
					     &analysis->account, &analysis->classes);

	if (error)
		return error;
	classes_set_runtimes(analysis->classes, analysis->runtimes);
	error = identities_create(analysis->image, analysis->program, analysis->debug,
				  analysis->classes, &analysis->account, &analysis->identities);
	if (!error)
		error = build_signature_judge(analysis);
	if (error) {
		if (analysis->identities)
			identities_destroy(take(analysis->identities));
		classes_destroy(take(analysis->classes));
		return error;
	}
	*ret_count = analysis->program->module_count;
	return NULL;
}

static struct error *build_signatures(struct analysis *analysis, uint64_t *ret_count)
{
	const struct first_words_input input = {
		.signatures = analysis_signatures(analysis),
		.identities = analysis->identities,
		.account = &analysis->account,
		.progress = analysis->progress,
	};

	TRY(first_words_create(&input, &analysis->first_words));
	*ret_count = first_words_count(analysis->first_words);
	return NULL;
}

static struct error *build_types(struct analysis *analysis, uint64_t *ret_count)
{
	const struct typing_input input = {
		.image = analysis->image,
		.index = analysis->index,
		.debug = analysis->debug,
		.account = &analysis->account,
		.progress = analysis->progress,
	};
	_cleanup_(image_advice_end) struct image_advice advice =
		image_advise_random(analysis->image);

	TRY(typing_create(&input, &analysis->typing));
	*ret_count = typing_count(analysis->typing);
	return NULL;
}

struct scan_input analysis_scan_input(struct analysis *analysis)
{
	return (struct scan_input){
		.image = analysis->image,
		.program = analysis->program,
		.index = analysis->index,
		.roots = analysis->roots,
		.runtimes = analysis->runtimes,
		.account = &analysis->account,
		.progress = analysis->progress,
	};
}

static struct error *find_patterns(const struct scan_input *input,
				   struct error *(*find)(struct patterns *), struct patterns **ret)
{
	_cleanup_(patterns_destroy) struct patterns *patterns = NULL;

	TRY(patterns_create(input, &patterns));
	TRY(find(patterns));
	*ret = take(patterns);
	return NULL;
}

static struct error *build_patterns(struct analysis *analysis, uint64_t *ret_count)
{
	const struct scan_input input = analysis_scan_input(analysis);

	*ret_count = allocation_count(analysis->index);
	/* They may have been found along with their owners. */
	return analysis->patterns ? NULL
				  : find_patterns(&input, patterns_find, &analysis->patterns);
}

static struct error *build_owners(struct analysis *analysis, uint64_t *ret_count)
{
	const struct scan_input input = analysis_scan_input(analysis);

	*ret_count = allocation_count(analysis->index);
	return analysis->patterns
		       ? patterns_find_owners(analysis->patterns)
		       : find_patterns(&input, patterns_find_owners, &analysis->patterns);
}

/* Only unreachable allocations refer to unreachable ones. */
static struct error *build_leaked_patterns(struct analysis *analysis, uint64_t *ret_count)
{
	struct scan_input input = analysis_scan_input(analysis);
	_cleanup_(kept_words_destroy) struct kept_words *kept = NULL;
	struct error *error = NULL;

	input.only = analysis_unreachable(analysis);
	*ret_count = bitmap_weight(input.only);
	/* The patterns of all allocations include those of the leaked. */
	if (analysis->patterns)
		return NULL;
	/* Managed objects begin behind a header. */
	if (!analysis->first_words && !allocation_having(analysis->index, TRAIT_MANAGED))
		error = kept_words_create(input.only, &analysis->account, &kept);
	input.kept = kept;
	if (!error)
		error = find_patterns(&input, patterns_find, &analysis->leaked_patterns);
	if (!error)
		analysis->kept_words = take(kept);
	return error;
}

#define KEPT(name) analysis_save_##name, analysis_load_##name

const struct recipe analysis_recipes[STAGES] = {
	[STAGE_IMAGE] = { "image", "regions", { STAGE_IMAGE }, build_image },
	[STAGE_PROGRAM] = { "program", "threads", { STAGE_IMAGE }, build_program },
	[STAGE_HEAP] = { "heap", "allocations", { STAGE_PROGRAM }, build_heap, KEPT(heap) },
	[STAGE_FIBERS] = { "fibers", "fibers", { STAGE_HEAP }, build_fibers },
	[STAGE_ROOTS] = { "roots", "ranges", { STAGE_FIBERS }, build_roots, KEPT(roots) },
	[STAGE_GRAPH] = { "graph", "references", { STAGE_HEAP }, build_graph, KEPT(graph) },
	[STAGE_REACHABILITY] = { "reachability",
				 "leaked",
				 { STAGE_ROOTS, STAGE_GRAPH },
				 build_reachability,
				 KEPT(reachability) },
	[STAGE_LEAKS] = { "leaks", "leak roots", { STAGE_REACHABILITY }, build_leaks, KEPT(leaks) },
	[STAGE_COLLECTOR] = { "collector", "at risk", { STAGE_REACHABILITY }, build_collector },
	[STAGE_INCOMING] = { "incoming", "references", { STAGE_GRAPH }, build_incoming },
	[STAGE_RETAINED] = { "retained",
			     "allocations",
			     { STAGE_LEAKS, STAGE_INCOMING },
			     build_retained },
	[STAGE_DISGUISED] = { "disguised", "allocations", { STAGE_REACHABILITY }, build_disguised },
	[STAGE_DEBUG] = { "debug", "modules", { STAGE_PROGRAM }, build_debug },
	[STAGE_OBJECTS] = { "objects", "types", { STAGE_FIBERS, STAGE_DEBUG }, build_objects },
	[STAGE_CLASSES] = { "classes", "modules", { STAGE_OBJECTS, STAGE_DEBUG }, build_classes },
	[STAGE_SIGNATURES] = { "signatures",
			       "signatures",
			       { STAGE_CLASSES },
			       build_signatures,
			       KEPT(signatures) },
	[STAGE_PATTERNS] = { "patterns",
			     "allocations",
			     { STAGE_ROOTS, STAGE_OBJECTS },
			     build_patterns },
	[STAGE_OWNERS] = { "owners", "allocations", { STAGE_ROOTS, STAGE_OBJECTS }, build_owners },
	[STAGE_TYPES] = { "types", "typed", { STAGE_HEAP, STAGE_DEBUG }, build_types },
	[STAGE_LEAKED_PATTERNS] = { "patterns of leaked",
				    "allocations",
				    { STAGE_REACHABILITY, STAGE_OBJECTS },
				    build_leaked_patterns,
				    KEPT(leaked_patterns) },
};
