#include "cli/live/watch.h"

#include "analyzer/base/list.h"
#include "analyzer/base/text.h"
#include "analyzer/capture/machine.h"
#include "analyzer/capture/tracer.h"
#include "analyzer/runtimes/runtime.h"
#include "cli/live/copies.h"
#include "cli/live/preload.h"
#include "cli/prompt/machine.h"
#include "cli/prompt/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

/* Steps that the child process reports before it executes the program. */
enum birth_step { BIRTH_WEAKER, BIRTH_NO_FILTER, BIRTH_NO_PROGRAM };

struct birth {
	enum birth_step step;
	int failure; /* an errno */
};

struct watcher {
	const struct watch_options *options;
	struct tracer_options tracer;
	struct progress progress; /* nobody looks at it */
	struct xstate_layout layout;
	uint64_t kept; /* bytes of small cores, which are in memory */
	int socket;
	int births;    /* to read from what the program's process tells */
	bool executed; /* it became the program */
};

/* A message with an fd, unless that is -1. */
static void send_message(int socket, const struct watch_message *message)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec bytes = { (void *)message, sizeof(*message) };
	struct msghdr parts = { .msg_iov = &bytes, .msg_iovlen = 1 };

	if (message->fd >= 0) {
		parts.msg_control = &control;
		parts.msg_controllen = sizeof(control);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &message->fd, sizeof(int));
	}
	while (sendmsg(socket, &parts, MSG_NOSIGNAL) < 0 && errno == EINTR)
		continue;
}

bool watch_receive(int socket, struct watch_message *ret)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec bytes = { ret, sizeof(*ret) };
	struct msghdr parts = {
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	const struct cmsghdr *header;

	errno = 0;
	if (recvmsg(socket, &parts, MSG_CMSG_CLOEXEC) != sizeof(*ret))
		return false;
	header = CMSG_FIRSTHDR(&parts);
	ret->fd = -1;
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(&ret->fd, CMSG_DATA(header), sizeof(int));
	return true;
}

static void send_text(int socket, enum watch_kind kind, pid_t process, const char *text)
{
	struct watch_message message = {
		.kind = kind,
		.process = process,
		.fd = -1,
	};

	snprintf(message.text, sizeof(message.text), "%s", text);
	send_message(socket, &message);
}

char *watch_core_path(const char *core_path, pid_t process, bool is_program)
{
	if (is_program)
		return strdup(core_path);
	return format_text("%s.%d", core_path, process);
}

/* Write the core into the file of options, which is the caller's. */
static struct error *write_core(struct watcher *watcher, const struct held_process *held,
				struct watch_message *message, int fd)
{
	_cleanup_(core_destroy) struct core_writer *core = NULL;
	struct core_options options = {
		.fd = fd,
		.complete = !watcher->options->core_path,
		.portable = watcher->options->portable,
		.progress = &watcher->progress,
		.layout = &watcher->layout,
	};

	TRY(core_create(&options, &core));
	TRY(core_describe(core, held, message->signal));
	TRY(core_copy(core));
	return core_write(core, &message->sizes);
}

static struct error *capture_to_file(struct watcher *watcher, const struct held_process *held,
				     struct watch_message *message)
{
	_cleanup_(output_file_deinit) struct output_file file = { .fd = -1 };
	_cleanup_(free) char *path = watch_core_path(watcher->options->core_path, held->id,
						     held->id == watcher->tracer.program);
	struct error *error;

	TRY_MEMORY(path);
	if (output_file_begin(path, &file) < 0)
		return error_system("%s", path);
	error = write_core(watcher, held, message, file.fd);
	if (error)
		return error_wrap(error, "%s", path);
	message->fd = output_file_complete(&file);
	if (message->fd < 0)
		return error_system("%s", path);
	return NULL;
}

/*
 * A file for a core that is soon gone. Small ones are in memory, up to a limit: file systems take
 * long to make a file where many were deleted just now.
 */
static struct error *open_core(struct watcher *watcher, pid_t process, int *ret)
{
	enum { SMALL = 1 << 22, MOST_KEPT = 1 << 28 };
	uint64_t size = process_status(process, "RssAnon", 10, SMALL) * 1024;
	int fd = size < SMALL && watcher->kept + size < MOST_KEPT
			 ? memfd_create("heapcore", MFD_CLOEXEC)
			 : -1;

	if (fd < 0)
		return copies_open(ret);
	watcher->kept += size;
	*ret = fd;
	return NULL;
}

static struct error *capture(struct watcher *watcher, const struct held_process *held,
			     struct watch_message *message)
{
	if (watcher->options->core_path)
		return capture_to_file(watcher, held, message);
	TRY(open_core(watcher, held->threads[0].id, &message->fd));
	return write_core(watcher, held, message, message->fd);
}

