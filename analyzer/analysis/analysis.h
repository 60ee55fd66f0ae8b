/*
 * One dump and all that is known of it.
 *
 * What is known is built in stages, each on top of others, when first asked for: a command that
 * needs no graph does not pay for one.
 *
 *	image ── program ── heap ─┬─ graph ─┬─ reachability ─┬─ leaks
 *	            │             │         │                ├─ collector
 *	            │             │         │                ├─ retained
 *	            │             │         │                └─ disguised
 *	            │             │         ├─ incoming    ╲
 *	            │             ├─ roots ─┴─ patterns     patterns of leaked
 *	            │             └─ fibers       └─ owners
 *	            └─ debug ─┬─ classes
 *	                      └─ type table ─ types
 */
#pragma once

#include "analyzer/classify/classes.h"
#include "analyzer/classify/first_words.h"
#include "analyzer/classify/identity.h"
#include "analyzer/classify/patterns.h"
#include "analyzer/graph/collector.h"
#include "analyzer/graph/disguises.h"
#include "analyzer/graph/dominators.h"
#include "analyzer/graph/graph.h"
#include "analyzer/graph/leaks.h"
#include "analyzer/graph/liveness.h"
#include "analyzer/graph/roots.h"
#include "analyzer/graph/sharers.h"
#include "analyzer/graph/variables.h"
#include "analyzer/heap/heaps.h"
#include "analyzer/heap/named_sets.h"
#include "analyzer/image/image.h"
#include "analyzer/program/program.h"
#include "analyzer/runtimes/object_paths.h"
#include "analyzer/runtimes/runtimes.h"
#include "analyzer/types/siblings.h"
#include "analyzer/types/sites.h"
#include "analyzer/types/typing.h"

enum stage {
	STAGE_IMAGE,	       /* the dump as memory */
	STAGE_PROGRAM,	       /* modules and threads */
	STAGE_HEAP,	       /* every allocation */
	STAGE_FIBERS,	       /* runtimes, and the stacks of their fibers */
	STAGE_ROOTS,	       /* the references of roots */
	STAGE_GRAPH,	       /* who refers to whom */
	STAGE_REACHABILITY,    /* anchored and leaked */
	STAGE_LEAKS,	       /* leak roots */
	STAGE_COLLECTOR,       /* allocations that a garbage collector keeps */
	STAGE_INCOMING,	       /* who is referred to by whom */
	STAGE_DOMINATORS,      /* who alone holds what */
	STAGE_RETAINED,	       /* where each is among these, for dominators_retained() */
	STAGE_SHARERS,	       /* which roots share what none alone holds */
	STAGE_DISGUISED,       /* leaked, but likely held */
	STAGE_DEBUG,	       /* symbols and debug information, read lazily */
	STAGE_OBJECTS,	       /* objects of runtimes, and their classes */
	STAGE_OBJECT_PATHS,    /* how programs reach these */
	STAGE_CLASSES,	       /* names of signatures, read lazily */
	STAGE_SIGNATURES,      /* signatures of all, for going over many */
	STAGE_PATTERNS,	       /* kinds of allocations without a signature */
	STAGE_OWNERS,	       /* the same, and what they are parts of */
	STAGE_TYPE_TABLE,      /* types and variables of debug information */
	STAGE_TYPES,	       /* types of allocations by debug information */
	STAGE_LEAKED_PATTERNS, /* patterns of unreachable ones only, sooner */
	STAGE_LEAKED_TYPES,    /* types, or likely types, of leaked allocations */
	STAGE_LOST_COUNTS,     /* counts of references that are more than these */
	STAGE_SITES,	       /* which calls allocate values of which types */
	STAGES,
};

/* The cost of building a stage, for `heapcore -v`. */
struct stage_cost {
	bool built;
	bool is_loaded;		/* from the side file */
	double wall, processor; /* seconds */
	size_t memory;		/* bytes held by it when done */
	size_t peak;		/* bytes held by all stages at most by then */
	uint64_t count;		/* of what it is made of */
	const char *unit;	/* as "allocations" */
};

struct analysis;

/* Open the dump. Options, which may be NULL, and progress are borrowed and outlive the analysis. */
struct error *analysis_create(const char *path, const struct debug_options *options,
			      struct progress *progress, struct analysis **ret);

