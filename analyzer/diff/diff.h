/*
 * Compares cores, the oldest first, to show growth.
 *
 * All are counted in groups that keep their names from core to core (census.h). Where the cores are
 * of one process (struct lineage), allocations are compared one by one, too: one survives if an
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
#pragma once

#include "analyzer/diff/oldest.h"

/*
 * Tells whether cores are of one process, and when each was taken.
 *
 * The kernel gives each process that executes a program 16 random bytes, whose address AT_RANDOM
 * tells. All cores of a process have the same; so has a fork, but it has another id. The kernel
 * also maps the program and the vdso at random.
 */
enum time_source {
	TIME_UNKNOWN,
	TIME_CORE, /* kept in the core by who wrote it */
	TIME_FILE, /* when the file was last written */
};

struct lineage {
	uint64_t random;  /* image_random_hash() */
	bool is_replaced; /* a slim core's that lacks it: it is of placeholders */
	uint32_t process; /* its id; 0: not told */
	uint64_t program; /* AT_PHDR: where the program was mapped */
	uint64_t vdso;	  /* AT_SYSINFO_EHDR */
	uint64_t time;	  /* ns since 1970 began */
	enum time_source source;
};

struct lineage lineage_of(const struct image *image);

/* "2026-11-27T03:09:51Z", in the buffer; NULL if the time is not known. */
enum { LINEAGE_TIME_SIZE = 32 };
const char *lineage_time(const struct lineage *lineage, char buffer[static LINEAGE_TIME_SIZE]);

enum kinship {
	KIN_SAME_PROCESS,
	KIN_SAME_PLACES, /* as far as a core without contents tells */
	KIN_OTHER_RANDOM,
	KIN_OTHER_ID,
	KIN_OTHER_PLACE,
	KIN_UNKNOWN, /* the random bytes are in neither, or in one only */
};

enum kinship lineage_compare(const struct lineage *one, const struct lineage *other);

static inline bool kinship_is_same(enum kinship kinship)
{
	return kinship == KIN_SAME_PROCESS || kinship == KIN_SAME_PLACES;
}

/* The evidence, as "AT_RANDOM differs". */
const char *kinship_reason(enum kinship kinship);

struct diff_core {
	char *path; /* owned */
	struct lineage lineage;
	struct set_total total; /* of all in use */
};

/* Finding holders takes the dominators of each core. */
enum diff_holders {
	HOLDERS_NONE,
	HOLDERS_ALL,
	/* Allocations that cannot grow for ever (bounded.h) have a holder without a name. */
	HOLDERS_UNBOUNDED,
};

struct diff {
	enum aspect aspect;
	struct memory_account *account;	    /* borrowed */
	struct diff_core cores[MOST_CORES]; /* the oldest first */
	size_t core_count;
	/* The weakest relation of the first core to another one. */
	enum kinship kinship;
	/*
	 * Sorted: groups that grew at two or more steps first, then by growth in bytes, most first;
	 * those that shrank last.
	 */
	struct group_table groups;
	enum diff_holders with_holders;
	struct group_table holders; /* the same by ASPECT_OWNER, if asked for */
	struct group_table held;    /* amounts of these by kind; see diff_most_held() */
	struct oldest oldest;	    /* of the oldest core; empty at the end */
};

void diff_destroy(struct diff *diff);
DEFINE_CLEANUP(diff_destroy, struct diff *)

/*
 * Open the files of older cores one after the other, the oldest first, and say what grew from there
 * to the newest, whose sets NEW_SET and SURVIVED_SET are made, or forgotten if the cores are of
 * different runs. That an older core cannot be trusted is added to the findings of the newest.
 * visit, unless it is NULL, is called with the analysis of each older core after it was counted.
 */
struct error *compare_cores(struct analysis *newest, const char *const *paths, size_t count,
			    enum aspect aspect, enum diff_holders holders,
			    struct error *(*visit)(void *data, struct analysis *older), void *data,
			    struct diff **ret);

/* The kind that has at least half of what a holder grew by, or NULL; its text is of both. */
const struct diff_group *diff_most_held(const struct diff *diff, const struct diff_group *holder,
					const char **ret_kind);

/* ns from the oldest core to the newest; 0: not known. */
uint64_t diff_elapsed(const struct diff *diff);
