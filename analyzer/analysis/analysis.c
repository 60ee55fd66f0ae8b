#include "analyzer/analysis/parts.h"

#include "analyzer/base/text.h"

#include <assert.h>
#include <stdio.h>
#include <sys/resource.h>

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

void analysis_limit_memory(struct analysis *analysis, size_t bytes)
{
	analysis->account.limit = bytes;
}

struct error *analysis_explain_shortage(struct analysis *analysis, const char *who,
					struct error *error)
{
	static const char WHAT_FOLLOWS[] = "commands that need less still work";
	struct memory_account *account = &analysis->account;
	size_t refused = atomic_exchange(&account->refused, 0);
	char asked[NUMBER_SIZE], used[NUMBER_SIZE], limit[NUMBER_SIZE];

	if (error != &error_no_memory)
		return error;
	if (!refused)
		return error_create(ERROR_NO_MEMORY, "out of memory in %s; %s", who, WHAT_FOLLOWS);
	format_grouped(refused, asked);
	format_grouped(atomic_load(&account->beside), used);
	format_grouped(account->limit, limit);
	return error_create(
		ERROR_NO_MEMORY,
		"out of memory in %s: %s bytes more were needed beside the %s in use%s%s%s; %s",
		who, asked, used, account->limit ? "; the limit is " : "",
		account->limit ? limit : "", account->limit ? " (--max-memory)" : "", WHAT_FOLLOWS);
}

void analysis_save_memory(struct analysis *analysis)
{
	analysis->saves_memory = true;
}

void analysis_set_rerun(struct analysis *analysis, const struct rerun *rerun)
{
	analysis->rerun = rerun;
}

const struct rerun *analysis_rerun(const struct analysis *analysis)
{
	return analysis->rerun;
}

void analysis_spend_dominators(struct analysis *analysis)
{
	if (!analysis->saves_memory)
		return;
	cleanup_dominators_destroy(&analysis->dominators);
	analysis->dominators = NULL;
	analysis->costs[STAGE_DOMINATORS].built = analysis->costs[STAGE_RETAINED].built = false;
}

static struct error *explain_stage(struct analysis *analysis, enum stage stage, struct error *error)
{
	char who[80];

	snprintf(who, sizeof(who), "the stage '%s'", stage_name(stage));
	return analysis_explain_shortage(analysis, who, error);
}

/* Note the findings that a stage added. */
static void note_findings(const struct findings *before, const struct findings *after,
			  struct stage_findings *ret)
{
	ret->first = before->count;
	ret->count = after->count - before->count;
	for (size_t i = 0; i < FINDING_WEIGHTS; i++)
		ret->weighed[i] = after->weighed[i] - before->weighed[i];
}

/* Build one stage, those below it being there, and note what it took. */
static struct error *build(struct analysis *analysis, enum stage stage)
{
	struct stage_cost *cost = &analysis->costs[stage];
	double wall = clock_now(), processor = processor_seconds();
	size_t before = atomic_load(&analysis->account.used), after;
	const struct findings known = analysis->findings;
	bool is_loaded;
	struct error *error = analysis_load_stage(analysis, stage, &is_loaded);

	if (!error && !is_loaded)
		error = analysis_recipes[stage].build(analysis);
	if (error)
		return explain_stage(analysis, stage, error);
	note_findings(&known, &analysis->findings, &analysis->found[stage]);
	cost->is_loaded = is_loaded;
	cost->count = analysis_recipes[stage].count(analysis);
	after = atomic_load(&analysis->account.used);
	cost->built = true;
	cost->wall += clock_now() - wall;
	cost->processor += processor_seconds() - processor;
	cost->memory = after > before ? after - before : 0;
	cost->peak = atomic_load(&analysis->account.peak);
	cost->unit = analysis_recipes[stage].unit;
	analysis_tell_notes(analysis, stage);
	return NULL;
}

struct error *analysis_need(struct analysis *analysis, enum stage stage)
{
	if (analysis->costs[stage].built)
		return NULL;
	for (size_t i = 0; i < COUNT_OF(analysis_recipes[stage].needs); i++) {
		enum stage below = analysis_recipes[stage].needs[i];

		if (below != stage)
			TRY(analysis_need(analysis, below));
	}
	TRY(build(analysis, stage));
	/* If the side file has them, no first words are read from the core. */
	if (stage == STAGE_CLASSES && analysis_keeps_stage(analysis, STAGE_SIGNATURES))
		TRY(build(analysis, STAGE_SIGNATURES));
	return NULL;
}

