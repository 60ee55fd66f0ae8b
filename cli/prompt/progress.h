/*
 * One line of the terminal that says what the program is doing, rewritten in place:
 *
 *	finding references: 43 %, 2 s left
 *
 * It shows up only when a command takes longer than half a second, and is gone before anything else
 * is written.
 */
#pragma once

#include "analyzer/base/progress.h"

#include <stdio.h>

/* Zeroed, it shows nothing. */
struct progress_line {
	struct progress progress;  /* handed to the analysis */
	FILE *terminal;		   /* borrowed; NULL: there is none */
	_Atomic int64_t next_show; /* milliseconds; in future: not yet */
	atomic_flag writing;

	/* Used by the one thread that writes. */
	const char *task;
	uint64_t total;
	int64_t task_start; /* when it was seen first, and how far it was */
	uint64_t task_first;
	bool visible;
};

/* file is where to write to, if that is a terminal; NULL: nothing is shown. */
void progress_line_init(struct progress_line *line, FILE *file);

/* A command begins: nothing is shown for a while. */
void progress_line_begin(struct progress_line *line);

/* Take the line away; it may come back. Not while loops run elsewhere. */
void progress_line_clear(struct progress_line *line);

/* Take it away until the next command begins: others write there now. */
void progress_line_stop(struct progress_line *line);
