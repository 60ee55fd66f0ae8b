/*
 * Guesses which blocks are alternate signal stacks, in cores that do not list these: only the
 * kernel may have the pointer.
 *
 * It is blocks that nothing leads to and nothing refers to, not even other lost ones, of the size
 * that <signal.h> calls SIGSTKSZ or sysconf() says, no more of them than there are threads, in a
 * program that calls sigaltstack().
 */
#pragma once

#include "analyzer/graph/graph.h"
#include "analyzer/program/program.h"

struct signal_stacks_input {
	const struct image *image;
	const struct program *program;
	const struct allocation_index *index;
	const struct graph *graph;
	const struct bitmap *unreachable;
	struct memory_account *account;
};

/* Put them into ret, which has no words if there are none. */
struct error *signal_stacks_guess(const struct signal_stacks_input *input, struct bitmap *ret);
