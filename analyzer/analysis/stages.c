#include "analyzer/analysis/parts.h"
#include "analyzer/classify/hierarchy.h"
#include "analyzer/graph/disguises.h"
#include "analyzer/heap/index_side.h"

#include <inttypes.h>
#include <string.h>

static struct error *build_image(struct analysis *analysis)
{
	/* Opened along with the analysis. */
	return NULL;
}

static struct error *build_program(struct analysis *analysis)
{
	_cleanup_(image_advice_end) struct image_advice advice =
		image_advise_random(analysis->image);

	return program_create(analysis->image, &analysis->findings, &analysis->program);
}

static struct heap_context heap_context_of(struct analysis *analysis)
{
	return (struct heap_context){
		.image = analysis->image,
		.program = analysis->program,
		.findings = &analysis->findings,
		.account = &analysis->account,
		.progress = analysis->progress,
	};
}

static struct error *build_heap(struct analysis *analysis)
{
	const struct heap_context context = heap_context_of(analysis);

	TRY(heaps_create(&context, &analysis->heaps));
	analysis->index = heaps_index(analysis->heaps);
	return NULL;
}

static struct error *build_fibers(struct analysis *analysis)
{
	const struct runtime_context context = {
		.image = analysis->image,
		.program = analysis->program,
		.heaps = analysis->heaps,
		.index = analysis->index,
		.account = &analysis->account,
	};
	static const struct runtime *const none[] = { NULL };

	return runtimes_create(analysis_is_narrow(analysis) ? none : analysis->runtime_kinds,
			       &context, &analysis->runtimes);
}

static struct roots_input roots_input_of(struct analysis *analysis)
{
	return (struct roots_input){ analysis->image,	 analysis->program,  analysis->index,
				     analysis->runtimes, &analysis->account, analysis->progress };
}

static struct error *build_roots(struct analysis *analysis)
{
	const struct roots_input input = roots_input_of(analysis);

	return roots_create(&input, &analysis->roots);
}

static struct error *build_graph(struct analysis *analysis)
{
	/* Threads ask the allocators for what they left in blocks. */
	TRY(heaps_wake(analysis->heaps));
	return graph_create(analysis->image, analysis->index, analysis->runtimes,
			    &analysis->account, analysis->progress, &analysis->graph);
}

static struct error *build_leaks(struct analysis *analysis)
{
	return leaks_create(analysis->graph, analysis->index, analysis->runtimes,
			    &analysis->liveness.leaked, &analysis->account, analysis->progress,
			    &analysis->leaks);
}

static struct error *build_incoming(struct analysis *analysis)
{
	return graph_transpose(analysis->graph, &analysis->account, analysis->progress,
			       &analysis->incoming);
}

static void add_leak_roots(const struct leaks *leaks, struct bitmap *ret)
{
	for (size_t i = 0; i < leaks->count; i++)
		bitmap_set(ret, leaks->roots[i].id);
}

/* Add the roots of garbage: what a collector will free, and what only that leads to. */
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
	TRY(leaks_create(analysis->graph, analysis->index, analysis->runtimes, &lost,
			 &analysis->account, analysis->progress, &roots));
	add_leak_roots(roots, ret);
	return NULL;
}

static struct error *find_variables(struct analysis *analysis, const struct bitmap *nested)
{
	const struct variables_input input = {
		.image = analysis->image,
		.program = analysis->program,
		.runtimes = analysis->runtimes,
		.roots = analysis->roots,
		.graph = analysis->graph,
		.index = analysis->index,
		.targets = allocation_used(analysis->index),
		.anchored = &analysis->anchored,
		.nested = nested,
		.debug = analysis->debug,
		.account = &analysis->account,
		.progress = analysis->progress,
	};

	cleanup_variables_destroy(&analysis->variables);
	analysis->variables = NULL;
	return variables_create(&input, &analysis->variables);
}

/* The dominator tree begins at variables, and at leak roots; what belongs to another is below it.
 */
