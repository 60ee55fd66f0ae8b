/*
 * What an io_uring holds: requests that are submitted and did not end, what was completed and not
 * taken yet, and registered buffers.
 *
 * Of a request in flight the kernel tells nothing. But what it was made from stands in the ring's
 * array of requests until that slot is used again.
 */
#ifndef ANALYZER_CAPTURE_HELD_RING_H
#define ANALYZER_CAPTURE_HELD_RING_H

#include "analyzer/capture/held.h"

#define RING_PATH "anon_inode:[io_uring]"

/* The values, as they are found. */
struct held_list {
	pid_t process;
	const struct memory_map *map;
	const struct source *source;
	struct held_values values;
};

/* Keep the value, if it can be an address. */
struct error *held_add(struct held_list *list, struct held_value value);

/* What is behind that name at the start of the line, blanks before it; NULL. */
const char *held_field(const char *line, const char *name);
const char *held_next_line(const char *line);

/* text: of /proc/PID/fdinfo/FILE. */
struct error *held_read_ring(struct held_list *list, uint32_t file, const char *text);

#endif
