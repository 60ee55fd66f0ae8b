/*
 * The roots: the memory outside of all heaps from which the program can reach an allocation, the
 * registers, and what the kernel holds for the program.
 *
 * A root range is writable (or was, as relocated data, or memory without any rights that the dump
 * has) and no allocator claims it. The dead part of a stack, be it a thread's or a fiber's, is left
 * out. Code that the program made itself is a root, too, with pointers in its instructions. Ranges
 * are sorted by address.
 */
#pragma once

#include "analyzer/base/bitmap.h"
#include "analyzer/base/progress.h"
#include "analyzer/base/side_file.h"
#include "analyzer/graph/disguise.h"
#include "analyzer/heap/index.h"
#include "analyzer/program/program.h"
#include "analyzer/runtimes/fibers.h"

enum root_kind {
	ROOT_STATIC,
	ROOT_STACK,
	ROOT_REGISTER,
	ROOT_KERNEL,
	ROOT_INTEGER, /* an interpreter's, in memory that is in use */
	ROOT_KINDS
};

const char *root_kind_name(enum root_kind kind); /* "static"; NULL for ROOT_KINDS */

struct root_range {
	uint64_t start, end;
	enum root_kind kind; /* ROOT_STATIC or ROOT_STACK */
	uint32_t thread;     /* of a thread's stack: an index; else NO_THREAD */
	bool is_code;	     /* references need not be aligned */
	bool is_writable;
};

/* For a register_name: any vector register; a thread at work in malloc. */
#define VECTOR_REGISTER "vector"
#define INSIDE_MALLOC	"malloc"

/*
 * A place outside of the heaps that refers to an allocation, or an integer anywhere that is its
 * address.
 */
struct anchor {
	enum root_kind kind;
	uint32_t thread;	   /* of a stack, a register or the kernel's value; else
				    * NO_THREAD */
	uint64_t address;	   /* where the reference stands; 0: not in memory */
	const char *register_name; /* NULL: none */
	const char *integer;	   /* whose integer it is; NULL: it is none */
	const char *packed;	   /* holder of references at odd addresses; or NULL */
	uint32_t held;		   /* number of the kernel's value, or ASSUMED_STACK */
	allocation_id target;
};

/* Used as number: a stack for signals that the core does not list. */
enum { ASSUMED_STACK = INT32_MAX };

struct roots;

/* All borrowed by the roots. */
struct roots_input {
	const struct image *image;
	const struct program *program;
	const struct allocation_index *index;
	const struct runtimes *runtimes; /* NULL: none */
	struct memory_account *account;
	struct progress *progress;
};

struct error *roots_create(const struct roots_input *input, struct roots **ret);

/* Save the targets of all roots, which take long to find. */
struct error *roots_save(const struct roots *roots, struct side_writer *writer);

/* Create the same roots; their targets are those of the file, which must outlive them. */
struct error *roots_load(const struct roots_input *input, struct side_file *file,
			 struct roots **ret);
void roots_destroy(struct roots *roots);
DEFINE_CLEANUP(roots_destroy, struct roots *)

/* Have the kernel hold what signal_stacks.h finds. */
void roots_assume_stacks(struct roots *roots, const struct bitmap *stacks);

/*
 * Add integers by which reachability found their targets held, unless they are there already. Until
 * then there are none.
 */
struct error *roots_add_integers(struct roots *roots, const struct disguised *integers,
				 size_t count);

size_t root_range_count(const struct roots *roots);
struct root_range root_range(const struct roots *roots, size_t number);

/* The used allocations that a root of that kind refers to directly. */
const struct bitmap *root_targets(const struct roots *roots, enum root_kind kind);

/* The first kind of root that refers to the allocation, or ROOT_KINDS. */
enum root_kind roots_first_kind(const struct roots *roots, allocation_id id);

/*
 * Add to ret the used allocations that the ranges refer to directly which narrow leaves, in order
 * of address: it may make a range smaller, and returns false if nothing of it is wanted.
 */
struct error *roots_find_targets(const struct roots *roots,
				 bool (*narrow)(const void *data, struct root_range *range),
				 const void *data, struct bitmap *ret);

/*
 * Call visit for each anchor whose target is in targets (used and free ones alike), in order of
 * kind and address, until it returns false.
 */
void roots_visit(const struct roots *roots, const struct bitmap *targets,
		 bool (*visit)(void *data, const struct anchor *anchor), void *data);
