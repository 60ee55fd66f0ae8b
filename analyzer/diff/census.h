/*
 * The used allocations of a core, each counted in a group by one aspect of it.
 *
 * What groups are called is the same in each run of a program: nothing of it is an address, but for
 * a signature outside of all modules.
 */
#ifndef ANALYZER_DIFF_CENSUS_H
#define ANALYZER_DIFF_CENSUS_H

#include "analyzer/gate/leak_kinds.h"
#include "analyzer/kinds/kind_key.h"
#include "analyzer/kinds/tally.h"

enum aspect {
	ASPECT_KIND, /* pattern, else class or signature, identity, or size */
	ASPECT_CLASS,
	ASPECT_SIGNATURE,
	ASPECT_PATTERN,
	ASPECT_SIZE,
	ASPECT_FINGERPRINT, /* of leak roots: all that each owns */
	ASPECT_OWNER,	    /* the class or variable that alone holds it */
	ASPECTS,
};

/* "kind"; the aspect of that name, or ASPECTS. */
const char *aspect_name(enum aspect aspect);
enum aspect aspect_find(const char *name);

struct census {
	struct analysis *analysis; /* borrowed */
	enum aspect aspect;
	struct tally_table keys; /* counts and bytes by key */
	struct memory numbers;	 /* of ASPECT_FINGERPRINT and ASPECT_OWNER: uint32_t by id,
				    that of its key, plus 1 */
	struct leak_kinds leaks; /* of ASPECT_FINGERPRINT */
	char **holders;		 /* names of variables, of ASPECT_OWNER; owned */
	size_t holder_count;
};

/* To be deinitialised in any case. */
void census_deinit(struct census *census);
DEFINE_DEINIT(census_deinit, struct census)

/* Count one under the key, whose number, plus 1, goes to ret. */
struct error *census_count(struct census *census, kind_key key, uint64_t bytes, uint32_t *ret);

/* Count an allocation, or what hangs on it, under the key, and keep the number of that. */
struct error *census_add(struct census *census, allocation_id id, kind_key key, uint64_t bytes);

/*
 * The name of a group in two parts, and the size of its members where that is part of the name,
 * else 0.
 */
struct census_name {
	char prefix[32];
	const char *text; /* borrowed from the census */
	uint64_t size;
};

struct census_name census_name(const struct census *census, kind_key key);

/* What keys tell beside what an allocation is. */
enum census_tag {
	BY_OTHER = BY_MORE, /* of which the aspect says nothing: enum census_other */
	BY_LEAK,	    /* the number of a leak kind */
	BY_HOLDER,	    /* the number of a variable */
};

enum census_other {
	OTHER_NONE,
	OTHER_SEVERAL, /* held by several, none of them alone */
	OTHER_STACK,
	OTHER_REGISTER,
	OTHER_KERNEL,
};

/*
 * The class or identity that an allocation is of, or KIND_UNKNOWN. In all cores of a process it is
 * the same. Needs STAGE_CLASSES.
 */
kind_key census_class(const struct analysis *analysis, allocation_id id);

#endif
