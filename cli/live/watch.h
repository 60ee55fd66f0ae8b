/*
 * The process that starts a program for `heapcore run` and traces it.
 *
 *	heapcore ──── watcher ──── the program
 *	  shows what  traces, and	│
 *	  was found   writes cores	its children
 *
 * It is a process of its own because children of the program may outlive it, as daemons do, and
 * then still need their tracer (tracer.h). heapcore itself has gone on then.
 *
 * The watcher tells by messages of a socket.
 */
#pragma once

#include "analyzer/capture/core.h"
#include "analyzer/capture/process.h"

enum { WATCH_TEXT_SIZE = 512 };

enum watch_kind {
	WATCH_STARTED,	/* process is the program's number */
	WATCH_NOTE,	/* text: something to know */
	WATCH_CAPTURED, /* a core of process, which ended of signal or by itself */
	WATCH_LOST,	/* no core of process: text says why */
	WATCH_REFUSED,	/* the program was not started: text says why */
	WATCH_NOT_RUN,	/* it could not be executed: status is an errno */
	WATCH_LEFT,	/* the program has ended, but not this process of it, which is followed */
	WATCH_ENDED,	/* status of the program; others are left, unseen ones have ended */
};

struct watch_message {
	enum watch_kind kind;
	pid_t process;
	char name[PROCESS_NAME_SIZE];
	int signal;
	int status;
	size_t others, unseen;
	struct core_sizes sizes;
	char text[WATCH_TEXT_SIZE];
	int fd; /* of the core, with WATCH_CAPTURED */
};

struct watch_options {
	char **arguments;      /* of the program, its name first */
	const char *core_path; /* NULL: cores are temporary */
	bool portable;	     /* keep in the core what is needed to name things on another machine */
	bool follow;	     /* also take cores of its children */
	const char *preload; /* the recorder's file, or NULL */
	const char *sizes;   /* that it records, see RECORDER_SIZES */
	bool again;	     /* not the first time: nobody sees what it writes */
};

/* False: heapcore was built to read cores only. */
bool watch_is_built(void);

/* Start the watcher, and by it the program. *ret is the socket. */
struct error *watch_start(const struct watch_options *options, int *ret);

/* The next message; false: the watcher has gone, or a signal came (EINTR). */
bool watch_receive(int socket, struct watch_message *ret);

/* The file name for a child's core, to be freed; NULL: memory is short. */
char *watch_core_path(const char *core_path, pid_t process, bool is_program);
