/*
 * Texts are those of the Linux kernel's fs/eventpoll.c (ep_show_fdinfo()), io_uring/fdinfo.c and
 * fs/proc/base.c (show_timer()).
 */
#include "analyzer/capture/held.h"

#include "analyzer/base/list.h"

#include <dirent.h>
#include <elf.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>

/* False for memory that the program cannot write to, which has no allocations. */
static bool may_be_address(const struct memory_map *map, uint64_t value)
{
	size_t low = LIST_ABOVE(map->areas, map->count, end, value);

	return low < map->count && map->areas[low].start <= value &&
	       (map->areas[low].rights & PF_W);
}

static struct error *keep_value(struct held_list *list, struct held_value value)
{
	struct held_values *values = &list->values;

	if (value.kind < HELD_KINDS && !may_be_address(list->map, value.value))
		return NULL;
	return LIST_APPEND(values->values, values->count, value);
}

static const char *skip_name(const char *line, const char *name)
{
	size_t size = strlen(name);

	line += strspn(line, " ");
	return strncmp(line, name, size) == 0 ? line + size : NULL;
}

static const char *next_line(const char *line)
{
	const char *end = strchr(line, '\n');

	return end ? end + 1 : line + strlen(line);
}

/* "tfd:        7 events:       19 data:     55d0c0ffee10  pos:0 ..." */
static struct error *read_epoll(struct held_list *list, uint32_t file, const char *text)
{
	for (; *text; text = next_line(text)) {
		const char *watched = skip_name(text, "tfd:");
		char *next;
		struct held_value value = { .kind = HELD_EPOLL, .holder = file };

		if (!watched)
			continue;
		value.detail = strtoull(watched, &next, 10);
		next += strspn(next, " ");
		if (strncmp(next, "events:", 7) != 0)
			continue;
		strtoull(next + 7, &next, 16);
		watched = skip_name(next, "data:");
		if (!watched)
			continue;
		value.value = strtoull(watched, NULL, 16);
		TRY(keep_value(list, value));
	}
	return NULL;
}

/* "ID: 0", and then "signal: 10/000055d0c0ffee10". */
static struct error *read_timers(struct held_list *list, const char *text)
{
	struct held_value value = { .kind = HELD_TIMER };

	for (; *text; text = next_line(text)) {
		const char *number = skip_name(text, "ID:");
		const char *signal = skip_name(text, "signal:");
		char *next;

		if (number)
			value.detail = strtoull(number, NULL, 10);
		if (!signal)
			continue;
		strtoull(signal, &next, 10);
		if (*next != '/')
			continue;
		value.value = strtoull(next + 1, NULL, 16);
		TRY(keep_value(list, value));
	}
	return NULL;
}

/* If the file cannot be read, that kind of value counts as not sought. */
static struct error *read_text(struct held_list *list, const char *name, char **ret)
{
	size_t size;
	struct error *error = process_read(list->process, name, ret, &size);

	if (error && error != &error_no_memory) {
		error_destroy(error);
		error = NULL;
		*ret = NULL;
	}
	return error;
}

static struct error *find_timers(struct held_list *list)
{
	_cleanup_(free) char *text = NULL;

	TRY(read_text(list, "timers", &text));
	if (!text)
		return NULL;
	list->values.sought |= 1 << HELD_TIMER;
	return read_timers(list, text);
}

/* State of a ring, as its fdinfo describes it. */
struct ring {
	uint32_t file;
	uint64_t inode;
	bool has_counts;	/* the kernel is of Linux 5.19 or later */
	uint32_t taken;		/* requests that the kernel took, in all */
	uint32_t completed;	/* completions that it made, in all */
	uint32_t slots;		/* of the array of requests */
	bool has_polls;		/* requests that wait for a file are there */
	struct held_list *list; /* borrowed */
};

static struct error *keep_ring(const struct ring *ring, uint64_t value)
{
	return keep_value(
		ring->list,
		(struct held_value){ .kind = HELD_RING, .holder = ring->file, .value = value });
}

/* A number of the text, of any base, where the name stands in the line. */
static bool find_number(const char *line, const char *name, int base, uint64_t *ret)
{
	const char *end = next_line(line);
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
	const char *rest;
	uint64_t value;
	char *next;

	if (find_number(line, "user_data:", 10, &value) ||
	    find_number(line, "user_data=", 10, &value))
		TRY(keep_ring(ring, value));
	if (find_number(line, "addr:0x", 16, &value))
		TRY(keep_ring(ring, value));
	if (*line == ' ') {
		strtoull(line, &next, 10);
		rest = skip_name(next, ": 0x");
		if (rest)
			TRY(keep_ring(ring, strtoull(rest, NULL, 16)));
	}
	ring->has_polls |= skip_name(line, "op=") != NULL;
	return NULL;
}

static struct error *read_ring_text(struct ring *ring, const char *text)
{
	static const char taken[] = "CachedSqHead:";

	for (; *text; text = next_line(text)) {
		uint64_t number;

		if (skip_name(text, taken) && find_number(text, taken, 10, &number)) {
			ring->taken = (uint32_t)number;
			ring->has_counts = true;
		} else if (find_number(text, "CachedCqTail:", 10, &number)) {
			ring->completed = (uint32_t)number;
		} else if (find_number(text, "SqMask:", 16, &number)) {
			ring->slots = (uint32_t)number + 1;
		} else if (find_number(text, "ino:", 10, &number)) {
			ring->inode = number;
		} else {
			TRY(read_line(ring, text));
		}
	}
	return NULL;
}

