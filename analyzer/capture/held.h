/*
 * Addresses that the kernel holds for a stopped process. The program passed them to the kernel, and
 * may keep them nowhere else.
 *
 *	signal stacks	as the tracer saw them being set
 *	signals		that are pending, by ptrace(2)
 *	timers		/proc/PID/timers
 *	epoll		/proc/PID/fdinfo
 *	io_uring	/proc/PID/fdinfo, and the requests in the ring's memory
 *
 * Only what can be an address in writable memory is kept.
 *
 * An io_uring holds requests that are submitted and did not end, completions that were not taken
 * yet, and registered buffers. Of a request in flight the kernel tells nothing, but what it was
 *made from stands in the ring's array of requests until that slot is used again.
 */
#pragma once

#include "analyzer/capture/source.h"
#include "analyzer/capture/threads.h"
#include "analyzer/image/own_notes.h"

struct held_values {
	uint64_t sought; /* a bit for each kind that could be looked for */
	struct held_value *values;
	size_t count;
};

#define RING_PATH "anon_inode:[io_uring]"

/* The values, as they are found. */
struct held_list {
	pid_t process;
	const struct memory_map *map;
	const struct source *source;
	struct held_values values;
};

/* Read the addresses of a ring; text is that of /proc/PID/fdinfo/FILE. */
struct error *held_read_ring(struct held_list *list, uint32_t file, const char *text);

struct error *held_read(const struct held_process *held, const struct memory_map *map,
			const struct source *source, struct held_values *ret);
void held_deinit(struct held_values *values);
DEFINE_DEINIT(held_deinit, struct held_values)
