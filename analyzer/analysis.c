#include "analyzer/analysis.h"

#include <sys/resource.h>
#include <time.h>

struct analysis {
	struct findings findings;
	struct memory_account account;
	struct progress *progress;
	struct image *image;
	struct program *program;
	struct heaps *heaps;
	const struct allocation_index *index;
	struct fibers *fibers;
	struct roots *roots;
	struct graph *graph;
	struct bitmap anchored;
	struct fates fates;    /* of what is not */
	struct bitmap at_risk; /* no words: nothing is collectable */
	bool risk_doubted;
	struct bitmap anchored_by[ROOT_KINDS];
	struct leaks *leaks;
	struct graph *incoming;
	struct dominators *dominators;
	const struct debug_options *options;
	struct debug *debug;
	struct crystal *crystal; /* NULL: it is of another language */
	struct classes *classes;
	struct first_words *first_words;
	struct identities *identities;
	struct patterns *patterns, *leaked_patterns;
	struct named_sets *named_sets;
	struct stage_cost costs[STAGES];
};

/* What a stage is made of, and how. */
struct recipe {
	const char *name;
	const char *unit;
	enum stage needs[2]; /* its own number: none */
	struct error *(*build)(struct analysis *analysis, uint64_t *ret_count);
};

static struct error *build_image(struct analysis *analysis, uint64_t *ret_count)
{
	/* Opened along with the analysis. */
	*ret_count = image_region_count(analysis->image);
	return NULL;
}

static struct error *build_program(struct analysis *analysis,
				   uint64_t *ret_count)
{
	struct error *error = program_create(
		analysis->image, &analysis->findings, &analysis->program);

	if (!error)
		*ret_count = program_thread_count(analysis->program);
	return error;
}

static struct error *build_heap(struct analysis *analysis, uint64_t *ret_count)
{
	struct heap_context context = {
		.image = analysis->image,
		.program = analysis->program,
		.findings = &analysis->findings,
		.account = &analysis->account,
		.progress = analysis->progress,
	};
	struct error *error = heaps_create(&context, &analysis->heaps);

	if (error)
		return error;
	analysis->index = heaps_index(analysis->heaps);
	*ret_count = allocation_count(analysis->index);
	return NULL;
}

static struct error *build_fibers(struct analysis *analysis,
				  uint64_t *ret_count)
{
	struct error *error = fibers_create(analysis->image, analysis->program,
					    analysis->index, &analysis->account,
					    &analysis->fibers);

	if (!error)
		*ret_count = fiber_count(analysis->fibers);
	return error;
}

static struct error *build_roots(struct analysis *analysis, uint64_t *ret_count)
{
	struct error *error = roots_create(
		analysis->image, analysis->program, analysis->index,
		analysis->fibers, &analysis->account, analysis->progress,
		&analysis->roots);

	if (!error)
		*ret_count = root_range_count(analysis->roots);
	return error;
}

static struct error *build_graph(struct analysis *analysis, uint64_t *ret_count)
{
	struct error *error = graph_create(
		analysis->image, analysis->index, &analysis->account,
		analysis->progress, &analysis->graph);

	if (!error)
		*ret_count = graph_edge_count(analysis->graph);
	return error;
}

/* Mark what is used and reachable from the targets of those kinds of roots. */
static struct error *mark(struct analysis *analysis, enum root_kind first,
			  enum root_kind last, struct bitmap *ret)
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

static struct error *build_reachability(struct analysis *analysis,
					uint64_t *ret_count)
{
	struct bitmap anchored = { 0 };
	struct error *error =
		mark(analysis, ROOT_STATIC, ROOT_REGISTER, &anchored);

	if (error)
		return error;
	error = fates_init(&analysis->fates, analysis->graph, analysis->index,
			   &anchored, &analysis->account, analysis->progress);
	if (error) {
		bitmap_deinit(&anchored);
		return error;
	}
	analysis->anchored = anchored;
	*ret_count = bitmap_weight(&analysis->fates.leaked);
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
		findings_add(&analysis->findings, FINDING_NOTE,
			     "the program marks memory for its collector by "
			     "functions of its own: what is said to be at risk "
			     "may be safe by that");
		break;
	case MORE_ROOTS_UNKNOWN:
		findings_add(&analysis->findings, FINDING_NOTE,
			     "it cannot be told whether the program marks "
			     "memory for its collector by functions of its "
			     "own: if so, what is said to be at risk may be "
			     "safe by that");
		break;
	default:
		break;
	}
}

