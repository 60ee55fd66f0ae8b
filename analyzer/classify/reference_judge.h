/*
 * Judges a reference between two allocations by its place in the source and by the kind of the
 * target.
 *
 * It is tainted if it stands in a part that holds nothing any more: spare room of a vector, what a
 * short string does not use of its buffer. It is favored unless it leads into part of a container,
 * and is not the one by which that is held: iterators are not, nor are links back. A judge is set
 * on one source at a time, and what is known of that is looked up once.
 */
#pragma once

#include "analyzer/classify/patterns.h"
#include "analyzer/classify/reader.h"

struct reference_judge {
	const struct patterns *patterns; /* borrowed */
	struct reader reader;
	struct memory_range source;
	allocation_id source_id;
	const struct object_space *space; /* that knows which words of the source refer; or NULL */
	struct pattern_facts facts;	  /* of the source */
	bool has_facts;
};

/* Owners are known by the patterns, unless a source's part does not matter. */
void reference_judge_init(struct reference_judge *judge, const struct patterns *patterns);
void reference_judge_set_source(struct reference_judge *judge, allocation_id source);

/* The word at that offset of the source; NULL if it is not tainted. */
const char *reference_judge_taint(struct reference_judge *judge, uint64_t offset);

/*
 * True if the word at that offset, a reference to target, is favored. The patterns must know the
 * owners.
 */
bool reference_judge_favors(struct reference_judge *judge, uint64_t offset, allocation_id target);

/* True if any word of the source that may be a reference is tainted. */
bool reference_judge_finds_taint(struct reference_judge *judge);

/*
 * Call visit for the used allocation that each word leads to, unless it is tainted. Ends with the
 * first error of visit.
 */
struct error *reference_judge_visit_untainted(struct reference_judge *judge,
					      struct error *(*visit)(void *data,
								     allocation_id target),
					      void *data);

/*
 * reference_judge_find_taint() of the same allocations over and over.
 *
 * That looks at the words of the source until it finds the target, so to ask it for all that a
 * large table holds takes the square of its size. So the targets of words that are not tainted are
 * kept for the large sources asked about last.
 */
struct taint_memory;

/* The patterns are borrowed, and know the owners. */
struct error *taint_memory_create(const struct patterns *patterns, struct memory_account *account,
				  struct taint_memory **ret);
void taint_memory_destroy(struct taint_memory *memory);
DEFINE_CLEANUP(taint_memory_destroy, struct taint_memory *)

/* The answer of patterns_find_taint(), cached. */
const char *taint_memory_find(struct taint_memory *memory, allocation_id source,
			      allocation_id target);