/*
 * Look for these runtimes, an array with NULL at the end, and not for all that there are. Before
 * STAGE_FIBERS; the array is borrowed.
 */
void analysis_set_runtimes(struct analysis *analysis, const struct runtime *const *kinds);

/*
 * Open another dump with the same options and progress, which may take as much memory as this one
 * leaves.
 */
struct error *analysis_open_beside(struct analysis *analysis, const char *path,
				   struct analysis **ret);
void analysis_destroy(struct analysis *analysis);
DEFINE_CLEANUP(analysis_destroy, struct analysis *)

/*
 * Build the stage and those below it, if they are not there. After an interrupt the stage can be
 * asked for again, and after a lack of memory, too: what it had is released, what was there before
 * stays.
 */
struct error *analysis_need(struct analysis *analysis, enum stage stage);

/*
 * No command follows that at hand: release what takes most as soon as it was used, which are the
 * references when the dominators are found, and these by analysis_spend_dominators(). They are
 * built anew if a stage needs them, but what was made of the references is taken to be enough.
 */
void analysis_save_memory(struct analysis *analysis);
void analysis_spend_dominators(struct analysis *analysis);

/*
 * A second run of the program with the recorder (analyzer/capture/recorder.h), which yields another
 * core.
 */
struct rerun {
	/*
	 * Run it once more, and note who allocates blocks of those usable sizes, "24,40"; all, if
	 * it is empty. *ret is the core's path, to be freed; NULL: that cannot be, as was said.
	 */
	struct error *(*run)(void *data, const char *sizes, char **ret);
	void *data;
	bool is_other; /* not the core that is at hand */
};

/* NULL: it cannot be run; borrowed. */
void analysis_set_rerun(struct analysis *analysis, const struct rerun *rerun);
const struct rerun *analysis_rerun(const struct analysis *analysis);

/*
 * Limit the bytes of all stages' arrays; 0: no limit. The dump itself, which is mapped, and debug
 * information do not count.
 */
void analysis_limit_memory(struct analysis *analysis, size_t bytes);

/*
 * Tell of a bare lack of memory who had it, how much was asked for and what follows; any other
 * error is handed back as it is. Consumes the error, which may be NULL.
 */
struct error *analysis_explain_shortage(struct analysis *analysis, const char *who,
					struct error *error);

/*
 * A side file keeps what takes the time: allocations, roots, references, what leaked, and the
 * findings about these. Stages that are built later are loaded from the one at path. It is an error
 * if it is not that of this dump as it is, or of this heapcore; of code ERROR_BAD_DUMP if it can be
 * made anew.
 */
struct error *analysis_use_side_file(struct analysis *analysis, const char *path);

/* Build all that a side file keeps, unless it is there, and write it to path. */
struct error *analysis_write_side_file(struct analysis *analysis, const char *path);

/*
 * Build all of it anew, without the side file at path, and compare: an error of code ERROR_BAD_DUMP
 * says that the file tells something else. Nothing must have been loaded from one.
 */
struct error *analysis_verify_side_file(struct analysis *analysis, const char *path);

const char *stage_name(enum stage stage);
struct stage_cost analysis_cost(const struct analysis *analysis, enum stage stage);

struct memory_account *analysis_account(struct analysis *analysis);
struct progress *analysis_progress(struct analysis *analysis);

/* Sets of allocations that the user gave names to. */
struct named_sets *analysis_named_sets(const struct analysis *analysis);

/*
 * State that one part above the analysis keeps for the next question. It is destroyed with the
 * analysis, and when the user sets an allocation's type.
 */
void *analysis_kept(const struct analysis *analysis);
void analysis_keep(struct analysis *analysis, void *data, void (*destroy)(void *data));

/* Findings of the stages built so far. */
const struct findings *analysis_findings(const struct analysis *analysis);

/* Add a note to them: what a command's own output has no room for. */
void analysis_note(struct analysis *analysis, const char *text);

/* Like analysis_note(), for a reason why answers are unreliable. */
void analysis_doubt(struct analysis *analysis, const char *text);

