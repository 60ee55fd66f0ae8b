/*
 * Targets that damage a program's file, with the right build-id still: it is below a folder that
 * stands for the core's machine, which goes when the target ends.
 */
#pragma once

#include "tests/fuzz/edits.h"

/* Make the folder. The program was /tmp/heapcore-fuzz/name when the core was made. */
void edited_program_init(const char *name);

/* Call add with each byte of a section that the file has; it adds places to the file. */
void edited_program_places(struct edited_file *file,
			   void (*add)(struct edited_file *file, const char *section,
				       uint64_t place));

/* Make the edits, put the file where the program was, run the lines on the core, undo them. */
void edited_program_ask(struct edited_file *file, const uint8_t *edits, size_t size,
			const char *core, const char *const *lines);