/* The area where the ring's array of requests is mapped, or NULL. */
static const struct memory_area *find_array(const struct ring *ring)
{
	const struct memory_map *map = ring->list->map;

	list_for_each(area, map->areas, map->count) {
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

	for (uint64_t place = area->start; place < area->end; place += sizeof(requests)) {
		uint64_t size = source_read(ring->list->source, place, requests, sizeof(requests));

		for (size_t i = 0; i < size / sizeof(*requests); i++) {
			TRY(keep_ring(ring, requests[i].user_data));
			TRY(keep_ring(ring, requests[i].addr));
			TRY(keep_ring(ring, requests[i].off));
		}
	}
	return NULL;
}

/*
 * True if requests may be in flight. A request can have several completions, so equal counts alone
 * do not prove that none is.
 */
static bool is_busy(const struct ring *ring)
{
	return !ring->has_counts || ring->taken != ring->completed || ring->has_polls;
}

struct error *held_read_ring(struct held_list *list, uint32_t file, const char *text)
{
	struct ring ring = { .file = file, .list = list };
	const struct memory_area *array;

	TRY(read_ring_text(&ring, text));
	if (!is_busy(&ring))
		return NULL;
	/* Without, the array is memory of the program, which is searched. */
	array = find_array(&ring);
	if (array && !array->device)
		TRY(read_requests(&ring, array));
	if (ring.has_counts && ring.taken <= ring.slots && !(array && array->device))
		return NULL;
	return keep_value(list, (struct held_value){ .kind = HELD_UNTOLD, .holder = file });
}

/* folder: that of the process's files. */
static struct error *find_file(struct held_list *list, int folder, const char *number)
{
	_cleanup_(free) char *text = NULL;
	char path[64], link[64];
	bool is_epoll, is_ring;
	uint32_t file = (uint32_t)strtoul(number, NULL, 10);
	ssize_t size;

	size = readlinkat(folder, number, link, sizeof(link) - 1);
	link[size < 0 ? 0 : size] = '\0';
	is_epoll = strcmp(link, "anon_inode:[eventpoll]") == 0;
	is_ring = strcmp(link, RING_PATH) == 0;
	if (!is_epoll && !is_ring)
		return NULL;
	snprintf(path, sizeof(path), "fdinfo/%u", file);
	TRY(read_text(list, path, &text));
	if (!text)
		return NULL;
	return is_epoll ? read_epoll(list, file, text) : held_read_ring(list, file, text);
}

static struct error *find_files(struct held_list *list)
{
	const struct dirent *entry;
	struct error *error = NULL;
	char path[64];
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", list->process);
	folder = opendir(path);
	if (!folder)
		return NULL;
	list->values.sought |= 1 << HELD_EPOLL | 1 << HELD_RING;
	while (!error && (entry = readdir(folder)))
		if (entry->d_name[0] != '.')
			error = find_file(list, dirfd(folder), entry->d_name);
	closedir(folder);
	return error;
}

/* The queue of the thread, or that of the process, with flags. */
static struct error *read_queue(struct held_list *list, pid_t thread, uint32_t flags)
{
	enum { MOST = 32 };
	struct __ptrace_peeksiginfo_args which = { .flags = flags, .nr = MOST };
	struct error *error = NULL;
	siginfo_t signals[MOST];
	long count;

	do {
		count = ptrace(PTRACE_PEEKSIGINFO, thread, &which, signals);
		for (long i = 0; i < count && !error; i++)
			error = keep_value(list, (struct held_value){
							 .kind = HELD_SIGNAL,
							 .value = (uint64_t)signals[i].si_ptr,
							 .holder = flags ? 0 : (uint32_t)thread,
							 .detail = (uint64_t)signals[i].si_signo,
						 });
		which.off += MOST;
	} while (count == MOST && !error);
	return error;
}

static struct error *find_signals(struct held_list *list, const struct held_process *held)
{
	bool shared = false;

	list->values.sought |= 1 << HELD_SIGNAL;
	list_for_each(thread, held->threads, held->count) {
		if (!thread->stopped)
			continue;
		TRY(read_queue(list, thread->id, 0));
		if (!shared)
			TRY(read_queue(list, thread->id, PTRACE_PEEKSIGINFO_SHARED));
		shared = true;
	}
	return NULL;
}

static struct error *find_stacks(struct held_list *list, const struct held_process *held)
{
	if (!held->knows_signal_stacks)
		return NULL;
	list->values.sought |= 1 << HELD_SIGNAL_STACK;
	for (size_t i = 0; i < held->count; i++)
		TRY(keep_value(list, (struct held_value){
					     .kind = HELD_SIGNAL_STACK,
					     .holder = (uint32_t)held->threads[i].id,
					     .value = held->threads[i].signal_stack,
				     }));
	return NULL;
}

struct error *held_read(const struct held_process *held, const struct memory_map *map,
			const struct source *source, struct held_values *ret)
{
	struct held_list list = {
		.process = held->threads[0].id,
		.map = map,
		.source = source,
	};
	struct error *error = find_stacks(&list, held);

	if (!error)
		error = find_signals(&list, held);
	if (!error)
		error = find_timers(&list);
	if (!error)
		error = find_files(&list);
	if (error)
		held_deinit(&list.values);
	else
		*ret = list.values;
	return error;
}

void held_deinit(struct held_values *values)
{
	free(values->values);
}