static void on_ending(void *data, const struct held_process *held, int signal)
{
	struct watcher *watcher = data;
	struct watch_message message = {
		.kind = WATCH_CAPTURED,
		.process = held->id,
		.signal = signal,
		.fd = -1,
	};
	struct error *error;

	/* It could not become the program. */
	if (!watcher->executed)
		return;
	process_name(held->threads[0].id, message.name);
	error = capture(watcher, held, &message);
	if (error) {
		send_text(watcher->socket, WATCH_LOST, held->id, error_message(error));
		error_destroy(error);
	} else {
		send_message(watcher->socket, &message);
	}
	if (message.fd >= 0)
		close(message.fd);
}

/* All that the program's process told so far. */
static bool read_birth(struct watcher *watcher, struct birth *ret)
{
	bool failed = false;
	struct birth birth;

	while (read(watcher->births, &birth, sizeof(birth)) == sizeof(birth)) {
		if (birth.step == BIRTH_WEAKER) {
			watcher->tracer.all_programs = true;
			continue;
		}
		*ret = birth;
		failed = true;
	}
	return failed;
}

/* True if executing the file would raise its rights, as set-user-ID does. */
static bool has_rights(pid_t process)
{
	struct stat status;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", process);
	if (stat(path, &status) < 0)
		return false;
	return ((status.st_mode & S_ISUID) && status.st_uid != geteuid()) ||
	       ((status.st_mode & S_ISGID) && status.st_gid != getegid()) ||
	       getxattr(path, "security.capability", NULL, 0) > 0;
}

static void on_started(void *data, pid_t process, const char *path)
{
	struct watcher *watcher = data;
	char text[WATCH_TEXT_SIZE];
	struct birth birth;

	if (process == watcher->tracer.program && !watcher->executed) {
		watcher->executed = true;
		read_birth(watcher, &birth);
	}
	/* Set-user-id programs have lost that right. */
	if (watcher->tracer.all_programs && has_rights(process)) {
		snprintf(
			text, sizeof(text),
			"%s is a set-user-id program, or has capabilities: under 'heapcore run' it runs without, unless root calls it",
			path);
		send_text(watcher->socket, WATCH_NOTE, process, text);
	}
	if (process_kind(process) == PROGRAM_OTHER &&
	    (process == watcher->tracer.program || watcher->tracer.follow)) {
		snprintf(text, sizeof(text),
			 "%s is not an %s program: it runs, but is not analysed", path,
			 machine.arch->name);
		send_text(watcher->socket, WATCH_NOTE, process, text);
	}
}

/* Connect the standard streams from first on to /dev/null; false: they are unchanged. */
static bool lead_to_nothing(int first)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = first; fd <= STDERR_FILENO && nothing >= 0; fd++)
		dup2(nothing, fd);
	return nothing >= 0;
}

/*
 * From now on there only are processes that the program left behind. They are let through, and
 * nobody waits for them.
 */
static void go_to_background(void)
{
	prctl(PR_SET_PDEATHSIG, 0);
	setsid();
	lead_to_nothing(STDIN_FILENO);
	if (chdir("/") < 0)
		return; /* some folder stays in use, no more */
}

static void on_left(void *data, pid_t process)
{
	const struct watcher *watcher = data;
	struct watch_message message = { .kind = WATCH_LEFT, .process = process, .fd = -1 };

	process_name(process, message.name);
	send_message(watcher->socket, &message);
}

static void on_ended(void *data, int status, size_t others, size_t unseen)
{
	struct watcher *watcher = data;
	struct watch_message message = {
		.kind = WATCH_ENDED,
		.process = watcher->tracer.program,
		.status = status,
		.others = others,
		.unseen = unseen,
		.fd = -1,
	};
	struct birth birth = { 0 };

	if (!watcher->executed && read_birth(watcher, &birth)) {
		message.kind = birth.step == BIRTH_NO_PROGRAM ? WATCH_NOT_RUN : WATCH_REFUSED;
		message.status = birth.failure;
		snprintf(
			message.text, sizeof(message.text),
			"a seccomp filter cannot be installed (%s); without one, the program's end cannot be seen",
			strerror(birth.failure));
	}
	if (others > 0)
		go_to_background();
	send_message(watcher->socket, &message);
	/* A reader that waits for the end of our output waits for nothing else. */
	if (others > 0)
		syscall(SYS_close_range, 3, ~0U, 0);
}

static void tell_birth(int births, enum birth_step step, int failure)
{
	struct birth birth = { step, failure };

	if (write(births, &birth, sizeof(birth)) < 0)
		_exit(EXIT_NOT_ANALYSED);
}