static struct error *build_dominators(struct analysis *analysis)
{
	_cleanup_(bitmap_deinit) struct bitmap entries = { 0 };
	struct dominators_input input = {
		.graph = analysis->graph,
		.spent = analysis->saves_memory ? &analysis->graph : NULL,
		.index = analysis->index,
		.entries = &entries,
		.anchored = &analysis->anchored,
		.leaked = &analysis->liveness.leaked,
		.account = &analysis->account,
		.progress = analysis->progress,
	};
	_cleanup_(graph_destroy) struct graph *nesting = NULL;
	_cleanup_(hierarchy_deinit) struct hierarchy hierarchy = { 0 };
	struct error *error;

	TRY(hierarchy_find(analysis->image, analysis->program, analysis->index, input.anchored,
			   input.account, &hierarchy));
	if (hierarchy.links.count > 0) {
		TRY(hierarchy_graph(&hierarchy, analysis->graph, input.account, input.progress,
				    &nesting));
		input.graph = nesting;
		input.spent = analysis->saves_memory ? &nesting : NULL;
	}
	TRY(find_variables(analysis, hierarchy.links.count > 0 ? &hierarchy.nested : NULL));
	input.roots = variables_roots(analysis->variables);
	input.regions = variables_regions(analysis->variables);
	input.own = variables_own(analysis->variables);
	TRY(bitmap_init(&entries, allocation_count(analysis->index), &analysis->account));
	add_leak_roots(analysis->leaks, &entries);
	TRY(add_garbage_roots(analysis, &entries));
	error = dominators_create(&input, &analysis->dominators);
	analysis->costs[STAGE_GRAPH].built = analysis->graph != NULL;
	return error;
}

/* If the references were released, build them again, if there is something to find. */
static struct error *build_sharers(struct analysis *analysis)
{
	struct sharers_input input = {
		.index = analysis->index,
		.dominators = analysis->dominators,
		.variables = analysis->variables,
		.anchored = &analysis->anchored,
		.account = &analysis->account,
		.progress = analysis->progress,
	};
	bool was_spent = !analysis->graph;
	struct error *error;

	if (sharers_are_there(&input))
		TRY(analysis_need(analysis, STAGE_GRAPH));
	input.graph = analysis->graph;
	error = sharers_create(&input, &analysis->sharers);
	if (was_spent && analysis->graph) {
		graph_destroy(take(analysis->graph));
		analysis->costs[STAGE_GRAPH].built = false;
	}
	return error;
}

static struct error *build_retained(struct analysis *analysis)
{
	return dominators_find_positions(analysis->dominators);
}

/* One pass finds everything that programs hold by disguised pointers. */
static struct error *build_disguised(struct analysis *analysis)
{
	const struct disguises_input input =
		analysis_disguises_input(analysis, &analysis->anchored, &analysis->liveness.leaked);

	TRY(disguises_find(&input, &analysis->disguised));
	TRY(disguises_drop_chance(&input, &analysis->disguised));
	disguises_sort(&analysis->disguised);
	return NULL;
}

static struct error *build_debug(struct analysis *analysis)
{
	static const struct debug_options none = { NULL };
	const struct debug_options *options = analysis->options ? analysis->options : &none;

	return debug_create(analysis->image, analysis->program, options, &analysis->findings,
			    &analysis->debug);
}

static struct error *build_objects(struct analysis *analysis)
{
	return runtimes_find_objects(analysis->runtimes, analysis->debug);
}

static struct error *build_object_paths(struct analysis *analysis)
{
	const struct object_paths_input input = {
		.list = analysis->runtimes,
		.image = analysis->image,
		.index = analysis->index,
		.anchored = &analysis->anchored,
		.account = &analysis->account,
		.progress = analysis->progress,
	};

	return object_paths_create(&input, &analysis->object_paths);
}

/* The address of glibc's main arena, in which links of its free lists end. */
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

