/*
 * Events that wake `heapcore watch` before its time: a signal, the end of the process, and what the
 * kernel tells of a control group: memory.events and memory.pressure of version 2, thresholds of
 * version
 * 1. None of them is needed: use is read a few times a second anyway.
 */
#pragma once

#include "analyzer/base/error.h"
#include "analyzer/base/group.h"

#include <stdbool.h>
#include <stdint.h>

struct events {
	int signals, end; /* end is borrowed */
	int changes;	  /* inotify of memory.events */
	int pressure;
	int threshold, use; /* an event of version 1, and the file that it is of */
	char folder[GROUP_PATH_SIZE];
	bool is_old;
	uint64_t kills; /* for want of memory, when listening began */
};

#define NO_EVENTS                                                                         \
	(struct events)                                                                   \
	{                                                                                 \
		.signals = -1, .end = -1, .changes = -1, .pressure = -1, .threshold = -1, \
		.use = -1                                                                 \
	}

struct happened {
	bool asked; /* SIGUSR1 */
	bool pressed;
};

/* Catch SIGUSR1; end is a file that can be read once the process has ended, or -1. */
struct error *events_open(struct events *events, int end);
void events_close(struct events *events);

/* Listen to the group as far as it tells anything; use is in bytes. */
void events_listen(struct events *events, const struct group_limit *limit, uint64_t use);
void events_forget(struct events *events);

/* Wait until something happens, for that many milliseconds at most. */
void events_await(struct events *events, int most, struct happened *ret);

/* True if the kernel killed a process of the group for want of memory meanwhile. */
bool events_killed(const struct events *events);
