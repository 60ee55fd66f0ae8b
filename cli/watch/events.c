#include "cli/watch/events.h"

#include "analyzer/base/cleanup.h"
#include "analyzer/base/macros.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>

struct error *events_open(struct events *events, int end)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	events->end = end;
	events->signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	return events->signals < 0 ? error_system("signals") : NULL;
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void events_forget(struct events *events)
{
	close_one(&events->changes);
	close_one(&events->pressure);
	close_one(&events->threshold);
	close_one(&events->use);
}

void events_close(struct events *events)
{
	events_forget(events);
	close_one(&events->signals);
}

static int open_file(const struct events *events, const char *name, int flags)
{
	char path[GROUP_PATH_SIZE + 64];

	snprintf(path, sizeof(path), "%s/%s", events->folder, name);
	return open(path, flags | O_CLOEXEC);
}

/* How often the kernel killed for want of memory in the group. */
static uint64_t read_kills(const struct events *events)
{
	_cleanup_(close) int fd = open_file(
		events, events->is_old ? "memory.oom_control" : "memory.events", O_RDONLY);
	char text[1024] = "\n", *line;

	if (fd < 0 || read(fd, text + 1, sizeof(text) - 2) < 0)
		return 0;
	line = strstr(text, "\noom_kill ");
	return line ? strtoull(line + strlen("\noom_kill "), NULL, 10) : 0;
}

/* The kernel tells when use comes to so many bytes. */
static void set_threshold(struct events *events, uint64_t use)
{
	_cleanup_(close) int control = open_file(events, "cgroup.event_control", O_WRONLY);

	events->use = open_file(events, "memory.usage_in_bytes", O_RDONLY);
	events->threshold = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (control < 0 ||
	    dprintf(control, "%d %d %" PRIu64, events->threshold, events->use, use) < 0)
		close_one(&events->threshold);
}

static void set_pressure(struct events *events)
{
	/* 150 ms of 2 s, the least that may be asked without privileges; with its end, as below. */
	static const char ASKED[] = "some 150000 2000000";

	events->pressure = open_file(events, "memory.pressure", O_RDWR | O_NONBLOCK);
	if (events->pressure >= 0 && write(events->pressure, ASKED, sizeof(ASKED)) < 0)
		close_one(&events->pressure);
}

void events_listen(struct events *events, const struct group_limit *limit, uint64_t use)
{
	char path[GROUP_PATH_SIZE + 64];

	events_forget(events);
	snprintf(events->folder, sizeof(events->folder), "%s", limit->folder);
	events->is_old = limit->is_old;
	events->kills = read_kills(events);
	if (limit->is_old) {
		if (use != UINT64_MAX)
			set_threshold(events, use);
		return;
	}
	set_pressure(events);
	events->changes = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	snprintf(path, sizeof(path), "%s/memory.events", events->folder);
	if (events->changes >= 0 && inotify_add_watch(events->changes, path, IN_MODIFY) < 0)
		close_one(&events->changes);
}

static void take_signals(struct events *events, struct happened *ret)
{
	struct signalfd_siginfo signal;

	while (read(events->signals, &signal, sizeof(signal)) == sizeof(signal))
		ret->asked = true;
}

/* Read all of a file: that it can be read is of interest, not what it says. */
static void drain(int fd)
{
	char told[4096];

	while (fd >= 0 && read(fd, told, sizeof(told)) > 0)
		continue;
}

void events_await(struct events *events, int most, struct happened *ret)
{
	struct pollfd files[] = {
		{ events->signals, POLLIN, 0 },	  { events->end, POLLIN, 0 },
		{ events->changes, POLLIN, 0 },	  { events->pressure, POLLPRI, 0 },
		{ events->threshold, POLLIN, 0 },
	};

	if (poll(files, COUNT_OF(files), most) <= 0)
		return;
	take_signals(events, ret);
	drain(events->changes);
	drain(events->threshold);
	if (files[3].revents & POLLPRI)
		ret->pressed = true;
	else if (files[3].revents)
		close_one(&events->pressure); /* the group is gone */
}

bool events_killed(const struct events *events)
{
	return events->folder[0] && read_kills(events) > events->kills;
}
