#include "analyzer/capture/held_ring.h"

#include <linux/io_uring.h>
#include <string.h>

/* What the text says of the ring. */
struct ring {
	uint32_t file;
	uint64_t inode;
	bool told;		/* the kernel is of Linux 5.19 or later */
	uint32_t taken;		/* requests that the kernel took, in all */
	uint32_t completed;	/* completions that it made, in all */
	uint32_t slots;		/* of the array of requests */
	bool has_polls;		/* requests that wait for a file are there */
	struct held_list *list; /* borrowed */
};

static struct error *add(const struct ring *ring, uint64_t value)
{
	return held_add(
		ring->list,
		(struct held_value){ .kind = HELD_RING, .holder = ring->file, .value = value });
}

/* A number of the text, of any base, where the name stands in the line. */
static bool find_number(const char *line, const char *name, int base, uint64_t *ret)
{
	const char *end = held_next_line(line);
	const char *found = strstr(line, name);

	if (!found || found >= end)
		return false;
	*ret = strtoull(found + strlen(name), NULL, base);
	return true;
}

/*
 * Lines of requests not taken yet, of completions, of registered buffers:
 *
 *	1: opcode:READ, fd:4, ..., addr:0x5582113bd0a0, ... user_data:2457
 *	3: user_data:2457, res:1, flags:0
 *	0: 0x55d0c0ffee10/4096
 */
static struct error *read_line(struct ring *ring, const char *line)
{
	struct error *error = NULL;
	const char *rest;
	uint64_t value;
	char *next;

	if (find_number(line, "user_data:", 10, &value) ||
	    find_number(line, "user_data=", 10, &value))
		error = add(ring, value);
	if (!error && find_number(line, "addr:0x", 16, &value))
		error = add(ring, value);
	if (!error && *line == ' ') {
		strtoull(line, &next, 10);
		rest = held_field(next, ": 0x");
		if (rest)
			error = add(ring, strtoull(rest, NULL, 16));
	}
	ring->has_polls |= held_field(line, "op=") != NULL;
	return error;
}

static struct error *read_text(struct ring *ring, const char *text)
{
	static const char taken[] = "CachedSqHead:";
	struct error *error = NULL;

	for (; *text && !error; text = held_next_line(text)) {
		uint64_t number;

		if (held_field(text, taken) && find_number(text, taken, 10, &number)) {
			ring->taken = (uint32_t)number;
			ring->told = true;
		} else if (find_number(text, "CachedCqTail:", 10, &number)) {
			ring->completed = (uint32_t)number;
		} else if (find_number(text, "SqMask:", 16, &number)) {
			ring->slots = (uint32_t)number + 1;
		} else if (find_number(text, "ino:", 10, &number)) {
			ring->inode = number;
		} else {
			error = read_line(ring, text);
		}
	}
	return error;
}

/* Where its array of requests is mapped, or NULL. */
static const struct memory_area *find_array(const struct ring *ring)
{
	const struct memory_map *map = ring->list->map;

	for (size_t i = 0; i < map->count; i++) {
		const struct memory_area *area = &map->areas[i];

		if (area->offset == IORING_OFF_SQES && area->inode == ring->inode &&
		    memory_area_has_path(area, RING_PATH))
			return area;
	}
	return NULL;
}

/* A request may stand for the block that it reads into as well. */
static struct error *read_requests(const struct ring *ring, const struct memory_area *area)
{
	struct io_uring_sqe requests[PAGE / sizeof(struct io_uring_sqe)];
	struct error *error = NULL;

	for (uint64_t place = area->start; place < area->end && !error; place += sizeof(requests)) {
		uint64_t size = source_read(ring->list->source, place, requests, sizeof(requests));

		for (size_t i = 0; i < size / sizeof(*requests) && !error; i++) {
			error = add(ring, requests[i].user_data);
			if (!error)
				error = add(ring, requests[i].addr);
			if (!error)
				error = add(ring, requests[i].off);
		}
	}
	return error;
}

/*
 * Whether requests may be in flight. One can make several completions, so that their number alone
 * does not say that there is none.
 */
static bool is_busy(const struct ring *ring)
{
	return !ring->told || ring->taken != ring->completed || ring->has_polls;
}

struct error *held_read_ring(struct held_list *list, uint32_t file, const char *text)
{
	struct ring ring = { .file = file, .list = list };
	const struct memory_area *array;
	struct error *error = read_text(&ring, text);

	if (error || !is_busy(&ring))
		return error;
	/* Without, the array is memory of the program, which is searched. */
	array = find_array(&ring);
	if (array && !array->device)
		error = read_requests(&ring, array);
	if (error || (ring.told && ring.taken <= ring.slots && !(array && array->device)))
		return error;
	return held_add(list, (struct held_value){ .kind = HELD_UNTOLD, .holder = file });
}
