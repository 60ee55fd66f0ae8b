/*
 * Interpreters that give the memory of their objects back to the system before the process ends.
 *
 * Blocks of malloc that only such objects hold stay behind. After that, nobody can tell them from
 * blocks that were lost. So the process is looked into right before: when it is about to unmap the
 * first page of objects within the interpreter's last function. Nothing runs after that but exit().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Names in the table of dynamic symbols. */
struct teardown {
	const char *function; /* that unmaps the pages; NULL: none does */
	/*
	 * A function that the interpreter's own program calls or defines; no program that embeds it
	 * does, because such a program may go on for long.
	 */
	const char *program;
};

/* Bytes of a page of objects, as interpreters have them; the filter hands these to the tracer. */
enum { TEARDOWN_PAGE_1 = 1 << 14, TEARDOWN_PAGE_2 = 1 << 16 };

/* The function's place in a process; zeroed for a new program. */
struct teardown_place {
	bool looked_for;
	uint64_t start, end;
};

/* True if the thread, about to unmap a page, runs one of these functions. */
bool teardown_begins(pid_t process, pid_t thread, const struct teardown *teardowns,
		     struct teardown_place *place);