static struct error *build_collector(struct analysis *analysis,
				     uint64_t *ret_count)
{
	const struct collector_input input = {
		.program = analysis->program,
		.index = analysis->index,
		.roots = analysis->roots,
		.graph = analysis->graph,
		.account = &analysis->account,
		.progress = analysis->progress,
	};
	const struct bitmap *collectable =
		allocation_having(analysis->index, TRAIT_COLLECTABLE);
	_cleanup_(bitmap_deinit) struct bitmap kept = { 0 };
	struct bitmap at_risk = { 0 };
	struct error *error;

	*ret_count = 0;
	if (!collectable)
		return NULL;
	error = collector_mark(&input, &kept);
	if (!error)
		error = bitmap_init(&at_risk, kept.count, &analysis->account);
	if (error)
		return error;
	bitmap_copy(&at_risk, &analysis->anchored);
	bitmap_and(&at_risk, collectable);
	bitmap_minus(&at_risk, &kept);
	analysis->at_risk = at_risk;
	*ret_count = bitmap_weight(&at_risk);
	return NULL;
}

static struct error *build_leaks(struct analysis *analysis, uint64_t *ret_count)
{
	struct error *error = leaks_create(
		analysis->graph, analysis->index, &analysis->fates.leaked,
		&analysis->account, analysis->progress, &analysis->leaks);

	if (!error)
		*ret_count = leak_root_count(analysis->leaks);
	return error;
}

static struct error *build_incoming(struct analysis *analysis,
				    uint64_t *ret_count)
{
	struct error *error =
		graph_transpose(analysis->graph, &analysis->account,
				analysis->progress, &analysis->incoming);

	if (!error)
		*ret_count = graph_edge_count(analysis->incoming);
	return error;
}

static struct error *build_retained(struct analysis *analysis,
				    uint64_t *ret_count)
{
	_cleanup_(bitmap_deinit) struct bitmap entries = { 0 };
	const struct entries_input where = {
		analysis->graph,    analysis->index,  analysis->roots,
		analysis->leaks,    &analysis->fates, &analysis->account,
		analysis->progress,
	};
	const struct dominators_input input = {
		.graph = analysis->graph,
		.incoming = analysis->incoming,
		.index = analysis->index,
		.entries = &entries,
		.account = &analysis->account,
		.progress = analysis->progress,
	};
	struct error *error = entries_collect(&where, &entries);

	if (!error)
		error = dominators_create(&input, &analysis->dominators);
	if (!error)
		*ret_count = dominators_count(analysis->dominators);
	return error;
}

static struct error *build_debug(struct analysis *analysis, uint64_t *ret_count)
{
	static const struct debug_options none = { NULL };
	const struct debug_options *options =
		analysis->options ? analysis->options : &none;

	*ret_count = program_module_count(analysis->program);
	return debug_create(analysis->image, analysis->program, options,
			    &analysis->findings, &analysis->debug);
}

static struct error *build_objects(struct analysis *analysis,
				   uint64_t *ret_count)
{
	struct error *error = crystal_create(
		analysis->image, analysis->program, analysis->debug,
		analysis->index, &analysis->account, &analysis->crystal);

	if (!error && analysis->crystal)
		crystal_types_set_fiber(crystal_types_of(analysis->crystal),
					fibers_type(analysis->fibers));
	*ret_count = analysis->crystal ? crystal_type_count(crystal_types_of(
						 analysis->crystal))
				       : 0;
	return error;
}

static struct error *build_classes(struct analysis *analysis,
				   uint64_t *ret_count)
{
	struct error *error = classes_create(
		analysis->image, analysis->program, analysis->debug,
		&analysis->account, &analysis->classes);

	if (error)
		return error;
	if (analysis->crystal)
		classes_set_crystal(analysis->classes,
				    crystal_types_of(analysis->crystal));
	error = identities_create(analysis->image, analysis->program,
				  analysis->debug, analysis->classes,
				  &analysis->account, &analysis->identities);
	if (error) {
		classes_destroy(take(analysis->classes));
		return error;
	}
	*ret_count = program_module_count(analysis->program);
	return NULL;
}

static uint64_t read_signature(const void *data, allocation_id id)
{
	return analysis_signature(data, id);
}

static bool has_identity(const void *data, allocation_id id)
{
	struct identity identity;

	return analysis_identity(data, id, &identity);
}

