/*
 * The output of a session goes to streams of the caller instead of to standard output and standard
 * error, for front ends that answer by messages of their own.
 */
#pragma once

#include "cli/prompt/lexer.h"
#include "cli/prompt/reports.h"

/*
 * Set the session up for a front end that answers: notes are part of answers, and nothing has a
 * colour. Completes debug, which the session borrows. memory is the most to be used beside the
 * core, in bytes; 0: the machine's.
 */
void captured_init(struct session *session, struct debug_options *debug, size_t memory,
		   bool no_content);

/* Must stay where it is while commands run. Streams are borrowed. */
struct captured {
	struct output output;
	struct report_file rows;
};

/* Begin: messages and the output in the session's format, and rows as JSON; rows may be NULL. */
void captured_begin(struct captured *captured, struct session *session, FILE *output, FILE *rows,
		    FILE *messages);

/* End it; whether what ran in between went well. A gate that found something did. */
bool captured_end(struct session *session);
