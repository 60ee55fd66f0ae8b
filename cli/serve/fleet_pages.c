#include "cli/serve/fleet_pages.h"

#include "analyzer/base/cleanup.h"
#include "analyzer/base/text.h"
#include "analyzer/report/values.h"
#include "cli/fleet/fleet.h"

#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <unistd.h>

enum { MOST_ROWS = 50, MOST_TREE = 1 << 20 };

bool fleet_pages_are_at(const char *path)
{
	return store_is_at(path);
}

/* ---- text */

static void write_in_address(struct writer *writer, const char *text)
{
	static const char digits[] = "0123456789abcdef";

	for (; *text; text++) {
		unsigned char letter = (unsigned char)*text;

		if (isalnum(letter) || strchr("-._~/", letter)) {
			writer_put(writer, (char)letter);
		} else {
			writer_put(writer, '%');
			writer_put(writer, digits[letter >> 4]);
			writer_put(writer, digits[letter & 0xf]);
		}
	}
}

/* ---- tables */

/* The page that a value of the column leads to, or NULL. */
static const char *page_of(const struct column *column)
{
	static const struct {
		const char *column, *page;
	} links[] = {
		{ "fingerprint", "/leak?of=" },
		{ "core", "/core?of=" },
		{ "most in", "/core?of=" },
	};

	for (size_t i = 0; column->kind == VALUE_TEXT && i < COUNT_OF(links); i++)
		if (strcmp(column->name, links[i].column) == 0)
			return links[i].page;
	return NULL;
}

static void write_cell(struct writer *writer, const struct column *column,
		       const struct value *value)
{
	bool is_amount = column->kind == VALUE_COUNT || column->kind == VALUE_BYTES;
	const char *page = value->present ? page_of(column) : NULL;

	writer_text(writer, is_amount ? "<td class=number>" : "<td>");
	if (page) {
		writer_text(writer, "<a href=\"");
		writer_text(writer, page);
		write_in_address(writer, value->text);
		writer_text(writer, "\">");
	}
	if (value->present && column->kind == VALUE_SHARE)
		writer_format(writer, xml_text, "%.0f %%", 100 * value->real);
	else if (value->present && is_amount)
		writer_grouped(writer, value->number);
	else if (value->present)
		plain_value(writer, column->kind, value, xml_text);
	writer_text(writer, page ? "</a></td>" : "</td>");
}

static void write_head(struct writer *writer, const struct table *table)
{
	writer_text(writer, "<table><thead><tr>");
	for (size_t i = 0; i < table->column_count; i++) {
		writer_text(writer, "<th>");
		xml_text(writer, column_heading(&table->columns[i]));
		writer_text(writer, "</th>");
	}
	writer_text(writer, "</tr></thead>\n");
}

/* The title of a section, its command, which none has, and what it says. */
static void write_section(struct writer *writer, const struct value *values)
{
	writer_text(writer, "<h2>");
	xml_text(writer, values[0].text);
	writer_text(writer, "</h2>\n");
	if (!values[2].present)
		return;
	writer_text(writer, "<p>");
	xml_text(writer, values[2].text);
	writer_text(writer, "</p>\n");
}

static bool is_section(const struct report *report)
{
	return strcmp(report->table->name, "section") == 0;
}

static void page_row(struct report *report, const struct value *values)
{
	struct writer *writer = &report->writer;

	if (is_section(report)) {
		write_section(writer, values);
		return;
	}
	if (report->row == 0)
		write_head(writer, report->table);
	writer_text(writer, "<tr>");
	for (size_t i = 0; i < report->table->column_count; i++)
		write_cell(writer, &report->table->columns[i], &values[i]);
	writer_text(writer, "</tr>\n");
}

static void page_end_table(struct report *report)
{
	if (report->row > 0 && !is_section(report))
		writer_text(&report->writer, "</table>\n");
}

static const struct report_format page_format = {
	.name = "page",
	.row = page_row,
	.end_table = page_end_table,
};

/* ---- pages */

static struct error *begin_page(FILE *out, const char *title)
{
	struct writer writer = { 0 };

	TRY(writer_init(&writer, out));
	writer_text(&writer, "<!doctype html><html lang=en><meta charset=utf-8><title>");
	xml_text(&writer, title);
	writer_text(&writer, "</title><link rel=stylesheet href=/page.css><main><h1>");
	xml_text(&writer, title);
	writer_text(&writer, "</h1>\n<p><a href=\"/\">The fleet</a></p>\n");
	writer_flush(&writer);
	writer_deinit(&writer);
	return NULL;
}

