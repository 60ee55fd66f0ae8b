/*
 * A program that is run until its end, and held there: all memory and all threads are still as they
 * were when it decided to end.
 *
 * Ways to end, and where the process is held:
 *
 *	exit(), _exit(), return	  exit_group, by the filter (filter.h)
 *	a signal that kills	  when it is delivered to a thread
 *	SIGKILL			  each thread at its exit event
 *	the last thread ends	  at its exit event
 *
 * All threads, children and children's children are traced, for the filter is theirs as well. What
 * is not to be looked into only stops for an instant when a thread or a process begins, at
 * exit_group, and at signals.
 *
 * What the one thread that ends a process began is completed by gathering: the other threads are
 * stopped one by one, as they come, and kept until all are.
 */
#ifndef ANALYZER_CAPTURE_TRACER_H
#define ANALYZER_CAPTURE_TRACER_H

#include "analyzer/capture/threads.h"

#include <signal.h>
#include <stdbool.h>

/* What the tracer tells. data is the caller's. */
struct tracer_events {
	/* The process ends, of a signal or by itself (0), and stands still. */
	void (*ending)(void *data, const struct held_process *held, int signal);
	/* A program was started that the tracing changes, or cannot look into.
	 */
	void (*started)(void *data, pid_t process, const char *path);
	/* The first process is over, with that status of waitpid(); others are
	 * still traced, and unseen ones have ended without being looked into.
	 */
	void (*ended)(void *data, int status, size_t others, size_t unseen);
	void *data;
};

struct tracer_options {
	pid_t program;	   /* a child of this process, which waits for its exec() */
	bool follow;	   /* also look into its children */
	bool all_programs; /* tell of those started by children in any case */
};

/* Begin to trace the program. */
struct error *tracer_seize(const struct tracer_options *options);

/* Trace until all processes are over. SIGCHLD is blocked, and by default. */
struct error *tracer_run(const struct tracer_options *options, const struct tracer_events *events);

#endif
