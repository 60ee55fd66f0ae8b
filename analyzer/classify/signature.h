/*
 * Reads the signature of an allocation: what tells the class of the object in it, if anything does
 * (see classes.h).
 *
 * It is the number of the class that a runtime knows the object by; else the object's first word,
 * if that is the address of something that cannot be written, or of a vtable. Of an object that
 * std::make_shared() put behind its counts it is the object's own, if it has a vtable. A block out
 * of which a program cuts objects of several classes is distinguished from an object: see
 * signature_mark().
 */
#pragma once

#include "analyzer/classify/classes.h"
#include "analyzer/classify/kept_words.h"
#include "analyzer/heap/index.h"
#include "analyzer/image/view.h"

/*
 * Decides whether the address in an object's first word tells what the object is.
 *
 * A vtable does, a function, and data with a name, or that refers to something, as tables of
 * functions and descriptions of types do; a string of the program tells a little. What points into
 * the middle of code does not, nor a link of a free list that a short string was written over, nor
 * a constant that objects of many sizes begin with, as an empty container that all share.
 */
struct signature_judge;

/* Slabs are no smaller. */
enum { LEAST_SLAB = 1 << 10 };

/* All is borrowed. */
struct signature_judge_input {
	const struct image *image;
	const struct program *program;
	struct debug *debug;
	struct classes *classes;
	const struct allocation_index *index;
	uint64_t links; /* where the last of a free list points; 0: unknown */
	struct memory_account *account;
};

struct error *signature_judge_create(const struct signature_judge_input *input,
				     struct signature_judge **ret);
void signature_judge_destroy(struct signature_judge *judge);
DEFINE_CLEANUP(signature_judge_destroy, struct signature_judge *)

/*
 * All is borrowed. It remembers where it read last, and where a word led to, so allocations one
 * after the other are quick; each thread has one of its own.
 */
enum { KNOWN_SIGNATURES = 8 };

/* Facts about a first word. */
struct known_signature {
	uint64_t word;	 /* 0: none */
	uint32_t object; /* as classes_control_block() has it */
	bool constant;
};

struct signature_reader {
	const struct allocation_index *index;
	const struct bitmap *managed;	 /* have TRAIT_MANAGED; NULL: none has */
	const struct kept_words *kept;	 /* NULL: read all from memory */
	const struct runtimes *runtimes; /* NULL: none has objects */
	struct classes *classes;	 /* NULL: no vtable is known */
	struct signature_judge *judge;	 /* NULL: any address will do */
	struct view view;
	const struct region *target; /* NULL at first */
	struct known_signature known[KNOWN_SIGNATURES];
};

/* The start of the object in the allocation at start: a header may precede it. */
uint64_t signature_object(const struct signature_reader *reader, allocation_id id, uint64_t start);

/*
 * The possible signature of the allocation with that range, by memory alone, not by symbols; 0:
 * none.
 */
uint64_t signature_candidate(struct signature_reader *reader, allocation_id id,
			     struct memory_range range);

/* True if the candidate, which is not 0, is a signature. */
bool signature_is_right(const struct signature_reader *reader, uint64_t candidate);

/* "an exception: use count 1", if C++ counts what holds the allocation, which has that range. */
bool signature_tell_counts(struct signature_reader *reader, struct memory_range range, char *ret,
			   size_t size);

/* The signature of the allocation; 0: none. */
uint64_t signature_read(struct signature_reader *reader, allocation_id id,
			struct memory_range range);