static struct error *build_signatures(struct analysis *analysis,
				      uint64_t *ret_count)
{
	const struct first_words_input input = {
		.image = analysis->image,
		.index = analysis->index,
		.read = read_signature,
		.has_identity = has_identity,
		.data = analysis,
		.account = &analysis->account,
		.progress = analysis->progress,
	};
	struct error *error =
		first_words_create(&input, &analysis->first_words);

	if (!error)
		*ret_count = first_words_count(analysis->first_words);
	return error;
}

static struct error *find_patterns(struct analysis *analysis,
				   const struct bitmap *only,
				   struct patterns **ret)
{
	return patterns_create(analysis->image, analysis->program,
			       analysis->index, analysis->roots, only,
			       analysis->crystal, &analysis->account,
			       analysis->progress, ret);
}

static struct error *build_patterns(struct analysis *analysis,
				    uint64_t *ret_count)
{
	*ret_count = allocation_count(analysis->index);
	return find_patterns(analysis, NULL, &analysis->patterns);
}

/* Only unreachable allocations refer to unreachable ones. */
static struct error *build_leaked_patterns(struct analysis *analysis,
					   uint64_t *ret_count)
{
	const struct bitmap *unreachable = analysis_unreachable(analysis);

	*ret_count = bitmap_weight(unreachable);
	return find_patterns(analysis, unreachable, &analysis->leaked_patterns);
}

static const struct recipe recipes[STAGES] = {
	[STAGE_IMAGE] = { "image",
			  "regions",
			  { STAGE_IMAGE, STAGE_IMAGE },
			  build_image },
	[STAGE_PROGRAM] = { "program",
			    "threads",
			    { STAGE_IMAGE, STAGE_PROGRAM },
			    build_program },
	[STAGE_HEAP] = { "heap",
			 "allocations",
			 { STAGE_PROGRAM, STAGE_HEAP },
			 build_heap },
	[STAGE_FIBERS] = { "fibers",
			   "fibers",
			   { STAGE_HEAP, STAGE_FIBERS },
			   build_fibers },
	[STAGE_ROOTS] = { "roots",
			  "ranges",
			  { STAGE_FIBERS, STAGE_ROOTS },
			  build_roots },
	[STAGE_GRAPH] = { "graph",
			  "references",
			  { STAGE_HEAP, STAGE_GRAPH },
			  build_graph },
	[STAGE_REACHABILITY] = { "reachability",
				 "leaked",
				 { STAGE_ROOTS, STAGE_GRAPH },
				 build_reachability },
	[STAGE_LEAKS] = { "leaks",
			  "leak roots",
			  { STAGE_REACHABILITY, STAGE_LEAKS },
			  build_leaks },
	[STAGE_COLLECTOR] = { "collector",
			      "at risk",
			      { STAGE_REACHABILITY, STAGE_COLLECTOR },
			      build_collector },
	[STAGE_INCOMING] = { "incoming",
			     "references",
			     { STAGE_GRAPH, STAGE_INCOMING },
			     build_incoming },
	[STAGE_RETAINED] = { "retained",
			     "allocations",
			     { STAGE_LEAKS, STAGE_INCOMING },
			     build_retained },
	[STAGE_DEBUG] = { "debug",
			  "modules",
			  { STAGE_PROGRAM, STAGE_DEBUG },
			  build_debug },
	[STAGE_OBJECTS] = { "objects",
			    "types",
			    { STAGE_FIBERS, STAGE_DEBUG },
			    build_objects },
	[STAGE_CLASSES] = { "classes",
			    "modules",
			    { STAGE_OBJECTS, STAGE_DEBUG },
			    build_classes },
	[STAGE_SIGNATURES] = { "signatures",
			       "signatures",
			       { STAGE_CLASSES, STAGE_SIGNATURES },
			       build_signatures },
	[STAGE_PATTERNS] = { "patterns",
			     "allocations",
			     { STAGE_ROOTS, STAGE_OBJECTS },
			     build_patterns },
	[STAGE_LEAKED_PATTERNS] = { "patterns of leaked",
				    "allocations",
				    { STAGE_REACHABILITY, STAGE_OBJECTS },
				    build_leaked_patterns },
};

