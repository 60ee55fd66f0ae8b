/*
 * The roots as the program has them: its variables.
 *
 * All words of a static variable are one root, and so are those of a thread-local one, of a frame
 * of a thread, of a thread's registers, of a module or mapping where nothing has a name. Variables
 * are ordered by how lasting they are: a static one holds as long as the process lives, a word on a
 * stack may be gone the next moment, and a frame outlives those of the functions that it calls.
 * What a language has by a global name comes first: its modules refer to each other, and words of
 * the interpreter to all of them.
 *
 * It costs 4 bytes for each word of a root that refers to an allocation; 8 while it is made.
 */
#pragma once

#include "analyzer/graph/dominators.h"
#include "analyzer/graph/roots.h"
#include "analyzer/program/debug/debug.h"

enum lasting {
	/* Globals of a language: all of them are one variable, and its regions have their names. */
	LASTING_GLOBAL,
	LASTING_LOCAL,	/* of a running function of a language: words of its interpreter lead there
			 */
	LASTING_STATIC, /* and other memory outside of heaps and stacks */
	LASTING_LIBC,	/* static data of the C library, which owns nothing of the program's */
	LASTING_THREAD_LOCAL,
	LASTING_LENT,  /* held by the kernel, or by an interpreter's integer */
	LASTING_FRAME, /* of a function that has not returned */
	LASTING_WORDS, /* of a stack, in no frame that is known; registers */
};

struct variable {
	char *name;		     /* "cache (libfoo.so)", "serve() of thread 4711"; owned */
	const struct module *module; /* or NULL */
	uint64_t address;	     /* of a static variable; 0: it has no symbol */
	bool is_one;		     /* not all that have no name of their own in a module, say */
	enum root_kind kind;
	enum lasting lasting;
	unsigned int depth; /* of a frame: how many frames called it */
};

struct variables;

/* All borrowed while it is made; program and runtimes for as long as the variables live. */
struct variables_input {
	const struct image *image;
	const struct program *program;
	const struct runtimes *runtimes;
	const struct roots *roots;
	const struct graph *graph;
	const struct allocation_index *index;
	const struct bitmap *targets;  /* the allocations that count */
	const struct bitmap *anchored; /* of these, those that a root leads to */
	const struct bitmap *nested;   /* of these, those that no root holds; or NULL */
	struct debug *debug;
	struct memory_account *account;
	struct progress *progress;
};

struct error *variables_create(const struct variables_input *input, struct variables **ret);
void variables_destroy(struct variables *variables);
DEFINE_CLEANUP(variables_destroy, struct variables *)

/* In order of lasting, then of address. */
size_t variables_count(const struct variables *variables);
const struct variable *variables_at(const struct variables *variables, size_t number);

/* For the dominators: how lasting each is, and what it refers to; borrowed. */
struct dominator_roots variables_roots(const struct variables *variables);

/* Parts of regions, which only the variable holds that is the region; NULL: there are none. */
const struct bitmap *variables_regions(const struct variables *variables);

/* The program's own memory if it embeds a language, see embedding.h; NULL: it embeds none. */
const struct bitmap *variables_own(const struct variables *variables);

static inline bool variables_in_region(const struct variables *variables, allocation_id id)
{
	const struct bitmap *regions = variables_regions(variables);

	return regions && bitmap_get(regions, id);
}