static struct error *open_image(struct analysis *analysis, const char *path)
{
	const struct debug_options *given = analysis->options;
	struct image_options options = { .progress = analysis->progress };

	if (given) {
		options.sysroot = given->sysroot;
		options.temporary_folder = given->temporary_folder;
		options.memory = given->memory;
	}
	return image_open_with(path, &options, &analysis->findings, &analysis->image);
}

struct error *analysis_create(const char *path, const struct debug_options *options,
			      struct progress *progress, struct analysis **ret)
{
	_cleanup_(analysis_destroy) struct analysis *analysis = calloc(1, sizeof(*analysis));
	double wall = clock_now(), processor = processor_seconds();

	TRY_MEMORY(analysis);
	analysis->options = options;
	analysis->progress = progress;
	analysis->runtime_kinds = runtime_kinds;
	TRY(named_sets_create(&analysis->named_sets));
	TRY(open_image(analysis, path));
	TRY(analysis_need(analysis, STAGE_IMAGE));
	analysis->costs[STAGE_IMAGE].wall = clock_now() - wall;
	analysis->costs[STAGE_IMAGE].processor = processor_seconds() - processor;
	*ret = take(analysis);
	return NULL;
}

void analysis_set_runtimes(struct analysis *analysis, const struct runtime *const *kinds)
{
	analysis->runtime_kinds = kinds;
}

struct error *analysis_open_beside(struct analysis *analysis, const char *path,
				   struct analysis **ret)
{
	const struct memory_account *account = &analysis->account;
	size_t used = atomic_load(&account->used);

	TRY(analysis_create(path, analysis->options, analysis->progress, ret));
	if (account->limit)
		analysis_limit_memory(*ret, used < account->limit ? account->limit - used : 1);
	return NULL;
}

void *analysis_kept(const struct analysis *analysis)
{
	return analysis->kept;
}

void analysis_keep(struct analysis *analysis, void *data, void (*destroy)(void *data))
{
	if (analysis->kept)
		analysis->destroy_kept(analysis->kept);
	analysis->kept = data;
	analysis->destroy_kept = destroy;
}

void analysis_destroy(struct analysis *analysis)
{
	/* Destroy what exists, each part before the parts that it borrows. */
	cleanup_object_paths_destroy(&analysis->object_paths);
	analysis_keep(analysis, NULL, NULL);
	cleanup_siblings_destroy(&analysis->siblings);
	cleanup_sites_destroy(&analysis->sites);
	cleanup_typing_destroy(&analysis->typing);
	cleanup_typing_destroy(&analysis->leak_typing);
	cleanup_type_table_destroy(&analysis->type_table);
	cleanup_patterns_destroy(&analysis->leaked_patterns);
	cleanup_kept_words_destroy(&analysis->kept_words);
	cleanup_patterns_destroy(&analysis->patterns);
	cleanup_patterns_destroy(&analysis->few_patterns);
	cleanup_identities_destroy(&analysis->identities);
	cleanup_signature_judge_destroy(&analysis->signature_judge);
	cleanup_classes_destroy(&analysis->classes);
	cleanup_first_words_destroy(&analysis->first_words);
	cleanup_runtimes_destroy(&analysis->runtimes);
	cleanup_debug_destroy(&analysis->debug);
	cleanup_dominators_destroy(&analysis->dominators);
	cleanup_sharers_destroy(&analysis->sharers);
	cleanup_variables_destroy(&analysis->variables);
	disguises_deinit(&analysis->disguised);
	cleanup_graph_destroy(&analysis->incoming);
	bitmap_deinit(&analysis->not_disguised);
	cleanup_leaks_destroy(&analysis->few_leaks);
	cleanup_leaks_destroy(&analysis->leaks);
	for (size_t i = 0; i < ROOT_KINDS; i++)
		bitmap_deinit(&analysis->anchored_by[i]);
	bitmap_deinit(&analysis->at_risk);
	counts_deinit(&analysis->counts);
	counts_deinit(&analysis->lost_counts);
	liveness_deinit(&analysis->liveness);
	bitmap_deinit(&analysis->anchored);
	cleanup_graph_destroy(&analysis->incoming_lost);
	cleanup_graph_destroy(&analysis->graph);
	cleanup_roots_destroy(&analysis->roots);
	cleanup_heaps_destroy(&analysis->heaps);
	cleanup_program_destroy(&analysis->program);
	cleanup_image_close(&analysis->image);
	cleanup_named_sets_destroy(&analysis->named_sets);
	findings_deinit(&analysis->findings);
	cleanup_side_file_close(&analysis->side_file);
	free(analysis);
}