static struct error *build_classes(struct analysis *analysis)
{
	struct error *error = classes_create(analysis->image, analysis->program, analysis->debug,
					     &analysis->account, &analysis->classes);

	if (error)
		return error;
	classes_set_runtimes(analysis->classes, analysis->runtimes);
	error = identities_create(analysis->image, analysis->program, analysis->debug,
				  analysis->classes, analysis->index, &analysis->account,
				  &analysis->identities);
	if (!error)
		error = build_signature_judge(analysis);
	if (error) {
		if (analysis->identities)
			identities_destroy(take(analysis->identities));
		classes_destroy(take(analysis->classes));
	}
	return error;
}

static struct error *build_signatures(struct analysis *analysis)
{
	const struct first_words_input input = {
		.signatures = analysis_signatures(analysis),
		.identities = analysis->identities,
		.account = &analysis->account,
		.progress = analysis->progress,
	};

	return first_words_create(&input, &analysis->first_words);
}

static struct error *build_type_table(struct analysis *analysis)
{
	return type_table_create(analysis->debug, &analysis->account, analysis->progress,
				 &analysis->type_table);
}

static struct typing_input typing_input_of(struct analysis *analysis)
{
	return (struct typing_input){
		.image = analysis->image,
		.index = analysis->index,
		.debug = analysis->debug,
		.classes = analysis->classes,
		.runtimes = analysis->runtimes,
		.types = analysis->type_table,
		.account = &analysis->account,
		.progress = analysis->progress,
	};
}

static struct error *build_sites(struct analysis *analysis)
{
	const struct typing_input input = typing_input_of(analysis);

	return sites_create(&input, analysis->program, &analysis->sites);
}

static struct error *build_types(struct analysis *analysis)
{
	const struct typing_input input = typing_input_of(analysis);
	_cleanup_(image_advice_end) struct image_advice advice =
		image_advise_random(analysis->image);

	if (analysis->leak_typing && !typing_is_partial(analysis->leak_typing)) {
		analysis->typing = take(analysis->leak_typing);
		return NULL;
	}
	cleanup_typing_destroy(&analysis->leak_typing);
	analysis->leak_typing = NULL;
	return typing_create(&input, &analysis->typing);
}

struct error *analysis_state_type(struct analysis *analysis, const struct type_statement *statement,
				  struct type_changes *ret)
{
	_cleanup_(image_advice_end) struct image_advice advice =
		image_advise_random(analysis->image);

	TRY(typing_state(analysis->typing, statement, ret));
	analysis_tell_notes(analysis, STAGE_TYPES);
	analysis_keep(analysis, NULL, NULL);
	cleanup_siblings_destroy(&analysis->siblings);
	analysis->siblings = NULL;
	analysis->costs[STAGE_LEAKED_TYPES].built = false;
	return NULL;
}

/*
 * Finding types of leaked allocations takes as long as all references, so do it only if some may
 * have a likely type.
 */
static struct error *expect_leaked_types(struct analysis *analysis, bool *ret)
{
	*ret = analysis->costs[STAGE_REACHABILITY].built || !analysis->typing;
	return *ret ? NULL : siblings_expect(analysis->typing, &analysis->account, ret);
}

/* Some types name what leaked as well as all do, unless they are seldom. */
static struct error *find_siblings_in_part(struct analysis *analysis, bool *ret_suffices)
{
	struct typing_input input = typing_input_of(analysis);
	_cleanup_(image_advice_end) struct image_advice advice =
		image_advise_random(analysis->image);

	*ret_suffices = false;
	input.leaked = &analysis->liveness.leaked;
	TRY(typing_create(&input, &analysis->leak_typing));
	TRY(siblings_create(analysis->leak_typing, input.leaked, &analysis->account,
			    &analysis->siblings));
	*ret_suffices = siblings_suffice(analysis->siblings);
	if (*ret_suffices)
		return NULL;
	cleanup_siblings_destroy(&analysis->siblings);
	analysis->siblings = NULL;
	return NULL;
}

