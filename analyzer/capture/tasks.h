/*
 * The processes that are traced, and their threads.
 */
#ifndef ANALYZER_CAPTURE_TASKS_H
#define ANALYZER_CAPTURE_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One thread. */
struct task {
	pid_t id;
	pid_t process;
	bool met;     /* was told which stops are wanted of it */
	bool stopped; /* and kept so, until its process was captured */
	bool exiting; /* was let go to its end: has no memory any more */
	int status;   /* of waitpid(), why it stopped */
	/* its stack for signals, as the program set it; 0: none */
	uint64_t signal_stack, signal_stack_size;
};

enum process_state {
	PROCESS_RUNNING,
	PROCESS_GATHERING, /* is about to end: its threads are being stopped */
	PROCESS_ENDING,	   /* was seen to; nothing is to be done any more */
};

struct traced_process {
	pid_t id;
	enum process_state state;
	int signal;	 /* that it is about to die of, or 0 */
	pid_t taker;	 /* the thread that ends it */
	double deadline; /* until when threads may take to stop */
};

struct tasks {
	struct task *tasks;
	size_t count;
	struct traced_process *processes;
	size_t process_count;
};

void tasks_deinit(struct tasks *tasks);

struct task *tasks_find(struct tasks *tasks, pid_t id);
struct traced_process *tasks_find_process(struct tasks *tasks, pid_t id);

/* The task, known from now on; NULL: it is gone, or memory is short. */
struct task *tasks_add(struct tasks *tasks, pid_t id);

/* The same of a process's first thread, which has its number. */
struct task *tasks_add_process(struct tasks *tasks, pid_t id);

/* The thread has ended; with the leader, the process has. */
void tasks_remove(struct tasks *tasks, pid_t id);

/* How many threads of the process are alive, or only those not stopped. */
size_t tasks_alive(const struct tasks *tasks, pid_t process);
size_t tasks_on_the_run(const struct tasks *tasks, pid_t process);

#endif
