/*
 * A program that is run until its end, and held there: all memory and all threads are still as they
 * were when it decided to end.
 *
 * Ways to end, and where the process is held:
 *
 *	exit(), _exit(), return	  exit_group, by the filter
 *	a signal that kills	  when it is delivered to a thread
 *	SIGKILL			  each thread at its exit event
 *	the last thread ends	  at its exit event
 *	an interpreter gives its
 *	objects' pages back	  at the first munmap of one, by the filter; see teardown.h
 *
 * The filter is one of seccomp(2), which lets the program run at full speed and hands it to the
 * tracer at exit_group, when all threads still live; at sigaltstack, which a thread calls once
 * or twice, for nobody can ask the kernel later where a stack for signals is; and at munmap of a
 * size that is a page of an interpreter's objects. Without a tracer, these calls fail with ENOSYS.
 *
 * All threads, children and children's children are traced, for the filter is theirs as well. What
 * is not to be looked into only stops for an instant when a thread or a process begins, at
 * exit_group, and at signals.
 *
 * What the one thread that ends a process began is completed by gathering: the other threads are
 * stopped one by one, as they come, and kept until all are.
 */
#pragma once

#include "analyzer/capture/teardown.h"
#include "analyzer/capture/threads.h"

#include <signal.h>
#include <stdbool.h>

/*
 * Install the filter in this process, for it and all its children to come. *ret_weaker says that
 * set-user-id programs lose that right by it: without privileges, the kernel demands so. Returns an
 * errno. Calls nothing that allocates.
 */
int filter_install(bool *ret_weaker);

/* Callbacks of the tracer. data is the caller's. */
struct tracer_events {
	/* The process ends, of a signal or by itself (0), and stands still. */
	void (*ending)(void *data, const struct held_process *held, int signal);
	/* A program was started; tracing may take its rights, or be impossible. */
	void (*started)(void *data, pid_t process, const char *path);
	/* The first process has ended, but not this one, whose end is waited for as well. */
	void (*left)(void *data, pid_t process);
	/*
	 * The first process has ended, with that status of waitpid(), and all that are followed;
	 * others are still traced, and unseen ones have ended without a core.
	 */
	void (*ended)(void *data, int status, size_t others, size_t unseen);
	void *data;
};

struct tracer_options {
	pid_t program;	   /* a child of this process, which waits for its exec() */
	bool follow;	   /* also look into its children */
	bool all_programs; /* tell of those started by children in any case */
	/* Ends of interpreters that come before those of processes; one without names ends them. */
	const struct teardown *teardowns;
};

/* Begin to trace the program. */
struct error *tracer_seize(const struct tracer_options *options);

/* Trace until all processes are over. SIGCHLD is blocked, and by default. */
struct error *tracer_run(const struct tracer_options *options, const struct tracer_events *events);