struct error *analysis_need_types(struct analysis *analysis)
{
	TRY(analysis_need(analysis, STAGE_TYPES));
	return analysis_need(analysis, STAGE_LEAKED_TYPES);
}

static struct error *build_leaked_types(struct analysis *analysis)
{
	bool expected, suffices = false;

	TRY(expect_leaked_types(analysis, &expected));
	if (!expected)
		return siblings_create(NULL, NULL, &analysis->account, &analysis->siblings);
	TRY(analysis_need(analysis, STAGE_REACHABILITY));
	if (!analysis->typing)
		TRY(find_siblings_in_part(analysis, &suffices));
	if (suffices)
		return NULL;
	TRY(analysis_need(analysis, STAGE_TYPES));
	return siblings_create(analysis->typing, &analysis->liveness.leaked, &analysis->account,
			       &analysis->siblings);
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

static struct error *build_patterns(struct analysis *analysis)
{
	const struct scan_input input = analysis_scan_input(analysis);

	/* They may have been found along with their owners. */
	return analysis->patterns ? NULL
				  : find_patterns(&input, patterns_find, &analysis->patterns);
}

static struct error *build_owners(struct analysis *analysis)
{
	const struct scan_input input = analysis_scan_input(analysis);

	return analysis->patterns
		       ? patterns_find_owners(analysis->patterns)
		       : find_patterns(&input, patterns_find_owners, &analysis->patterns);
}

struct error *analysis_find_numbered(struct analysis *analysis, struct patterns **ret)
{
	struct scan_input input = analysis_scan_input(analysis);

	input.numbered = true;
	return find_patterns(&input, patterns_find_owners, ret);
}

/* Only unreachable allocations refer to unreachable ones. */
static struct error *build_leaked_patterns(struct analysis *analysis)
{
	struct scan_input input = analysis_scan_input(analysis);
	_cleanup_(kept_words_destroy) struct kept_words *kept = NULL;

	input.only = analysis_unreachable(analysis);
	/* The patterns of all allocations include those of the leaked. */
	if (analysis->patterns)
		return NULL;
	/* Managed objects begin behind a header. */
	if (!analysis->first_words && !allocation_having(analysis->index, TRAIT_MANAGED))
		TRY(kept_words_create(input.only, &analysis->account, &kept));
	input.kept = kept;
	TRY(find_patterns(&input, patterns_find, &analysis->leaked_patterns));
	analysis->kept_words = take(kept);
	return NULL;
}

/* Count the items of a finished stage. */
#define COUNT(name, expression)                                       \
	static uint64_t count_##name(const struct analysis *analysis) \
	{                                                             \
		return expression;                                    \
	}
COUNT(image, analysis->image->region_count)
COUNT(program, analysis->program->thread_count)
COUNT(heap, allocation_count(analysis->index))
COUNT(fibers, runtimes_fibers(analysis->runtimes)->count)
COUNT(roots, root_range_count(analysis->roots))
COUNT(graph, graph_edge_count(analysis->graph))
COUNT(reachability, bitmap_weight(&analysis->liveness.leaked))
COUNT(leaks, analysis->leaks->count)
COUNT(collector, bitmap_weight(&analysis->at_risk))
COUNT(incoming, graph_edge_count(analysis->incoming))
COUNT(dominators, dominators_count(analysis->dominators))
COUNT(sharers, sharers_count(analysis->sharers))
COUNT(disguised, analysis->disguised.list.count)
COUNT(lost_counts, analysis->lost_counts.lost.count)
COUNT(modules, analysis->program->module_count)
COUNT(objects, runtimes_class_count(analysis->runtimes))
COUNT(object_paths, object_paths_count(analysis->object_paths))
COUNT(signatures, first_words_count(analysis->first_words))
COUNT(type_table, type_count(analysis->type_table))
COUNT(types, typing_count(analysis->typing))
COUNT(leaked_types, siblings_count(analysis->siblings))
COUNT(sites, sites_count(analysis->sites))
COUNT(unreachable, bitmap_weight(analysis_unreachable(analysis)))

/* Save the stages to a side file. */
#define SAVE(name, expression)                                                                    \
	static struct error *save_##name(const struct analysis *analysis, struct side_writer *to) \
	{                                                                                         \
		return expression;                                                                \
	}
SAVE(heap, heaps_save(analysis->heaps, to))
SAVE(roots, roots_save(analysis->roots, to))
SAVE(graph, graph_save(analysis->graph, to))
SAVE(leaks, leaks_save(analysis->leaks, to))

static struct error *save_reachability(const struct analysis *analysis, struct side_writer *writer)
{
	TRY(allocation_set_save(&analysis->anchored, writer, SIDE_ANCHORED));
	return liveness_save(&analysis->liveness, writer);
}

/* They depend on debug information that may come and go. */
static struct error *save_leaked_patterns(const struct analysis *analysis,
					  struct side_writer *writer)
{
	if (runtimes_have_objects(analysis->runtimes) || !analysis->leaked_patterns)
		return NULL;
	return patterns_save(analysis->leaked_patterns, writer);
}

static struct error *save_signatures(const struct analysis *analysis, struct side_writer *writer)
{
	return runtimes_have_objects(analysis->runtimes)
		       ? NULL
		       : first_words_save(analysis->first_words, writer);
}

static struct error *load_heap(struct analysis *analysis, struct side_file *file)
{
	const struct heap_context context = heap_context_of(analysis);