const char *stage_name(enum stage stage)
{
	return analysis_recipes[stage].name;
}

struct stage_cost analysis_cost(const struct analysis *analysis, enum stage stage)
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

void analysis_doubt(struct analysis *analysis, const char *text)
{
	findings_add(&analysis->findings, FINDING_INCOMPLETE, "%s", text);
}

/* analysis_NAME(): what the stage, which is there, has made; STAGE_IMAGE: NULL, or empty before. */
#define PART(type, name, stage, expression)                   \
	type analysis_##name(const struct analysis *analysis) \
	{                                                     \
		assert(analysis->costs[stage].built);         \
		return expression;                            \
	}
PART(const struct image *, image, STAGE_IMAGE, analysis->image)
PART(const struct program *, program, STAGE_PROGRAM, analysis->program)
PART(const struct heaps *, heaps, STAGE_HEAP, analysis->heaps)
PART(const struct allocation_index *, index, STAGE_HEAP, analysis->index)
PART(const struct fibers *, fibers, STAGE_FIBERS, runtimes_fibers(analysis->runtimes))
PART(const struct roots *, roots, STAGE_ROOTS, analysis->roots)
PART(const struct graph *, graph, STAGE_GRAPH, analysis->graph)
PART(const struct graph *, incoming, STAGE_INCOMING, analysis->incoming)
PART(const struct leaks *, leaks, STAGE_LEAKS, analysis->leaks)
PART(const struct dominators *, dominators, STAGE_DOMINATORS, analysis->dominators)
PART(const struct variables *, variables, STAGE_IMAGE, analysis->variables)
PART(const struct sharers *, sharers, STAGE_SHARERS, analysis->sharers)
PART(const struct counts *, lost_counts, STAGE_LOST_COUNTS, &analysis->lost_counts)
PART(const struct disguises *, disguised, STAGE_IMAGE, &analysis->disguised)
PART(struct debug *, debug, STAGE_DEBUG, analysis->debug)
PART(struct classes *, classes, STAGE_CLASSES, analysis->classes)
PART(const struct runtimes *, runtimes, STAGE_FIBERS, analysis->runtimes)
PART(const struct type_table *, type_table, STAGE_TYPE_TABLE, analysis->type_table)
PART(const struct typing *, typing, STAGE_IMAGE,
     analysis->typing ? analysis->typing : analysis->leak_typing)
PART(struct typing *, typing_to_compare, STAGE_IMAGE,
     analysis->typing ? analysis->typing : analysis->leak_typing)
PART(const struct object_paths *, object_paths, STAGE_OBJECT_PATHS, analysis->object_paths)
PART(const struct siblings *, siblings, STAGE_IMAGE, analysis->siblings)
PART(struct sites *, sites, STAGE_SITES, analysis->sites)
PART(struct patterns *, patterns, STAGE_IMAGE, analysis->patterns)
PART(struct patterns *, leaked_patterns, STAGE_IMAGE,
     analysis->patterns ? analysis->patterns : analysis->leaked_patterns)
PART(const struct bitmap *, anchored, STAGE_IMAGE, &analysis->anchored)
PART(const struct bitmap *, leaked, STAGE_IMAGE, &analysis->liveness.leaked)

const struct bitmap *analysis_garbage(const struct analysis *analysis)
{
	const struct bitmap *garbage = &analysis->liveness.garbage;

	return garbage->words ? garbage : NULL;
}

const struct bitmap *analysis_held(const struct analysis *analysis)
{
	const struct bitmap *held = &analysis->liveness.held;

	return held->words ? held : NULL;
}