/* Each needs its stage built, and asserts it. */
const struct image *analysis_image(const struct analysis *analysis);
const struct program *analysis_program(const struct analysis *analysis);
const struct heaps *analysis_heaps(const struct analysis *analysis);
const struct allocation_index *analysis_index(const struct analysis *analysis);
const struct fibers *analysis_fibers(const struct analysis *analysis);
const struct roots *analysis_roots(const struct analysis *analysis);
const struct graph *analysis_graph(const struct analysis *analysis);
const struct graph *analysis_incoming(const struct analysis *analysis);

/*
 * The incoming references of all that leads to the allocation. Without STAGE_INCOMING, those of an
 * unreachable allocation are found among unreachable ones alone (STAGE_REACHABILITY).
 */
struct error *analysis_incoming_of(struct analysis *analysis, allocation_id id,
				   const struct graph **ret);
const struct leaks *analysis_leaks(const struct analysis *analysis);

/*
 * Have the leak roots that lead to a leaked allocation, by going back from it; all of them, in
 * STAGE_LEAKS, if it is one itself, or if many allocations lead to it. analysis_leaks_to() has them
 * as well if they are known otherwise, else NULL (STAGE_REACHABILITY).
 */
struct error *analysis_need_leaks_to(struct analysis *analysis, allocation_id id);
const struct leaks *analysis_leaks_to(const struct analysis *analysis, allocation_id id);
const struct dominators *analysis_dominators(const struct analysis *analysis);
/* The roots of these, which stay when they are spent; NULL: they were never found. */
const struct variables *analysis_variables(const struct analysis *analysis);
const struct sharers *analysis_sharers(const struct analysis *analysis);
/* Disguised pointers to leaked allocations, by target. */
const struct disguises *analysis_disguised(const struct analysis *analysis);

/*
 * Search for disguised pointers to these allocations; the first call searches for these alone.
 * Without STAGE_DISGUISED, there are none, and analysis_disguised() is empty.
 */
struct error *analysis_need_disguised_of(struct analysis *analysis, const allocation_id *ids,
					 size_t count);

/*
 * Set *ret_none if a sample of the leaked allocations has no disguised pointers: some in each part
 * of memory, and the leak roots that own most. Also false if a full search is as quick
 * (STAGE_LEAKS).
 */
struct error *analysis_sample_disguised(struct analysis *analysis, bool *ret_none);

/* These are not const, because they cache what they read. */
struct debug *analysis_debug(const struct analysis *analysis);
struct classes *analysis_classes(const struct analysis *analysis);
/* STAGE_FIBERS; their objects are known with STAGE_OBJECTS. */
const struct runtimes *analysis_runtimes(const struct analysis *analysis);
const struct object_paths *analysis_object_paths(const struct analysis *analysis);
/* The types and variables of the program (STAGE_TYPE_TABLE). */
const struct type_table *analysis_type_table(const struct analysis *analysis);
/*
 * Types from debug information (STAGE_TYPES); with STAGE_LEAKED_TYPES alone, those of leaked
 * allocations, and of as many others as are needed to infer them.
 */
const struct typing *analysis_typing(const struct analysis *analysis);
/* Returns the same to those who compare allocations with types: it learns how these are made up. */
struct typing *analysis_typing_to_compare(const struct analysis *analysis);

/*
 * Apply the user's statement about an allocation's type from now on: see typing_state()
 * (STAGE_TYPES).
 */
struct error *analysis_state_type(struct analysis *analysis, const struct type_statement *statement,
				  struct type_changes *ret);

/* STAGE_TYPES, and STAGE_LEAKED_TYPES: what all used allocations are, or look like. */
struct error *analysis_need_types(struct analysis *analysis);

/* Likely types of leaked allocations (STAGE_LEAKED_TYPES), else NULL. */
const struct siblings *analysis_siblings(const struct analysis *analysis);

/* The type of a used allocation, or what it looks like. False: none, or the stages are not built.
 */
static inline bool analysis_type_of(const struct analysis *analysis, allocation_id id,
				    struct typed *ret)
{
	const struct typing *typing = analysis_typing(analysis);

	return (typing && typing_of(typing, id, ret)) ||
	       siblings_typed(analysis_siblings(analysis), id, ret);
}

/* The calls that allocate values of types (STAGE_SITES). */
struct sites *analysis_sites(const struct analysis *analysis);

