/*
 * The manual as a whole: heapcore.1 and docs/commands.md.
 */
#include "analyzer/base/text.h"
#include "cli/assistants/mcp.h"
#include "cli/fleet/fleet.h"
#include "cli/help/manual.h"
#include "cli/live/run.h"
#include "cli/live/slim.h"
#include "cli/live/snap.h"
#include "cli/live/soak.h"
#include "cli/options.h"
#include "cli/prompt/switches.h"
#include "cli/serve/serve.h"
#include "cli/watch/receive.h"
#include "cli/watch/watch.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

struct part {
	const char *term, *text;
};

static const char DESCRIPTION[] =
	"heapcore reads the core of a process, as the kernel or 'gcore PID' writes it, and shows what is in its memory, who holds it, and what leaked. The program needs no rebuild and no debug information; with debug information, more things have names.\n"
	"The words after CORE are one command. '-c' and '-f' give more commands; they run in the order given. Without a command, there is a first screen and then a prompt, or commands are read from standard input.\n"
	"    heapcore core.4711\n"
	"    heapcore core.4711 summarize leakroots\n"
	"    heapcore -c 'count used' -c 'summarize leaked' core.4711\n"
	"    heapcore -f SCRIPT core.4711\n"
	"A command is a verb and a set of allocations or other memory; switches narrow and extend the set. 'heapcore help' needs no core and explains everything in this manual word by word.";

static const struct part statuses[] = {
	{ "0", "All is well." },
	{ "1", "The gate found leaks or growth beyond its limits." },
	{ "2", "Wrong usage: an unknown option, command, set or switch, or a missing file." },
	{ "3",
	  "CORE is not a core, or could not be analysed well enough to rely on the answers: it is truncated, or the heap is damaged or not supported. The messages say what is wrong." },
	{ "130", "Interrupted by Ctrl-C." },
};

static const struct part files[] = {
	{ "~/.local/state/heapcore/history",
	  "The last thousand lines typed at the prompt; below $XDG_STATE_HOME where that is set." },
	{ "/usr/lib/debug",
	  "Where separate debug information is searched, by build-id and by name; '--debug-dir' adds other places." },
	{ "~/.inputrc", "Keys at the prompt: see readline(3)." },
};

static const struct part environment[] = {
	{ "DEBUGINFOD_URLS", "Debug information servers; used only with '--debuginfod'." },
	{ "NO_COLOR", "If set, there are no colours unless '--color' asks for them." },
	{ "PAGER",
	  "What shows output that is longer than the terminal, instead of 'less'; 'cat' or nothing: no pager." },
	{ "TERM", "The type of terminal; one that is 'dumb' gets no colours." },
	{ "XDG_STATE_HOME, HOME", "Where the history is kept." },
};

static void write_parts(struct document *document, const char *title, const struct part *parts,
			size_t count)
{
	document_heading(document, LEVEL_SECTION, title);
	for (size_t i = 0; i < count; i++)
		document_entry(document, parts[i].term, parts[i].text);
}

/* `-c, --command COMMAND` */
static void write_option(struct document *document, const struct argp_option *option)
{
	char letter[] = { '-', (char)option->key, ',', ' ', '\0' };
	_cleanup_(free) char *usage = NULL;

	if (option->key > CHAR_MAX) /* it has none */
		letter[0] = '\0';
	usage = format_text("%s--%s%s%s", letter, option->name, option->arg ? "=" : "",
			    option->arg ? option->arg : "");
	if (!usage)
		return;
	document_entry(document, usage, option->doc);
}

static void write_options(struct document *document, const struct argp_option *option)
{
	for (; option->name; option++)
		if (switch_is_shown(option))
			write_option(document, option);
}

/*
 * Part of what `--help` says: a paragraph is followed by an empty line there, and a `word' is in
 * other quotes.
 */
static void write_help(struct document *document, const char *text, size_t length)
{
	_cleanup_(free) char *plain = strndup(text, length);
	char *end = plain;

	if (!plain)
		return;
	for (const char *at = plain; *at; at++)
		if (*at == '`')
			*end++ = '\'';
		else if (at[0] != '\n' || at[1] != '\n')
			*end++ = *at;
	*end = '\0';
	document_text(document, plain);
}

/* Write about a mode, such as `heapcore NAME`, that does not open a core. */
static void write_mode(struct document *document, const char *name, const struct argp *parser)
{
	size_t front = strcspn(parser->doc, "\v");

	document_heading(document, LEVEL_SECTION, name);
	write_help(document, parser->doc, front);
	write_options(document, parser->options);
	if (parser->doc[front])
		write_help(document, parser->doc + front + 1, strlen(parser->doc + front + 1));
}

