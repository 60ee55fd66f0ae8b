/*
 * What grew between cores, the oldest first.
 *
 * All are counted in groups that keep their names from core to core (census.h). Where the cores are
 * of one process (lineage.h), allocations are compared one by one, too: one survives if an
 * allocation of the same start and size, and of the same class where both are of one, is in use in
 * each core. An address that was freed and given out again for the same looks like that.
 *
 *	oldest core    a  b  c
 *	core           a  b     d
 *	newest core    a     c  d  e
 *
 * There, a survived; d and e are new: not in the oldest; b is gone.
 *
 * Only what has to be known of the oldest core is kept while the next ones are analysed, some 6
 * bytes an allocation, so that a core's analysis can be destroyed before the next one is made.
 */
#ifndef ANALYZER_DIFF_DIFF_H
#define ANALYZER_DIFF_DIFF_H

#include "analyzer/diff/census.h"
#include "analyzer/diff/lineage.h"
#include "analyzer/query/query.h"

enum { MOST_CORES = 64 };

struct diff_core {
	char *path; /* owned */
	struct lineage lineage;
	struct set_total total; /* of all in use */
	bool is_complete;	/* its analysis, as far as findings tell */
};

/* Growth is that from the oldest core to the newest. */
struct diff_group {
	uint64_t name;		   /* where it is among the names */
	uint64_t size;		   /* of its members; 0: of any size */
	uint64_t added, gone;	   /* allocations; only of one process */
	uint64_t survived;	   /* in all cores */
	struct set_total old, now; /* in the oldest and the newest */
	uint32_t number;	   /* in the order of their coming */
	uint32_t steps;		   /* from core to core, in which bytes grew */
};

struct diff;

struct error *diff_create(enum aspect aspect, struct memory_account *account, struct diff **ret);
void diff_destroy(struct diff *diff);
DEFINE_CLEANUP(diff_destroy, struct diff *)

/*
 * Add a core, newer than those before. Builds what is needed; the analysis may be destroyed then.
 */
struct error *diff_add(struct diff *diff, struct analysis *analysis);

/*
 * The same with the newest one. Makes its sets NEW_SET and SURVIVED_SET, or forgets them if the
 * cores are of different runs. What follows needs that.
 */
struct error *diff_finish(struct diff *diff, struct analysis *newest);

size_t diff_core_count(const struct diff *diff);
const struct diff_core *diff_core(const struct diff *diff, size_t number);

/* How all cores are related: as the first is to which it is related least. */
enum kinship diff_kinship(const struct diff *diff);

/*
 * The groups: those first that grew at each of two or more steps, then by growth in bytes, most
 * first; what shrank last.
 */
size_t diff_group_count(const struct diff *diff);
const struct diff_group *diff_group(const struct diff *diff, size_t number);
const char *diff_name(const struct diff *diff, const struct diff_group *group);

/* Whether it only ever grew, which takes three cores to tell. */
bool diff_only_grows(const struct diff *diff, const struct diff_group *group);

/* What there was of it in a core. */
struct set_total diff_total(const struct diff *diff, const struct diff_group *group, size_t core);

/* ns from the oldest core to the newest; 0: not known. */
uint64_t diff_elapsed(const struct diff *diff);

#endif
