/*
 * From a function to its caller, by the module's .eh_frame, which stripped modules have, too. No
 * names, no debug information, no session of libdwfl: this is for what must be known of any dump.
 */
#ifndef ANALYZER_PROGRAM_CALL_FRAMES_H
#define ANALYZER_PROGRAM_CALL_FRAMES_H

#include "analyzer/program/program.h"

/* Registers as a function left them, by their DWARF numbers. */
enum call_register {
	CALL_RBX = 3,
	CALL_RBP = 6,
	CALL_RSP = 7,
	CALL_R12 = 12,
	CALL_R13 = 13,
	CALL_R14 = 14,
	CALL_R15 = 15,
	CALL_RIP = 16,
	CALL_REGISTERS
};

struct call_frame {
	uint64_t registers[CALL_REGISTERS]; /* 0 where not known */
	/* The next instruction; otherwise where the function called. */
	bool exact;
};

enum call_step {
	CALL_UNKNOWN,	/* the module does not tell */
	CALL_OUTERMOST, /* nothing called it */
	CALL_RETURNS,	/* the frame is that of the caller now */
};

struct call_frame call_frame_of(const struct user_regs_struct *registers);

/* An address in the function that the frame is of. */
uint64_t call_frame_place(const struct call_frame *frame);

/* The frame is of a function of module. */
enum call_step call_frame_return(const struct image *image, const struct module *module,
				 struct call_frame *frame);

#endif