/* It reads from the beginning again; a terminal is left to the user. */
static void begin_again(void)
{
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	if (!lead_to_nothing(isatty(STDIN_FILENO) ? STDIN_FILENO : STDOUT_FILENO))
		_exit(EXIT_NOT_ANALYSED);
}

/* In the process that becomes the program, once the watcher traces it. */
static void become_program(const struct watch_options *options, int gate, int births)
{
	char **arguments = options->arguments;
	bool weaker;
	char go;
	int failure;

	if (read(gate, &go, 1) != 1)
		_exit(EXIT_NOT_ANALYSED);
	failure = filter_install(&weaker);
	if (failure) {
		tell_birth(births, BIRTH_NO_FILTER, failure);
		_exit(EXIT_NOT_ANALYSED);
	}
	if (weaker)
		tell_birth(births, BIRTH_WEAKER, 0);
	if (options->preload)
		preload_set(options->preload, options->sizes);
	if (options->again)
		begin_again();
	execvp(arguments[0], arguments);
	tell_birth(births, BIRTH_NO_PROGRAM, errno);
	_exit(EXIT_NOT_ANALYSED);
}

/* Ignore signals meant for the program: it handles them, and we watch it. */
static void ignore_signals(void)
{
	static const int signals[] = {
		SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE, SIGXFSZ,
	};
	sigset_t children;

	for (size_t i = 0; i < COUNT_OF(signals); i++)
		signal(signals[i], SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	sigprocmask(SIG_BLOCK, &children, NULL);
}

static void refuse(struct watcher *watcher, struct error *error)
{
	send_text(watcher->socket, WATCH_REFUSED, watcher->tracer.program, error_message(error));
	error_destroy(error);
	if (watcher->tracer.program > 0)
		kill(watcher->tracer.program, SIGKILL);
}

static void watch(struct watcher *watcher, int gate)
{
	const struct tracer_events events = {
		.ending = on_ending,
		.started = on_started,
		.left = on_left,
		.ended = on_ended,
		.data = watcher,
	};
	struct watch_message message = {
		.kind = WATCH_STARTED,
		.process = watcher->tracer.program,
		.fd = -1,
	};
	struct error *error = tracer_seize(&watcher->tracer);

	if (error) {
		refuse(watcher, error);
		return;
	}
	send_message(watcher->socket, &message);
	if (write(gate, "", 1) != 1)
		return;
	close(gate);
	error = tracer_run(&watcher->tracer, &events);
	if (error)
		refuse(watcher, error);
}

/* Should heapcore be killed, the watcher goes, and all that it traces. */
static void live_with(pid_t heapcore)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != heapcore)
		_exit(EXIT_NOT_ANALYSED);
}

/* List the teardown functions of all runtimes, ended by one without names; to be freed. */
static struct teardown *list_teardowns(void)
{
	struct teardown *list = NULL;
	size_t count = 0;

	for (size_t i = 0; runtime_kinds[i]; i++)
		if (runtime_kinds[i]->teardown.function &&
		    LIST_APPEND(list, count, runtime_kinds[i]->teardown))
			break;
	if (!list || LIST_APPEND(list, count, (struct teardown){ 0 })) {
		free(list);
		return NULL;
	}
	return list;
}

static void run_watcher(const struct watch_options *options, int socket, pid_t heapcore)
{
	_cleanup_(free) struct teardown *teardowns = list_teardowns();
	struct watcher watcher = { .options = options, .socket = socket };
	int gate[2], births[2];

	live_with(heapcore);
	watcher.layout = xstate_layout_here();
	if (pipe2(gate, O_CLOEXEC) < 0 || pipe2(births, O_CLOEXEC) < 0) {
		refuse(&watcher, error_system("a pipe"));
		return;
	}
	fcntl(births[0], F_SETFL, O_NONBLOCK);
	watcher.births = births[0];
	watcher.tracer = (struct tracer_options){
		.program = fork(),
		.follow = options->follow,
		.teardowns = teardowns,
	};
	if (watcher.tracer.program == 0) {
		close(gate[1]);
		become_program(options, gate[0], births[1]);
	}
	close(gate[0]);
	close(births[1]);
	if (watcher.tracer.program < 0) {
		send_text(socket, WATCH_REFUSED, 0, strerror(errno));
		return;
	}
	ignore_signals();
	watch(&watcher, gate[1]);
}

bool watch_is_built(void)
{
	return true;
}

struct error *watch_start(const struct watch_options *options, int *ret)
{
	pid_t heapcore = getpid(), watcher;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return error_system("a socket");
	watcher = fork();
	if (watcher == 0) {
		close(ends[0]);
		run_watcher(options, ends[1], heapcore);
		_exit(0);
	}
	close(ends[1]);
	if (watcher < 0) {
		close(ends[0]);
		return error_system("a process");
	}
	*ret = ends[0];
	return NULL;
}
