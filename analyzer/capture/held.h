/*
 * What the kernel holds for a process that stands still: addresses that the program handed over,
 * and may have kept nowhere else.
 *
 *	signal stacks	as the tracer saw them being set
 *	signals		that are pending, by ptrace(2)
 *	timers		/proc/PID/timers
 *	epoll		/proc/PID/fdinfo
 *	io_uring	/proc/PID/fdinfo, and the requests in the ring's memory
 *
 * Only what can be an address in writable memory is kept.
 */
#ifndef ANALYZER_CAPTURE_HELD_H
#define ANALYZER_CAPTURE_HELD_H

#include "analyzer/capture/source.h"
#include "analyzer/capture/threads.h"
#include "analyzer/image/own_notes.h"

struct held_values {
	uint64_t sought; /* a bit for each kind that could be looked for */
	struct held_value *values;
	size_t count;
};

struct error *held_read(const struct held_process *held, const struct memory_map *map,
			const struct source *source, struct held_values *ret);
void held_deinit(struct held_values *values);
DEFINE_DEINIT(held_deinit, struct held_values)

#endif
