/*
 * Which registers hold constants, or parameters of the function, at each instruction of its code.
 *
 * The code is read from its start to its end. Where jumps from above lead, what all ways to there
 * agree on is known; where one from below does, only what is in registers that calls preserve and
 * that the function writes once. "size ? size : 1", which many
 * wrappers of malloc() ask for, counts as the size. Code that was not optimized keeps parameters
 * and variables in its frame: what a place there gets from the only instruction that writes it, is
 * known. A constant may have been added to a parameter or to a call's result, as wrappers do that
 * put a header before what they give; and two parameters may have been multiplied.
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/program/disassembler.h"

/* Facts about the number in a register. */
struct number {
	bool is_constant;
	bool is_address;   /* of something in the module, which differs from core to core */
	bool is_word;	   /* that stands at such an address */
	uint8_t parameter; /* that it is, from 1 on; 0: none */
	uint8_t factor;	   /* the other parameter that this one is multiplied by; 0: none */
	uint32_t call;	   /* whose result it is, from 1 on; 0: none */
	uint64_t value;	   /* of a constant; that address; or what was added to the last two */
};

enum { MOST_ARRIVALS = 32 }; /* targets ahead at once */

struct arrival {
	uint64_t address; /* 0: none */
	struct number registers[MOST_UNWOUND];
};

/* A place in the frame, by the frame pointer. */
struct frame_place {
	int64_t offset;
	uint32_t writes; /* instructions that write it, or take its address */
	struct number number;
};

enum { MOST_FRAME_PLACES = 32 };

/* The first two are set by the caller, who releases the targets. */
struct numbers {
	const struct arch *arch;
	struct disassembler *disassembler; /* at the instruction that is read */
	uint64_t start;
	ARRAY(uint8_t) targets;			/* for each byte: from where jumps lead there */
	struct arrival arrivals[MOST_ARRIVALS]; /* of jumps that were read */
	bool is_unreached;			/* from the instruction before */
	bool may_be_padding;			/* it is, and no jump that is known leads to it */
	bool has_frame;				/* the frame pointer is one */
	uint8_t writes[MOST_UNWOUND]; /* instructions that write the register, but to restore it */
	uint32_t call; /* the number of the call that is read, set by the caller; 0: none */
	size_t place_count;
	struct frame_place places[MOST_FRAME_PLACES]; /* the first that are written */
	struct number registers[MOST_UNWOUND];	      /* by their DWARF numbers */
};

/* Goes over all code at address once. Parameters are known where the function is entered. */
struct error *numbers_begin(struct numbers *numbers, const uint8_t *code, uint64_t address,
			    size_t size, bool is_entry);

/* Before an instruction of that code is read, and behind it. */
void numbers_arrive(struct numbers *numbers, uint64_t address);
void numbers_read(struct numbers *numbers);

/*
 * True if the operand of an instruction is in a module, judged before the instruction is read; sets
 * its address.
 */
bool numbers_place(const struct numbers *numbers, const cs_x86_op *operand, uint64_t *ret);