static void write_commands(struct document *document)
{
	document_heading(document, LEVEL_SECTION, "Commands");
	document_text(
		document,
		"SET, KIND and SWITCHES are explained below. The addresses in examples are invented; 'list' and 'enumerate' show real ones.");
	for (size_t i = 0; commands[i]; i++)
		manual_write_command(document, commands[i], false);
}

static void write_topics(struct document *document)
{
	for (size_t i = 0; topics[i]; i++) {
		_cleanup_(free) char *title = strdup(topics[i]->name);

		if (!title)
			return;
		title[0] = (char)toupper((unsigned char)title[0]);
		document_heading(document, LEVEL_SECTION, title);
		manual_write_topic(document, topics[i]);
	}
}

static void write_usage(FILE *out, const char *usage, size_t length, bool is_man)
{
	bool tells_options = memmem(usage, length, "OPTIONS", 7) != NULL;

	fputs(is_man ? "" : "    ", out);
	fputs(tells_options ? "heapcore " : "heapcore [OPTIONS] ", out);
	for (size_t i = 0; i < length; i++) {
		if (is_man && usage[i] == '-') /* or it is a hyphen */
			fputc('\\', out);
		fputc(usage[i], out);
	}
	fputs(is_man ? "\n.br\n" : "\n", out);
}

/* A line for each way to call it. */
static void write_usages(FILE *out, bool is_man)
{
	const char *usage = program_usages;

	while (*usage) {
		size_t length = strcspn(usage, "\n");

		write_usage(out, usage, length, is_man);
		usage += length + (usage[length] == '\n');
	}
	fprintf(out, "%sheapcore help [WORD]\n", is_man ? "" : "    ");
}

static void write_front(FILE *out, bool is_man)
{
	if (is_man)
		fputs(".\\\" Written by heapcore --manual man; do not edit.\n"
		      ".TH HEAPCORE 1 \"\" \"heapcore " VERSION "\" "
		      "\"User Commands\"\n"
		      ".SH NAME\n"
		      "heapcore \\- show what is in the memory of a process, from its core\n"
		      ".SH SYNOPSIS\n",
		      out);
	else
		fputs("<!-- Written by scripts/docs; do not edit. -->\n"
		      "# The commands of heapcore\n\n",
		      out);
	write_usages(out, is_man);
}

/* Links to the sections of commands and topics. */
static void write_contents(FILE *out)
{
	fputs("\n[commands](#commands)", out);
	for (size_t i = 0; topics[i]; i++)
		fprintf(out, " | [%s](#%s)", topics[i]->name, topics[i]->name);
	fputs("\n", out);
}

static void write_end(struct document *document, bool is_man)
{
	if (!is_man)
		return;
	document_heading(document, LEVEL_SECTION, "See also");
	document_text(document, "gcore(1), gdb(1), core(5), debuginfod(8)");
}

struct error *manual_write(const char *form, FILE *out)
{
	bool is_man = strcmp(form, "man") == 0;
	struct document document = {
		.form = is_man ? &form_man : &form_markdown,
		.out = out,
		.last = PIECE_PARAGRAPH,
	};

	if (!is_man && strcmp(form, "markdown") != 0)
		return error_create(ERROR_USAGE, "the manual is 'man' or 'markdown', not '%s'",
				    form);
	write_front(out, is_man);
	if (!is_man)
		write_contents(out);
	document_heading(&document, LEVEL_SECTION, "Description");
	document_text(&document, DESCRIPTION);
	document_heading(&document, LEVEL_SECTION, "Options");
	document_text(
		&document,
		"They may stand anywhere. Behind the command, an option of the same name as one of its switches is that switch.");
	write_options(&document, program_options);
	write_mode(&document, "Heapcore run", &run_parser);
	write_mode(&document, "Heapcore snap", &snap_parser);
	write_mode(&document, "Heapcore slim", &slim_parser);
	write_mode(&document, "Heapcore soak", &soak_parser);
	write_mode(&document, "Heapcore watch", &watch_parser);
	write_mode(&document, "Heapcore receive", &receive_parser);
	write_mode(&document, "Heapcore fleet", &fleet_parser);
	write_mode(&document, "Heapcore serve", &serve_parser);
	write_mode(&document, "Heapcore mcp", &mcp_parser);
	write_commands(&document);
	write_topics(&document);
	write_parts(&document, "Exit status", statuses, COUNT_OF(statuses));
	write_parts(&document, "Files", files, COUNT_OF(files));
	write_parts(&document, "Environment", environment, COUNT_OF(environment));
	write_end(&document, is_man);
	return fflush(out) == 0 ? NULL : error_system("the manual");
}