static double seconds(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static double processor_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

static double wall_seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Build one stage, those below it being there, and note what it took. */
static struct error *build(struct analysis *analysis, enum stage stage)
{
	struct stage_cost *cost = &analysis->costs[stage];
	double wall = wall_seconds(), processor = processor_seconds();
	size_t before = atomic_load(&analysis->account.used), after;
	struct error *error = recipes[stage].build(analysis, &cost->count);

	if (error)
		return error;
	after = atomic_load(&analysis->account.used);
	cost->built = true;
	cost->wall += wall_seconds() - wall;
	cost->processor += processor_seconds() - processor;
	cost->memory = after > before ? after - before : 0;
	cost->peak = atomic_load(&analysis->account.peak);
	cost->unit = recipes[stage].unit;
	return NULL;
}

struct error *analysis_need(struct analysis *analysis, enum stage stage)
{
	if (analysis->costs[stage].built)
		return NULL;
	for (size_t i = 0; i < 2; i++) {
		enum stage below = recipes[stage].needs[i];
		struct error *error =
			below == stage ? NULL : analysis_need(analysis, below);

		if (error)
			return error;
	}
	return build(analysis, stage);
}

struct error *analysis_create(const char *path,
			      const struct debug_options *options,
			      struct progress *progress, struct analysis **ret)
{
	_cleanup_(analysis_destroy) struct analysis *analysis =
		calloc(1, sizeof(*analysis));
	double wall = wall_seconds(), processor = processor_seconds();
	struct error *error;

	if (!analysis)
		return &error_no_memory;
	analysis->options = options;
	analysis->progress = progress;
	error = named_sets_create(&analysis->named_sets);
	if (!error)
		error = image_open_in(path, options ? options->sysroot : NULL,
				      &analysis->findings, &analysis->image);
	if (!error)
		error = analysis_need(analysis, STAGE_IMAGE);
	if (error)
		return error;
	analysis->costs[STAGE_IMAGE].wall = wall_seconds() - wall;
	analysis->costs[STAGE_IMAGE].processor =
		processor_seconds() - processor;
	*ret = take(analysis);
	return NULL;
}

void analysis_destroy(struct analysis *analysis)
{
	if (analysis->leaked_patterns)
		patterns_destroy(analysis->leaked_patterns);
	if (analysis->patterns)
		patterns_destroy(analysis->patterns);
	if (analysis->identities)
		identities_destroy(analysis->identities);
	if (analysis->classes)
		classes_destroy(analysis->classes);
	if (analysis->crystal)
		crystal_destroy(analysis->crystal);
	if (analysis->first_words)
		first_words_destroy(analysis->first_words);
	if (analysis->debug)
		debug_destroy(analysis->debug);
	if (analysis->dominators)
		dominators_destroy(analysis->dominators);
	if (analysis->incoming)
		graph_destroy(analysis->incoming);
	if (analysis->leaks)
		leaks_destroy(analysis->leaks);
	for (size_t i = 0; i < ROOT_KINDS; i++)
		bitmap_deinit(&analysis->anchored_by[i]);
	bitmap_deinit(&analysis->at_risk);
	fates_deinit(&analysis->fates);
	bitmap_deinit(&analysis->anchored);
	if (analysis->graph)
		graph_destroy(analysis->graph);
	if (analysis->roots)
		roots_destroy(analysis->roots);
	if (analysis->fibers)
		fibers_destroy(analysis->fibers);
	if (analysis->heaps)
		heaps_destroy(analysis->heaps);
	if (analysis->program)
		program_destroy(analysis->program);
	if (analysis->image)
		image_close(analysis->image);
	if (analysis->named_sets)
		named_sets_destroy(analysis->named_sets);
	findings_deinit(&analysis->findings);
	free(analysis);
}

const char *stage_name(enum stage stage)
{
	return recipes[stage].name;
}

struct stage_cost analysis_cost(const struct analysis *analysis,
				enum stage stage)
{
	return analysis->costs[stage];
}

struct named_sets *analysis_named_sets(const struct analysis *analysis)
{
	return analysis->named_sets;
}

struct memory_account *analysis_account(struct analysis *analysis)
{
	return &analysis->account;
}

struct progress *analysis_progress(struct analysis *analysis)
{
	return analysis->progress;
}

const struct findings *analysis_findings(const struct analysis *analysis)
{
	return &analysis->findings;
}

void analysis_note(struct analysis *analysis, const char *text)
{
	findings_add(&analysis->findings, FINDING_NOTE, "%s", text);
}

const struct image *analysis_image(const struct analysis *analysis)
{
	return analysis->image;
}

const struct program *analysis_program(const struct analysis *analysis)
{
	return analysis->program;
}

const struct heaps *analysis_heaps(const struct analysis *analysis)
{
	return analysis->heaps;
}

const struct allocation_index *analysis_index(const struct analysis *analysis)
{
	return analysis->index;
}

const struct fibers *analysis_fibers(const struct analysis *analysis)
{
	return analysis->fibers;
}

const struct roots *analysis_roots(const struct analysis *analysis)
{
	return analysis->roots;
}

const struct graph *analysis_graph(const struct analysis *analysis)
{
	return analysis->graph;
}

const struct graph *analysis_incoming(const struct analysis *analysis)
{
	return analysis->incoming;
}

const struct leaks *analysis_leaks(const struct analysis *analysis)
{
	return analysis->leaks;
}

const struct dominators *analysis_dominators(const struct analysis *analysis)
{
	return analysis->dominators;
}

struct debug *analysis_debug(const struct analysis *analysis)
{
	return analysis->debug;
}

struct classes *analysis_classes(const struct analysis *analysis)
{
	return analysis->classes;
}

struct crystal *analysis_crystal(const struct analysis *analysis)
{
	return analysis->crystal;
}

struct patterns *analysis_patterns(const struct analysis *analysis)
{
	return analysis->patterns;
}

struct patterns *analysis_leaked_patterns(const struct analysis *analysis)
{
	return analysis->patterns ? analysis->patterns
				  : analysis->leaked_patterns;
}

const struct bitmap *analysis_anchored(const struct analysis *analysis)
{
	return &analysis->anchored;
}

const struct bitmap *analysis_leaked(const struct analysis *analysis)
{
	return &analysis->fates.leaked;
}

const struct bitmap *analysis_garbage(const struct analysis *analysis)
{
	const struct bitmap *garbage = &analysis->fates.garbage;

	return garbage->words ? garbage : NULL;
}

const struct bitmap *analysis_held(const struct analysis *analysis)
{
	const struct bitmap *held = &analysis->fates.held;

	return held->words ? held : NULL;
}

const struct bitmap *analysis_unreachable(const struct analysis *analysis)
{
	const struct fates *fates = &analysis->fates;

	return fates->all.words ? &fates->all : &fates->leaked;
}

const struct bitmap *analysis_at_risk(const struct analysis *analysis)
{
	return analysis->at_risk.words ? &analysis->at_risk : NULL;
}

struct error *analysis_anchored_by(struct analysis *analysis,
				   enum root_kind kind,
				   const struct bitmap **ret)
{
	struct bitmap *anchored = &analysis->anchored_by[kind];

	if (!anchored->words) {
		struct error *error = mark(analysis, kind, kind, anchored);

		if (error)
			return error;
	}
	*ret = anchored;
	return NULL;
}

/* A vtable of a program whose relocated data stayed writable. */
static bool is_writable_vtable(const struct analysis *analysis,
			       const struct region *region, uint64_t address)
{
	return region->mapping && analysis->classes &&
	       classes_is_vtable(analysis->classes, address);
}

/* Where the object in an allocation begins: a header may precede it. */
static uint64_t object_start(const struct analysis *analysis, allocation_id id)
{
	const struct bitmap *managed =
		allocation_having(analysis->index, TRAIT_MANAGED);
	uint64_t start = allocation_start(analysis->index, id);
	struct debug_header header;

	if (managed && bitmap_get(managed, id) &&
	    debug_header_read(analysis->image, start, &header))
		start += DEBUG_HEADER_SIZE;
	return start;
}

uint64_t analysis_signature(const struct analysis *analysis, allocation_id id)
{
	const struct region *region;
	uint64_t word;

	if (analysis->first_words)
		return first_words_at(analysis->first_words, id);
	if (analysis->crystal) {
		word = crystal_type_of(analysis->crystal, id);
		if (word)
			return word;
	}
	if (allocation_state(analysis->index, id) != BLOCK_USED ||
	    allocation_size(analysis->index, id) < sizeof(word) ||
	    !image_read_u64(analysis->image, object_start(analysis, id), &word))
		return 0;
	region = image_find(analysis->image, word);
	if (!region || !(region->rights & RIGHT_READ) ||
	    ((region->rights & RIGHT_WRITE) &&
	     !is_writable_vtable(analysis, region, word)))
		return 0;
	return word;
}

bool analysis_identity(const struct analysis *analysis, allocation_id id,
		       struct identity *ret)
{
	uint64_t start = allocation_start(analysis->index, id);

	if (analysis->first_words &&
	    !first_words_has_identity(analysis->first_words, id))
		return false;
	if (allocation_state(analysis->index, id) != BLOCK_USED ||
	    analysis_signature(analysis, id))
		return false;
	if (object_start(analysis, id) != start)
		return identity_find_maker(analysis->identities, start, ret);
	return identity_find(analysis->identities, start,
			     allocation_size(analysis->index, id), ret);
}

const struct identities *analysis_identities(const struct analysis *analysis)
{
	return analysis->identities;
}
