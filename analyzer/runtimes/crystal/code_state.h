/*
 * What is known of registers and of the stack while machine code is read.
 *
 * Each value is a number, or an object that the function made, or unknown.
 */
#ifndef ANALYZER_RUNTIMES_CRYSTAL_CODE_STATE_H
#define ANALYZER_RUNTIMES_CRYSTAL_CODE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	GENERAL = 16,	/* general registers come first, */
	REGISTERS = 32, /* then vector registers */
	SLOTS = 64,
	MOST_FOLLOWED = 1024, /* objects */
};

/* A flag is a number whose lowest byte is 0 or 1, the rest being unknown. */
enum value_kind { UNKNOWN, NUMBER, MADE, FLAG };

/* A number, or which of the objects made. */
struct value {
	enum value_kind kind;
	uint64_t number;
};

/* A place of the stack. */
struct slot {
	int64_t place; /* from the stack pointer at the function's start */
	bool by_frame; /* from the frame pointer */
	struct value value;
};

struct code_state {
	struct value registers[REGISTERS];
	struct slot slots[SLOTS];
	size_t slot_count;
	int64_t depth;			    /* of the stack pointer */
	uint64_t typed[MOST_FOLLOWED / 64]; /* a bit for each object with a type */
};

/* Nothing is known but the depth of the stack. */
void code_state_forget(struct code_state *state);

/* What is known of the place; NULL: nothing. */
struct slot *code_state_find(struct code_state *state, const struct slot *place);
void code_state_set(struct code_state *state, const struct slot *place, struct value value);

/* Keep what is known in both. */
void code_state_intersect(struct code_state *state, const struct code_state *other);

/* The object was found to be another one. */
void code_state_rename(struct code_state *state, size_t made, size_t other);

/* Note that the object has a type; false: it had one already. */
bool code_state_take_type(struct code_state *state, size_t made);

#endif
