/* The implementation of struct analysis, for the files that build, save and query its stages. */
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/analysis/notes.h"
#include "analyzer/base/side_file.h"

/* The findings that a stage added. */
struct stage_findings {
	size_t first, count;		 /* in the list */
	size_t weighed[FINDING_WEIGHTS]; /* including those left out */
};

struct analysis {
	struct findings findings;
	struct memory_account account;
	struct progress *progress;
	struct image *image;
	struct program *program;
	struct heaps *heaps;
	const struct allocation_index *index;
	const struct runtime *const *runtime_kinds; /* that are looked for */
	struct runtimes *runtimes;
	struct roots *roots;
	struct graph *graph;
	struct bitmap anchored;
	struct liveness liveness;  /* of what is not */
	struct counts counts;	   /* of the objects among these: see analysis_lost_count() */
	struct counts lost_counts; /* of all that is counted */
	bool counts_known;
	bool is_told[STAGE_NOTES];
	struct bitmap at_risk; /* no words: nothing is collectable */
	bool risk_doubted;
	struct bitmap anchored_by[ROOT_KINDS];
	struct leaks *leaks;
	struct graph *incoming;
	struct graph *incoming_lost; /* of what is unreachable; NULL: not asked for */
	struct dominators *dominators;
	struct variables *variables; /* which these begin at */
	struct sharers *sharers;     /* of these */
	struct disguises disguised;  /* by target */
	const struct debug_options *options;
	const struct rerun *rerun; /* or NULL */
	struct debug *debug;
	struct classes *classes;
	struct signature_judge *signature_judge;
	struct first_words *first_words;
	struct identities *identities;
	struct type_table *type_table;
	struct typing *typing; /* of all allocations */
	struct typing
		*leak_typing; /* of what names those that leaked; NULL once there is that of all */
	struct siblings *siblings;
	struct object_paths *object_paths;
	struct sites *sites;
	struct patterns *patterns, *leaked_patterns;
	struct patterns *few_patterns; /* see analysis_need_owners_of(); or NULL */
	uint64_t few_cost;	       /* bytes that were scanned for these */
	struct leaks *few_leaks;       /* that lead to few_leaks_of: see analysis_need_leaks_to() */
	allocation_id few_leaks_of;
	size_t few_leaks_cost;	       /* allocations that were looked at for these */
	struct bitmap not_disguised;   /* some, certainly; or no words */
	bool few_asked;		       /* see analysis_build_ahead() */
	bool saves_memory;	       /* see analysis_save_memory() */
	bool ahead_ended;	       /* by an error: it would come again */
	struct kept_words *kept_words; /* of the unreachable; or NULL */
	struct named_sets *named_sets;
	void *kept; /* see analysis_keep() */
	void (*destroy_kept)(void *kept);
	struct stage_cost costs[STAGES];
	struct stage_findings found[STAGES];
	/* NULL: none is used. What was loaded from it, points into it. */
	struct side_file *side_file;
	bool side_file_spoilt; /* load nothing more from it */
};

/* The description of a stage: how to build it, and from which others. */
struct recipe {
	const char *name;
	const char *unit;
	enum stage needs[3]; /* STAGE_IMAGE, which is always there: no more */
	struct error *(*build)(struct analysis *analysis);
	uint64_t (*count)(const struct analysis *analysis); /* of units, once it is there */
	/* Save to a side file, and load from it; NULL: not saved. */
	struct error *(*save)(const struct analysis *analysis, struct side_writer *writer);
	struct error *(*load)(struct analysis *analysis, struct side_file *file);
};

extern const struct recipe analysis_recipes[STAGES];

/*
 * Build the stage from the side file, if that has it: *ret_loaded. A side file that turns out to be
 * damaged is given up, with a note.
 */
struct error *analysis_load_stage(struct analysis *analysis, enum stage stage, bool *ret_loaded);

/* True if the side file has the stage. */
bool analysis_keeps_stage(const struct analysis *analysis, enum stage stage);

/* For what programs do to pointers. */
struct disguises_input analysis_disguises_input(struct analysis *analysis,
						const struct bitmap *in_use,
						const struct bitmap *wanted);

/* A reader that has not read anything yet. */
struct signature_reader analysis_signatures(const struct analysis *analysis);

/* The input for finding the patterns of all allocations. */
struct scan_input analysis_scan_input(struct analysis *analysis);

/* True if words are of 4 bytes, which not every part supports. */
static inline bool analysis_is_narrow(const struct analysis *analysis)
{
	return image_word_size(analysis->image) != sizeof(uint64_t);
}

/* Recipes whose stages are built by files of their own. */
struct error *build_reachability(struct analysis *analysis);
struct error *build_collector(struct analysis *analysis);
struct error *build_lost_counts(struct analysis *analysis);

/* Mark what is used and reachable from the targets of those kinds of roots. */
struct error *analysis_mark(struct analysis *analysis, enum root_kind first, enum root_kind last,
			    struct bitmap *ret);