struct patterns *analysis_patterns(const struct analysis *analysis);
struct patterns *analysis_leaked_patterns(const struct analysis *analysis);

/*
 * Find the patterns and owners of those allocations, or of all where that takes less: then it
 * builds STAGE_OWNERS. analysis_owners() has them (STAGE_REACHABILITY).
 */
struct error *analysis_need_owners_of(struct analysis *analysis, const allocation_id *ids,
				      size_t count);
struct patterns *analysis_owners(const struct analysis *analysis);

/* Find the patterns and owners of those, in order, that the sources alone tell: of the caller's. */
struct error *analysis_owners_among(struct analysis *analysis, const allocation_id *ids,
				    size_t count, const struct bitmap *sources,
				    struct patterns **ret);

/*
 * Find only patterns that have numbers, and their owners, of all allocations, which takes half the
 * time (STAGE_ROOTS, STAGE_OBJECTS).
 */
struct error *analysis_find_numbered(struct analysis *analysis, struct patterns **ret);

/*
 * Once single allocations have been asked about, build the stages with which further answers take
 * milliseconds, within half of the memory allowed. For while nothing else is to be done.
 */
struct error *analysis_build_ahead(struct analysis *analysis);

/* True if such a stage is left to build. */
bool analysis_has_ahead(const struct analysis *analysis);

/*
 * The blocks, reachable or not, whose count of references is more than the words that may be such,
 * in .lost: std::shared_ptr, objects of runtimes that count (STAGE_LOST_COUNTS).
 */
const struct counts *analysis_lost_counts(const struct analysis *analysis);

/* Used and reachable from a root; used, not reachable and lost for ever (STAGE_REACHABILITY). */
const struct bitmap *analysis_anchored(const struct analysis *analysis);
const struct bitmap *analysis_leaked(const struct analysis *analysis);

/*
 * Used and not reachable, and what a collector will free, and what only that leads to; see
 * liveness.h. NULL where no allocation is collectable (STAGE_REACHABILITY).
 */
const struct bitmap *analysis_garbage(const struct analysis *analysis);
const struct bitmap *analysis_held(const struct analysis *analysis);

/* See signature_tell_counts(). */
bool analysis_tell_counts(const struct analysis *analysis, allocation_id id, char *ret,
			  size_t size);

/*
 * Find whether the object's reference count exceeds the references that were found. *ret is NULL if
 * it does not, and lives as long as the analysis.
 */
struct error *analysis_lost_count(struct analysis *analysis, allocation_id id,
				  const struct lost_count **ret);

/* Used and not reachable, whatever becomes of it (STAGE_REACHABILITY). */
const struct bitmap *analysis_unreachable(const struct analysis *analysis);

/*
 * Anchored, but a collector does not see by what and may free it. NULL where no allocation is
 * collectable (STAGE_COLLECTOR).
 */
const struct bitmap *analysis_at_risk(const struct analysis *analysis);

/*
 * Add what may make those safe after all to the findings, once, for those who report them
 * (STAGE_COLLECTOR).
 */
void analysis_doubt_risk(struct analysis *analysis);

/*
 * Used and reachable from roots of that kind. Computed when first asked for; needs
 * STAGE_REACHABILITY.
 */
struct error *analysis_anchored_by(struct analysis *analysis, enum root_kind kind,
				   const struct bitmap **ret);

/*
 * The number of the class of a runtime's object; else the first word of a used allocation if it is
 * the address of something that cannot be written, or of a vtable, else 0 (STAGE_CLASSES).
 */
uint64_t analysis_signature(const struct analysis *analysis, allocation_id id);

/* Prefetch the signature and size of an allocation that is needed soon. */
void analysis_fetch(const struct analysis *analysis, allocation_id id);

/*
 * The pattern by which the allocation is called: none if it holds an object whose class says more.
 */
pattern_number analysis_pattern_shown(const struct analysis *analysis,
				      const struct patterns *patterns, allocation_id id);

/* The identity of a used allocation without a signature (STAGE_CLASSES). */
bool analysis_identity(const struct analysis *analysis, allocation_id id, struct identity *ret);
const struct identities *analysis_identities(const struct analysis *analysis);
