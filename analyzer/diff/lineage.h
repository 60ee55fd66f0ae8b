/*
 * Whether cores are of one process, and when each was taken.
 *
 * The kernel gives each process that executes a program 16 random bytes, whose place AT_RANDOM
 * tells. A process has the same in all of its cores; what it forks has them too, but another id.
 * Where the kernel put the program and the vdso is random as well.
 */
#ifndef ANALYZER_DIFF_LINEAGE_H
#define ANALYZER_DIFF_LINEAGE_H

#include "analyzer/image/image.h"

enum { RANDOM_BYTES = 16 };

enum time_source {
	TIME_UNKNOWN,
	TIME_CORE, /* kept in the core by who wrote it */
	TIME_FILE, /* when the file was last written */
};

struct lineage {
	uint8_t random[RANDOM_BYTES];
	bool has_random;
	uint32_t process; /* its id; 0: not told */
	uint64_t program; /* AT_PHDR: where the program was mapped */
	uint64_t vdso;	  /* AT_SYSINFO_EHDR */
	uint64_t time;	  /* ns since 1970 began */
	enum time_source source;
};

struct lineage lineage_of(const struct image *image);

enum kinship {
	KIN_SAME_PROCESS,
	KIN_OTHER_RANDOM,
	KIN_OTHER_ID,
	KIN_OTHER_PLACE,
	KIN_UNKNOWN, /* the random bytes are in neither, or in one only */
};

enum kinship lineage_compare(const struct lineage *one, const struct lineage *other);

/* What that was told by, as "the random bytes of AT_RANDOM differ". */
const char *kinship_reason(enum kinship kinship);

#endif
