/*
 * Questions that are asked of each core that is stored, numbers for scrapers, and who is called.
 *
 * The questions are asked by a child: one that is short of memory, or damaged by a hostile core,
 * takes no answer with it that was written before.
 */
#pragma once

#include "analyzer/program/debug/debug.h"
#include "cli/prompt/session.h"
#include "cli/watch/shelf.h"

struct answers_options {
	const char *command; /* for the shell, when all is written; or NULL */
	const char *metrics; /* the file; NULL: DIR/metrics.prom */
	struct debug_options debug;
	size_t maximum_memory; /* bytes; 0: the machine's */
	bool no_content;
	bool slim;	   /* in the end, only a core without contents stays, or none */
	bool prefers_slim; /* such a one stays where it can be made */
};

struct stored_process {
	pid_t id;
	const char *name;
	const char *cause; /* why it was looked into */
};

/* Write all answers about the core in the folder, publish it, and call the command. */
struct error *answers_write(struct session *session, const struct answers_options *options,
			    const struct stored *stored, const struct stored_process *process);
