/*
 * Whether the address in an object's first word tells what the object is.
 *
 * A vtable does, a function, and data with a name, or that refers to something, as tables of
 * functions and descriptions of types do; a string of the program tells a little. What points into
 * the middle of code does not, nor a link of a free list that a short string was written over, nor
 * a constant that objects of many sizes begin with, as an empty container that all share.
 */
#ifndef ANALYZER_CLASSIFY_SIGNATURE_JUDGE_H
#define ANALYZER_CLASSIFY_SIGNATURE_JUDGE_H

#include "analyzer/classify/classes.h"

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

/* Whether blocks of that size begin with objects of several classes. */
bool signature_judge_is_size_of_many(struct signature_judge *judge, uint64_t size);

/* Each address is looked at once. Not for several threads at a time. */
bool signature_judge_accepts(struct signature_judge *judge, uint64_t word);

#endif