/* Answer a question by a page. */
static struct error *write_answer(const struct fleet_pages *pages, const char *title,
				  const char *of, FILE *out,
				  struct error *(*answer)(struct store *store,
							  const struct fleet_question *question,
							  struct report *report))
{
	_cleanup_(store_close) struct store *store = NULL;
	struct fleet_question question = { .limit = MOST_ROWS, .words = { of } };
	struct report report;
	struct error *error;

	TRY(store_open(pages->path, STORE_READ, &store));
	TRY(begin_page(out, title));
	TRY(report_open(&page_format, out, false, &report));
	error = answer(store, &question, &report);
	return error_first(error, report_close(&report));
}

/* The report, and hosts, which have a page but no table in a terminal: there may be thousands. */
static struct error *write_report(struct store *store, const struct fleet_question *question,
				  struct report *report)
{
	static const struct table section =
		TABLE("section", NULL, { "title", VALUE_TEXT }, { "command", VALUE_TEXT },
		      { "text", VALUE_TEXT });
	static const struct table table =
		TABLE("fleet host", NULL, { "host", VALUE_TEXT }, { "cores", VALUE_COUNT },
		      { "used", VALUE_BYTES }, { "leaked", VALUE_BYTES }, { "most", VALUE_BYTES },
		      { "core", VALUE_TEXT, false, FOR_ALL, "most in" });
	static const char query[] =
		"SELECT host, count(*), CAST(avg(used_bytes) AS INTEGER), CAST(avg(leaked_bytes) AS"
		" INTEGER), max(used_bytes) AS most, path FROM analysed WHERE host IS NOT NULL"
		" GROUP BY host ORDER BY 4 DESC, 3 DESC, host LIMIT ?1";
	char limit[NUMBER_SIZE];
	const char *const values[] = { limit };

	TRY(fleet_report(store, question, report));
	limit[format_decimal(question->limit, limit)] = '\0';
	report_single(report, &section, "Hosts", ABSENT,
		      "Used and leaked bytes are averages of a core.");
	return store_report(store, query, values, COUNT_OF(values), &table, report);
}

/* Only cores of the file can be asked for. */
static struct error *find_core(const struct fleet_pages *pages, const char *path, bool *ret)
{
	_cleanup_(store_close) struct store *store = NULL;
	int64_t count = 0;

	TRY(store_open(pages->path, STORE_READ, &store));
	TRY(store_number(store, "SELECT count(*) FROM core WHERE ?1 IN (path, origin)", &path, 1,
			 &count));
	*ret = count;
	return NULL;
}

/* Start heapcore on the core; returns where its output comes from, -1 on failure. */
static int start_tree(const struct fleet_pages *pages, const char *path)
{
	char *arguments[] = { (char *)"heapcore",
			      (char *)"-q",
			      (char *)path,
			      (char *)"tree",
			      pages->no_content ? (char *)"--no-content" : NULL,
			      NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	pid_t process;
	int ends[2], status;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
	status = posix_spawn(&process, "/proc/self/exe", &actions, &attributes, arguments, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	close(ends[1]);
	if (status == 0)
		return ends[0];
	close(ends[0]);
	return -1;
}

/* Lines of text keep their ends, which xml_text() would escape. */
static void write_output(int output, FILE *out)
{
	_cleanup_(fclose) FILE *lines = fdopen(output, "r");
	_cleanup_(free) char *line = NULL;
	struct writer writer = { 0 };
	size_t size = 0, written = 0;
	ssize_t length;

	if (!lines || writer_init(&writer, out))
		return;
	while (written < MOST_TREE && (length = getline(&line, &size, lines)) >= 0) {
		written += (size_t)length;
		line[strcspn(line, "\n")] = '\0';
		xml_text(&writer, line);
		writer_put(&writer, '\n');
	}
	writer_flush(&writer);
	writer_deinit(&writer);
}

static struct error *write_core(const struct fleet_pages *pages, const char *path, FILE *out)
{
	int output = start_tree(pages, path);

	if (output < 0)
		return error_system("heapcore");
	TRY(begin_page(out, path));
	fputs("<h2>Who holds its memory</h2>\n<pre>", out);
	write_output(output, out);
	fputs("</pre>\n", out);
	return NULL;
}

struct error *fleet_pages_write(const struct fleet_pages *pages, const char *path, const char *of,
				FILE *out, bool *ret_found)
{
	*ret_found = true;
	if (strcmp(path, "/") == 0)
		return write_answer(pages, pages->path, NULL, out, write_report);
	if (of && strcmp(path, "/leak") == 0)
		return write_answer(pages, of, of, out, fleet_show);
	*ret_found = false;
	if (of && strcmp(path, "/core") == 0)
		TRY(find_core(pages, of, ret_found));
	return *ret_found ? write_core(pages, of, out) : NULL;
}