const struct bitmap *analysis_unreachable(const struct analysis *analysis)
{
	const struct liveness *liveness = &analysis->liveness;

	return liveness->all.words ? &liveness->all : &liveness->leaked;
}

const struct bitmap *analysis_at_risk(const struct analysis *analysis)
{
	return analysis->at_risk.words ? &analysis->at_risk : NULL;
}

struct error *analysis_anchored_by(struct analysis *analysis, enum root_kind kind,
				   const struct bitmap **ret)
{
	struct bitmap *anchored = &analysis->anchored_by[kind];

	if (!anchored->words)
		TRY(analysis_mark(analysis, kind, kind, anchored));
	*ret = anchored;
	return NULL;
}

struct signature_reader analysis_signatures(const struct analysis *analysis)
{
	return (struct signature_reader){
		.index = analysis->index,
		.kept = analysis->kept_words,
		.managed = allocation_having(analysis->index, TRAIT_MANAGED),
		.runtimes = runtimes_have_objects(analysis->runtimes) ? analysis->runtimes : NULL,
		.classes = analysis->classes,
		.judge = analysis->signature_judge,
		.view = { analysis->image },
	};
}

/* An allocation's extent, for who asks of one only. */
static struct memory_range range_of(const struct analysis *analysis, allocation_id id)
{
	size_t hint = 0;

	return allocation_range_near(analysis->index, id, &hint);
}

uint64_t analysis_signature(const struct analysis *analysis, allocation_id id)
{
	struct signature_reader reader;

	if (analysis->first_words)
		return first_words_at(analysis->first_words, id);
	reader = analysis_signatures(analysis);
	return signature_read(&reader, id, range_of(analysis, id));
}

void analysis_fetch(const struct analysis *analysis, allocation_id id)
{
	if (analysis->first_words)
		first_words_fetch(analysis->first_words, id);
	allocation_fetch_size(analysis->index, id);
}

bool analysis_tell_counts(const struct analysis *analysis, allocation_id id, char *ret, size_t size)
{
	struct signature_reader reader = analysis_signatures(analysis);

	return signature_tell_counts(&reader, range_of(analysis, id), ret, size);
}

pattern_number analysis_pattern_shown(const struct analysis *analysis,
				      const struct patterns *patterns, allocation_id id)
{
	pattern_number number = patterns_of(patterns, id);
	uint64_t signature;

	if (number == NO_PATTERN || !pattern_holds_object(number))
		return number;
	signature = analysis_signature(analysis, id);
	return signature && classes_control_block(analysis->classes, signature) != 0 ? NO_PATTERN
										     : number;
}

/* The identity by a word within; first it is asked what is quick, and true of most. */
static bool find_own_identity(const struct analysis *analysis, allocation_id id,
			      struct identity *ret)
{
	const struct first_words *words = analysis->first_words;
	struct signature_reader reader;
	struct memory_range range;

	if ((words &&
	     (!first_words_may_have_identity(words, id) || first_words_at(words, id) != 0)) ||
	    (analysis->kept_words && !kept_words_may_have_identity(analysis->kept_words, id)))
		return false;
	reader = analysis_signatures(analysis);
	range = range_of(analysis, id);
	if (!words && analysis_signature(analysis, id) != 0)
		return false;
	if (signature_object(&reader, id, range.start) != range.start)
		return identity_find_maker(analysis->identities, range.start, ret);
	return identity_find(analysis->identities, &reader.view, range, ret) ||
	       identity_find_unloaded(analysis->identities, &reader.view, range, ret);
}

bool analysis_identity(const struct analysis *analysis, allocation_id id, struct identity *ret)
{
	struct view view = { analysis->image };

	if (!bitmap_get(allocation_used(analysis->index), id))
		return false;
	if (!find_own_identity(analysis, id, ret) &&
	    (!identities_have_pools(analysis->identities) || analysis_signature(analysis, id) ||
	     !identity_find_pool(analysis->identities, &view, range_of(analysis, id), ret)))
		return false;
	/* A part of a runtime's object may start with what the block was before. */
	return runtimes_whole(analysis->runtimes, id) == NO_ALLOCATION;
}

const struct identities *analysis_identities(const struct analysis *analysis)
{
	return analysis->identities;
}