	TRY(heaps_load(&context, file, &analysis->heaps));
	analysis->index = heaps_index(analysis->heaps);
	return NULL;
}

static struct error *load_roots(struct analysis *analysis, struct side_file *file)
{
	const struct roots_input input = roots_input_of(analysis);

	return roots_load(&input, file, &analysis->roots);
}

static struct error *load_graph(struct analysis *analysis, struct side_file *file)
{
	return graph_load(file, allocation_used(analysis->index), &analysis->account,
			  &analysis->graph);
}

static struct error *load_reachability(struct analysis *analysis, struct side_file *file)
{
	struct bitmap anchored = { 0 };

	TRY(allocation_set_load(file, SIDE_ANCHORED, allocation_count(analysis->index), &anchored));
	TRY(liveness_load(file, allocation_used(analysis->index), &anchored, &analysis->liveness));
	analysis->anchored = anchored;
	return NULL;
}

static struct error *load_leaks(struct analysis *analysis, struct side_file *file)
{
	return leaks_load(file, &analysis->liveness.leaked, &analysis->leaks);
}

static struct error *load_leaked_patterns(struct analysis *analysis, struct side_file *file)
{
	struct scan_input input = analysis_scan_input(analysis);

	input.only = analysis_unreachable(analysis);
	return analysis->patterns ? NULL : patterns_load(file, &input, &analysis->leaked_patterns);
}

static struct error *load_signatures(struct analysis *analysis, struct side_file *file)
{
	const struct signature_reader signatures = analysis_signatures(analysis);

