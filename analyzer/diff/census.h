/*
 * The used allocations of a core, each counted in a group by one aspect of it, or by what holds it.
 *
 * The names of groups are the same in each run of a program: they contain no address, except that
 * of a signature outside of all modules.
 *
 * The owner of an allocation is the next class above it in the dominator tree, or else the
 * variable, stack or register that this part of the tree hangs on. What a collector will free is
 * unreachable, and counts apart: it may grow until the collector runs.
 */
#pragma once

#include "analyzer/base/array.h"
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
	ASPECT_CALLER,	    /* who allocated it, if the program ran with the recorder */
	ASPECTS,
};

/* The meaning of an owner's name. */
enum census_holder {
	HELD_BY_NAME,	/* a class or variable */
	HELD_BY_MANY,	/* several, or a place that changes: stacks, registers, the kernel */
	HELD_BY_NOBODY, /* it leaked */
	HELD_AS_GARBAGE,
};

enum census_holder census_holder_of(const char *owner);

struct census {
	struct analysis *analysis; /* borrowed */
	enum aspect aspect;
	struct tally_table keys; /* counts and bytes by key */
	ARRAY(uint32_t)
	numbers;		 /* of the last three aspects, by id: the number of the
				    allocation's key, plus 1 */
	struct leak_kinds leaks; /* of ASPECT_FINGERPRINT */
	char **holders;		 /* names of variables or callers; owned */
	size_t holder_count;
};

/* Called with each used allocation by address, and the number of its key, plus 1; 0: none. */
typedef struct error *(*census_visitor)(void *data, allocation_id id, struct memory_range range,
					uint32_t number);

/* Build what a census needs. */
struct error *census_need(struct analysis *analysis, enum aspect aspect);

/* Count, and visit unless visit is NULL. ret is to be deinitialised in any case. */
struct error *census_take(struct analysis *analysis, enum aspect aspect, census_visitor visit,
			  void *data, struct census *ret);
void census_deinit(struct census *census);
DEFINE_DEINIT(census_deinit, struct census)

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

/*
 * The class or identity of an allocation, or KIND_UNKNOWN; the same in all cores of a process.
 * Needs STAGE_CLASSES.
 */
kind_key census_class(const struct analysis *analysis, allocation_id id);
