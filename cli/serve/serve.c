#include "cli/serve/serve.h"

#include "analyzer/base/list.h"
#include "analyzer/base/text.h"
#include "cli/prompt/captured.h"
#include "cli/prompt/machine.h"
#include "cli/prompt/switches.h"
#include "cli/serve/fleet_pages.h"
#include "cli/serve/guard.h"
#include "cli/serve/http.h"
#include "cli/serve/listen.h"
#include "cli/serve/work.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

static const char DOCUMENTATION[] =
	"Examine CORE, or a fleet's file, with a browser: the address is printed, and opened if there is a desktop. The analysis stays in memory until Ctrl-C. OLD cores are offered for comparison.\v"
	"Only this machine can connect, unless --listen says otherwise, and only with the token in the printed address. Commands only read: none writes files or runs programs. Answers hold contents of memory, unless --no-content is given.";

struct serve_options {
	struct debug_options debug;
	const char *core;
	struct word_list older;
	const char *where; /* of --listen; or NULL */
	uint64_t port;
	size_t memory; /* bytes; 0: not told */
	bool no_content, no_open;
};

static const struct argp_option options[] = {
	{ "port", KEEP(COUNT, struct serve_options, port), "N", 0,
	  "Listen at port N of 127.0.0.1 (default: any that is free)", 0 },
	{ "listen", KEEP(TEXT, struct serve_options, where), "WHERE", 0,
	  "Listen at ADDRESS:PORT, which lets others connect, or at unix:PATH", 0 },
	{ "no-content", KEEP(FLAG, struct serve_options, no_content), NULL, 0,
	  "Leave the contents of memory out of all answers", 0 },
	{ "no-open", KEEP(FLAG, struct serve_options, no_open), NULL, 0, "Open no browser", 0 },
	{ "max-memory", KEEP(SIZE, struct serve_options, memory), "SIZE", 0,
	  "Use at most SIZE of memory in addition to the core itself (default: the machine's)", 0 },
	{ "sysroot", KEEP(TEXT, struct serve_options, debug.sysroot), "DIR", 0,
	  "Search DIR for the files of the machine that CORE is from", 0 },
	{ "debug-dir", KEEP(TEXT, struct serve_options, debug.debug_directory), "DIR", 0,
	  "Also search DIR for separate debug files", 0 },
	{ 0 },
};

static struct error *check(const struct serve_options *given)
{
	if (!given->core)
		return error_create(ERROR_USAGE, "give a core");
	if (given->port > UINT16_MAX)
		return error_create(ERROR_USAGE, "there is no port %" PRIu64, given->port);
	if (given->port && given->where)
		return error_create(ERROR_USAGE, "--listen names the port, too");
	return NULL;
}

/* Cores are opened later, perhaps from another browser: so they must be there now. */
static struct error *add_core(struct serve_options *given, char *path)
{
	_cleanup_(close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return error_create(ERROR_USAGE, "%s: %s", path, strerror(errno));
	if (given->core)
		return LIST_APPEND(given->older.list, given->older.count, path);
	given->core = path;
	return NULL;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct serve_options *given = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		return switch_refuse(state, add_core(given, argument));
	case ARGP_KEY_END:
		return switch_refuse(state, check(given));
	default:
		return switch_take(options, key, argument, state);
	}
}

const struct argp serve_parser = {
	.options = options,
	.parser = parse_option,
	.args_doc = "CORE [OLD...]",
	.doc = DOCUMENTATION,
};

/* ---- the address */

static void format_address(const struct listener *listener, const char *token, char *ret,
			   size_t size)
{
	const char *address = listener->address[0] ? listener->address : "127.0.0.1";
	bool is_long = strchr(address, ':');

	snprintf(ret, size, "http://%s%s%s:%u/?token=%s", is_long ? "[" : "", address,
		 is_long ? "]" : "", listener->port, token);
}

static void print_address(const struct listener *listener, const struct guard *guard)
{
	char address[256];

	if (listener->is_public)
		fputs("heapcore: warning: others can connect, and the network's traffic shows the answers; 'ssh -L' to a server without --listen is safer\n",
		      stderr);
	format_address(listener, guard->token, address, sizeof(address));
	if (listener->path)
		printf("listening at %s, token %s\n", listener->path, guard->token);
	else
		puts(address);
	fflush(stdout);
}

/* Signals are blocked here, which a browser would inherit. */
static void open_browser(const char *address)
{
	char *arguments[] = { (char *)"xdg-open", (char *)address, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	pid_t process;

	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawnp(&process, arguments[0], &actions, &attributes, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
}

static bool has_desktop(void)
{
	const char *names[] = { "DISPLAY", "WAYLAND_DISPLAY" };

	for (size_t i = 0; i < COUNT_OF(names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return true;
	}
	return false;
}

/* ---- until the end */

/* Threads that begin later leave these signals to this one, too. */
static int catch_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGCHLD, SIG_IGN); /* the browser's starter */
	return signalfd(-1, &signals, SFD_CLOEXEC);
}

static void wait_for_end(int signals, int failed)
{
	struct pollfd files[] = { { signals, POLLIN, 0 }, { failed, POLLIN, 0 } };

	while (poll(files, COUNT_OF(files), -1) < 0)
		continue;
}

static struct error *serve_at(struct session *session, const struct serve_options *given,
			      const struct listener *listener)
{
	const struct fleet_pages fleet = { given->core, given->no_content };
	bool is_fleet = fleet_pages_are_at(given->core);
	_cleanup_(close) int signals = catch_signals(), failed = eventfd(0, EFD_CLOEXEC);
	struct work *work = NULL;
	struct http *http = NULL;
	struct guard guard;
	struct error *error;
	char address[256];

	if (signals < 0 || failed < 0 ||
	    !guard_init(&guard, listener->path ? NULL : listener->address, listener->port))
		return error_system("the server");
	if (!is_fleet)
		TRY(work_start(session, given->core, &given->older, failed, &work));
	error = http_start(listener->socket, &guard, work, is_fleet ? &fleet : NULL, &http);
	if (!error) {
		print_address(listener, &guard);
		format_address(listener, guard.once, address, sizeof(address));
		if (!given->no_open && !listener->path && has_desktop())
			open_browser(address);
		wait_for_end(signals, failed);
		error = work ? work_failure(work) : NULL;
	}
	if (work)
		work_stop(work);
	if (http)
		http_stop(http);
	return error;
}

static struct error *serve(struct session *session, const struct serve_options *given)
{
	struct listener listener;
	struct error *error;

	TRY(listener_open(given->where, (uint16_t)given->port, &listener));
	error = serve_at(session, given, &listener);
	listener_remove(&listener);
	return error;
}

int serve_main(int count, char **arguments)
{
	_cleanup_(session_deinit) struct session session = { 0 };
	struct serve_options given = { .memory = 0 };
	struct error *error;

	if (argp_parse(&serve_parser, count, arguments, 0, NULL, &given))
		return EXIT_NOT_ANALYSED;
	given.debug.cache_folder = cache_folder();
	captured_init(&session, &given.debug, given.memory, given.no_content);
	error = serve(&session, &given);
	free(given.older.list);
	if (!error)
		return EXIT_FINE;
	session_complain(&session, error);
	return session.wrong_usage ? EXIT_WRONG_USAGE : EXIT_NOT_ANALYSED;
}
