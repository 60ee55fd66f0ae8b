#include "cli/assistants/mcp.h"

#include "analyzer/base/text.h"
#include "cli/assistants/server.h"
#include "cli/prompt/switches.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum {
	KEY_ALLOW = 256,
};

static const char DOCUMENTATION[] =
	"Let an assistant in an editor read cores, by the Model Context Protocol: JSON-RPC on standard input and output. CORE is opened at first; other cores only if they are below a folder DIR.\v"
	"It is read-only: it writes no file, starts no program, and sends nothing anywhere but to standard output. The tools are 'open', 'overview', 'report', 'top', 'summarize', 'objects', 'list', 'show', 'explain', 'path', 'tree', 'bill', 'waste', 'fragmentation', 'backtrace', 'sql', 'diff', 'gate' and 'help', with the switches of the commands; 'fleet_report', 'fleet_diff', 'fleet_show' and 'fleet_sql', which ask files of 'heapcore fleet' below DIR; 'heapcore://report' is the report of the open core.\n"
	"\n"
	"Answers hold contents of memory, unless --no-content is given.";

struct mcp_options {
	struct debug_options debug;
	size_t memory; /* bytes; 0: not told */
	bool no_content;
	struct folders folders;
};

static const struct argp_option options[] = {
	{ "allow", KEY_ALLOW, "DIR", 0, "Let cores below DIR be opened (may be repeated)", 0 },
	{ "max-memory", KEEP(SIZE, struct mcp_options, memory), "SIZE", 0,
	  "Use at most SIZE of memory in addition to the core itself (default: the machine's)", 0 },
	{ "no-content", KEEP(FLAG, struct mcp_options, no_content), NULL, 0,
	  "Leave the contents of memory out of all answers", 0 },
	{ "sysroot", KEEP(TEXT, struct mcp_options, debug.sysroot), "DIR", 0,
	  "Search DIR for the files of the machine that cores are from", 0 },
	{ "debug-dir", KEEP(TEXT, struct mcp_options, debug.debug_directory), "DIR", 0,
	  "Also search DIR for separate debug files", 0 },
	{ 0 },
};

static struct error *check(const struct mcp_options *given)
{
	if (given->folders.count == 0 && !given->folders.core)
		return error_create(ERROR_USAGE, "give a core, or a folder of cores");
	return NULL;
}

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct mcp_options *given = state->input;

	switch (key) {
	case KEY_ALLOW:
	case ARGP_KEY_ARG:
		return switch_refuse(state, folders_add(&given->folders, argument));
	case ARGP_KEY_END:
		return switch_refuse(state, check(given));
	default:
		return switch_take(options, key, argument, state);
	}
}

const struct argp mcp_parser = {
	.options = options,
	.parser = parse_option,
	.args_doc = "[CORE] [DIR...]",
	.doc = DOCUMENTATION,
};

/*
 * Send other writes to standard output to standard error, so that they do not mix with the
 * protocol.
 */
static struct error *take_output(int *ret)
{
	int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	if (out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return error_system("standard output");
	*ret = out;
	return NULL;
}

static void set_up(struct server *server, struct mcp_options *given)
{
	captured_init(&server->session, &given->debug, given->memory, given->no_content);
	server->folders = take_struct(given->folders);
	server->unopened = server->folders.core;
	atomic_flag_clear(&server->telling);
}

static struct error *serve(struct server *server)
{
	_cleanup_(channel_close) struct channel *channel = NULL;
	_cleanup_(close) int out = -1;

	TRY(take_output(&out));
	TRY(channel_open(STDIN_FILENO, out, &server->session.progress.progress.interrupted,
			 &channel));
	server->channel = channel;
	server_serve(server);
	return NULL;
}

int mcp_main(int count, char **arguments)
{
	struct mcp_options given = { .memory = 0 };
	struct server server = { .initialized = false };
	struct error *error;

	if (argp_parse(&mcp_parser, count, arguments, 0, NULL, &given))
		return EXIT_NOT_ANALYSED;
	set_up(&server, &given);
	error = serve(&server);
	if (error)
		session_complain(&server.session, error);
	session_deinit(&server.session);
	folders_deinit(&server.folders);
	return error ? EXIT_NOT_ANALYSED : EXIT_FINE;
}
