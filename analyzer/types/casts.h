/*
 * Finds out what types a program's code uses for pointers declared as "void *", "char *" or members
 * of unions.
 *
 *	struct entry { void *value; };          mov rax, [rbx + 8]     rbx is a struct entry *
 *	struct order *order = entry->value;                            here begins order, in rax
 *
 * Debug information says which variable is in which register at which instruction. A pointer that
 * is loaded from a member and becomes a variable, a parameter or another member of type
 * "struct order *" is evidence that the member may lead to a struct order; so is such a variable
 * that is stored there. It is no proof: the same member may lead to other things elsewhere, and
 * code may be shared. Who asks compares candidates with memory.
 */
#pragma once

#include "analyzer/base/progress.h"
#include "analyzer/base/table.h"
#include "analyzer/program/debug/functions.h"
#include "analyzer/types/slots.h"

/* The pointers in the array that a member leads to have a place of their own. */
#define ELEMENT_OF(member) ((member) | UINT32_C(1) << 31)

/* So has what stands somewhere in the block that a member leads into. */
#define INSIDE_OF(member) ((member) | UINT32_C(1) << 30)

struct cast {
	uint32_t place; /* a member, ELEMENT_OF() one, or INSIDE_OF() one */
	type_number type;
};

/* A word that holds the address of a function, as the linkage table's. */
struct call_slot {
	uint64_t slot, address; /* FOLLOWED_NOWHERE: the slot cannot be read */
};

#define FOLLOWED_NOWHERE UINT64_MAX

struct casts {
	HASH_TABLE(struct cast) all; /* sorted by place once they are read */
	ARRAY(type_number) results;  /* types that calls with a result of "void *" return */
	HASH_TABLE(struct call_slot) followed; /* by calls that somebody listens to */
	bool was_read;			       /* there is code, and it can be read */
};

void casts_deinit(struct casts *casts);

/* A call, or a jump to another function in place of one. */
struct code_call {
	uint64_t address;   /* of the instruction */
	uint64_t function;  /* that it stands in: its entry */
	uint64_t callee;    /* 0: it is not known */
	bool is_known;	    /* the callee has debug information: */
	bool is_of_library; /* the callee is of the C++ library */
	type_number result;
	type_number function_result;	     /* of the function that it stands in */
	uint64_t arguments[MOST_PARAMETERS]; /* where they are constant: */
	uint8_t constant;		     /* a bit for each */
	/* Parameters of the function, from 1 on, to which the arguments above are added; 0: none.
	 */
	uint8_t passed[MOST_PARAMETERS];
	uint8_t factors[MOST_PARAMETERS];    /* and others that these are multiplied by */
	const struct function_local *locals; /* of the function, until the call returns */
	size_t local_count;
};

/* Receives calls; NULL: none does. */
struct code_listener {
	/* A number for the call's result, or NO_CALL if that does not matter. */
	struct error *(*call)(void *data, const struct code_call *call, uint32_t *ret);
	/* The result of that call is taken for a pointer to the type. */
	void (*use)(void *data, uint32_t call, type_number type);
	/* The function that it stands in returns its result, so many bytes further on. */
	void (*give)(void *data, uint32_t call, uint64_t more);
	void *data;
};

#define NO_CALL UINT32_MAX

struct casts_input {
	const struct image *image;
	const struct code_listener *listener;
	struct debug *debug;
	const struct type_table *types;
	struct slot_table *slots;
	struct memory_account *account;
	struct progress *progress;
};

/* If machine code cannot be read, there are no casts. */
struct error *casts_read(struct casts *casts, const struct casts_input *input);

/* The casts of a place: their number, and the first in ret. */
size_t casts_of(const struct casts *casts, uint32_t place, const struct cast **ret);