	return first_words_load(file, allocation_count(analysis->index), &signatures,
				&analysis->account, &analysis->first_words);
}

#define MADE(name, counted) build_##name, count_##counted
#define KEPT(name, counted) MADE(name, counted), save_##name, load_##name

const struct recipe analysis_recipes[STAGES] = {
	[STAGE_IMAGE] = { "image", "regions", { STAGE_IMAGE }, MADE(image, image) },
	[STAGE_PROGRAM] = { "program", "threads", { STAGE_IMAGE }, MADE(program, program) },
	[STAGE_HEAP] = { "heap", "allocations", { STAGE_PROGRAM }, KEPT(heap, heap) },
	[STAGE_FIBERS] = { "fibers", "fibers", { STAGE_HEAP }, MADE(fibers, fibers) },
	[STAGE_ROOTS] = { "roots", "ranges", { STAGE_FIBERS }, KEPT(roots, roots) },
	[STAGE_GRAPH] = { "graph", "references", { STAGE_FIBERS }, KEPT(graph, graph) },
	[STAGE_REACHABILITY] = { "reachability",
				 "leaked",
				 { STAGE_ROOTS, STAGE_GRAPH },
				 KEPT(reachability, reachability) },
	[STAGE_LEAKS] = { "leaks",
			  "leak roots",
			  { STAGE_REACHABILITY, STAGE_GRAPH },
			  KEPT(leaks, leaks) },
	[STAGE_COLLECTOR] = { "collector",
			      "at risk",
			      { STAGE_REACHABILITY, STAGE_GRAPH },
			      MADE(collector, collector) },
	[STAGE_INCOMING] = { "incoming", "references", { STAGE_GRAPH }, MADE(incoming, incoming) },
	[STAGE_DOMINATORS] = { "dominators",
			       "allocations",
			       { STAGE_LEAKS, STAGE_GRAPH, STAGE_OBJECTS },
			       MADE(dominators, dominators) },
	[STAGE_RETAINED] = { "retained",
			     "allocations",
			     { STAGE_DOMINATORS },
			     build_retained,
			     count_dominators },
	[STAGE_SHARERS] = { "sharers",
			    "allocations",
			    { STAGE_DOMINATORS },
			    MADE(sharers, sharers) },
	[STAGE_DISGUISED] = { "disguised",
			      "allocations",
			      { STAGE_REACHABILITY, STAGE_GRAPH },
			      MADE(disguised, disguised) },
	[STAGE_DEBUG] = { "debug", "modules", { STAGE_PROGRAM }, MADE(debug, modules) },
	[STAGE_OBJECTS] = { "objects",
			    "types",
			    { STAGE_FIBERS, STAGE_DEBUG },
			    MADE(objects, objects) },
	[STAGE_OBJECT_PATHS] = { "object paths",
				 "objects",
				 { STAGE_REACHABILITY, STAGE_OBJECTS },
				 MADE(object_paths, object_paths) },
	[STAGE_CLASSES] = { "classes",
			    "modules",
			    { STAGE_OBJECTS, STAGE_DEBUG },
			    MADE(classes, modules) },
	[STAGE_SIGNATURES] = { "signatures",
			       "signatures",
			       { STAGE_CLASSES },
			       KEPT(signatures, signatures) },
	[STAGE_PATTERNS] = { "patterns",
			     "allocations",
			     { STAGE_ROOTS, STAGE_OBJECTS },
			     MADE(patterns, heap) },
	[STAGE_OWNERS] = { "owners",
			   "allocations",
			   { STAGE_ROOTS, STAGE_OBJECTS },
			   MADE(owners, heap) },
	[STAGE_TYPE_TABLE] = { "type table",
			       "types",
			       { STAGE_DEBUG },
			       MADE(type_table, type_table) },
	[STAGE_TYPES] = { "types",
			  "typed",
			  { STAGE_TYPE_TABLE, STAGE_CLASSES },
			  MADE(types, types) },
	[STAGE_LEAKED_PATTERNS] = { "patterns of leaked",
				    "allocations",
				    { STAGE_REACHABILITY, STAGE_OBJECTS },
				    KEPT(leaked_patterns, unreachable) },
	[STAGE_LEAKED_TYPES] = { "types of leaked",
				 "typed",
				 { STAGE_TYPE_TABLE, STAGE_CLASSES },
				 MADE(leaked_types, leaked_types) },
	[STAGE_LOST_COUNTS] = { "lost counts",
				"allocations",
				{ STAGE_OWNERS, STAGE_TYPES },
				MADE(lost_counts, lost_counts) },
	[STAGE_SITES] = { "allocating calls",
			  "calls",
			  { STAGE_TYPE_TABLE, STAGE_CLASSES },
			  MADE(sites, sites) },
};
