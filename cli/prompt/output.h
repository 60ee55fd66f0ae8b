/*
 * The destination of a command's output: standard output, a file, or the standard input of a shell
 * command.
 *
 * On a terminal, a pager may stand in between, as with git: then it is such a shell command.
 *
 * The shell command is started by the first thing that is written, so that a pager does not take
 * the terminal while there is nothing to see yet.
 */
#pragma once

#include "cli/prompt/lexer.h"

#include <stdatomic.h>
#include <stdio.h>
#include <sys/types.h>

struct output {
	FILE *stream; /* to write to */
	enum destination destination;
	const char *target;   /* borrowed */
	struct output *outer; /* that of the script around it, or NULL */
	int fd;		      /* -1: the shell was not started yet */
	pid_t shell;
	FILE *into; /* written to instead of fd; borrowed; or NULL */
	/* Called before each write; may write to standard error. */
	void (*before)(void *data);
	void *data;
	atomic_bool *interrupted; /* once set, what is written is dropped */
	int failure;		  /* errno of the first write that failed */
	bool within_line;	  /* the last write ended so */
	bool dropped;		  /* there is nothing to write: start no shell for it */
	bool pages;		  /* the shell command is a pager, whose terminal is the output's */
};

/*
 * A file is made for its owner only, for memory holds secrets; one that exists is overwritten, but
 * not through a symbolic link, nor if it is the file named by never (the dump; may be NULL).
 * Destination, target, outer, before, data and interrupted are set by the caller. The struct must
 * stay where it is.
 */
struct error *output_open(struct output *output, const char *never);

/* Fail if path is the file named by never, which must not be replaced. */
struct error *output_check_target(const char *path, const char *never);

/*
 * True if the reader of the output closed it. Then interrupted was set, to stop the work; the
 * function that opened the output resets it.
 */
bool output_unwanted(const struct output *output);

/*
 * Have the output paged if it goes to the terminal of a person: by $PAGER, or less, which ends by
 * itself where all fits the screen. To be called before output_open().
 */
void output_page(struct output *output);

/* Write what is left, wait for the shell, and say what could not be written. */
struct error *output_close(struct output *output);

/* True if the output ends up on a terminal. */
bool output_is_terminal(const struct output *output);

/* The width of that terminal, in characters; 0 if unknown, or if there is none. */
size_t output_width(const struct output *output);
