/*
 * From a function to its caller, by the module's .eh_frame, which stripped modules have, too. No
 * names, no debug information, no session of libdwfl: this is for what must be known of any dump.
 */
#ifndef ANALYZER_PROGRAM_CALL_FRAMES_H
#define ANALYZER_PROGRAM_CALL_FRAMES_H

#include "analyzer/program/program.h"

struct call_frame {
	/* As a function left them, by their DWARF numbers; 0 where not known. */
	uint64_t registers[MOST_UNWOUND];
	uint64_t instruction, stack_pointer;
	/* The next instruction; otherwise where the function called. */
	bool exact;
};

enum call_step {
	CALL_UNKNOWN,	/* the module does not tell */
	CALL_OUTERMOST, /* nothing called it */
	CALL_RETURNS,	/* the frame is that of the caller now */
};

/* registers are a thread's, in the order of arch's table. */
struct call_frame call_frame_of(const struct arch *arch, const uint64_t *registers);

/* An address in the function that the frame is of. */
uint64_t call_frame_place(const struct call_frame *frame);

/* The frame is of a function of module. */
enum call_step call_frame_return(const struct image *image, const struct module *module,
				 struct call_frame *frame);

#endif
