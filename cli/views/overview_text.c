#include "analyzer/base/list.h"
#include "analyzer/base/text.h"
#include "analyzer/diff/diff.h"
#include "analyzer/image/image.h"
#include "analyzer/report/fit.h"
#include "cli/views/overview.h"
#include "cli/views/rows.h"

#include <elf.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

enum { WIDTH = 80, MOST_SHOWN = 5, MOST_NOTES = 3, GAP = 2 };

static size_t width_of(const struct report *report)
{
	return report->width > WIDTH ? report->width : WIDTH;
}

/* Write the text, to be freed by this, as one line. */
static struct error *write_line(struct report *report, char *text)
{
	static const struct table table = TABLE("line", "{line}", { "line", VALUE_TEXT });
	_cleanup_(free) char *owned = text, *line = NULL;

	if (owned)
		line = text_shortened(owned, width_of(report));
	TRY_MEMORY(line);
	report_single(report, &table, line);
	return NULL;
}

/* " (3 minutes ago)", or nothing: two reports of one core are to be the same. */
static void format_age(const struct lineage *lineage, const struct report *report, char *buffer,
		       size_t size)
{
	static const struct {
		const char *name;
		uint64_t seconds;
	} units[] = { { "day", 86400 }, { "hour", 3600 }, { "minute", 60 }, { "second", 1 } };
	uint64_t taken = lineage->time / 1000000000, now = (uint64_t)time(NULL), age = now - taken;
	size_t i = 0;

	buffer[0] = '\0';
	if (!report->width || lineage->source == TIME_UNKNOWN || taken > now)
		return;
	while (age < 2 * units[i].seconds && units[i].seconds > 1)
		i++;
	age /= units[i].seconds;
	snprintf(buffer, size, " (%" PRIu64 " %s%s ago)", age, units[i].name, age == 1 ? "" : "s");
}

/* The path of the executed file, which holds the entry point. */
static const char *program_path(const struct image *image)
{
	const struct mapping *mapping =
		image_find_mapping(image, image_auxiliary(image, AT_ENTRY, 0));

	return mapping ? mapping->path : "a process";
}

/* The command line, which distinguishes one interpreter from another. */
static const char *command_of(const struct image *image, const struct report *report)
{
	const char *command = image->origin.command;

	return *command && !report->no_content ? command : program_path(image);
}

/* "python3 app.py (process 4711, 2 threads)" and "Core core.4711: 24.0 MiB, of ..." */
static struct error *write_core(const struct image *image, struct report *report)
{
	const char *slash = strrchr(image->path, '/');
	char size[NUMBER_SIZE], age[NUMBER_SIZE + 16], process[NUMBER_SIZE + 16] = "", tail[96];
	struct lineage lineage = lineage_of(image);
	char time[LINEAGE_TIME_SIZE];
	const char *taken = lineage_time(&lineage, time);
	size_t threads = image->thread_count;
	_cleanup_(free) char *command = NULL;

	if (image->origin.process)
		snprintf(process, sizeof(process), "process %" PRIu32 ", ", image->origin.process);
	snprintf(tail, sizeof(tail), " (%s%zu %s)", process, threads,
		 threads == 1 ? "thread" : "threads");
	command = text_shortened(command_of(image, report), width_of(report) - strlen(tail));
	TRY_MEMORY(command);
	TRY(write_line(report, format_text("%s%s", command, tail)));
	format_age(&lineage, report, age, sizeof(age));
	return write_line(report, format_text("Core %s: %s%s%s%s", slash ? slash + 1 : image->path,
					      in_largest_unit(image->size, size),
					      taken ? ", of " : "", taken ? taken : "", age));
}

/* "Ended by signal 6 (Aborted) in main() at cart.c:5."; a long place needs the signal's name's
 * room. */
static char *describe_ending(const struct image *image, const struct ending *ending, bool is_named)
{
	const char *name = is_named ? strsignal(ending->signal) : "";
	char who[64] = "";

	if (ending->sender)
		snprintf(who, sizeof(who), ", which process %" PRIu32 " sent", ending->sender);
	else if (ending->thread != image->origin.process)
		snprintf(who, sizeof(who), " in thread %" PRIu32, ending->thread);
	return format_text("Ended by signal %d%s%s%s%s%s%s%s.", ending->signal,
			   is_named ? " (" : "", name, is_named ? ")" : "", who,
			   *who && ending->place ? "," : "", ending->place ? " in " : "",
			   ending->place ? ending->place : "");
}

static struct error *write_ending(const struct image *image, const struct ending *ending,
				  struct report *report)
{
	bool has_message = ending->message && !report->no_content;
	_cleanup_(free) char *line = NULL;

	if (!ending->signal)
		return NULL;
	line = describe_ending(image, ending, true);
	TRY_MEMORY(line);
	TRY(write_line(report, strlen(line) <= width_of(report)
				       ? take(line)
				       : describe_ending(image, ending, false)));
	if (!ending->reason)
		return NULL;
	return write_line(report, format_text("%s%s%s", ending->reason, has_message ? ": " : ".",
					      has_message ? ending->message : ""));
}

enum { AMOUNT_SIZE = 24 };

/* "19.0", in the unit of the sum; "0" only if it is nothing. */
static const char *format_amount(uint64_t bytes, double unit, char buffer[static AMOUNT_SIZE])
{
	double amount = (double)bytes / unit;

	if (bytes && amount < 0.05)
		return "<0.1";
	snprintf(buffer, AMOUNT_SIZE, bytes && amount < 99.95 ? "%.1f" : "%.0f", amount);
	return buffer;
}

/* "RSS at most 35.2 MiB: 19.0 used, 0 leaked, 0.5 free, 16.0 other" */
static struct error *write_memory(const struct overview_memory *memory, struct report *report)
{
	static const char *const names[] = { "KiB", "MiB", "GiB", "TiB" };
	char sum[AMOUNT_SIZE], used[AMOUNT_SIZE], leaked[AMOUNT_SIZE], free[AMOUNT_SIZE],
		other[AMOUNT_SIZE], garbage[AMOUNT_SIZE];
	double unit = 1024;
	size_t number = 0;

	for (; number + 1 < COUNT_OF(names) && (double)memory->resident >= 1024 * unit; number++)
		unit *= 1024;
	return write_line(
		report,
		format_text("RSS%s %s %s: %s used, %s leaked, %s%s%s free, %s other",
			    memory->is_at_most ? " at most" : "",
			    format_amount(memory->resident, unit, sum), names[number],
			    format_amount(memory->used, unit, used),
			    format_amount(memory->leaked, unit, leaked),
			    memory->garbage ? format_amount(memory->garbage, unit, garbage) : "",
			    memory->garbage ? " garbage, " : "",
			    format_amount(memory->free, unit, free),
			    format_amount(memory->other, unit, other)));
}

static struct error *write_heap(const struct first_screen *screen, struct report *report)
{
	struct set_total used = screen->sets[OVERVIEW_USED], leaked = screen->sets[OVERVIEW_LEAKED];
	char count[NUMBER_SIZE], bytes[NUMBER_SIZE], lost[NUMBER_SIZE];

	grouped(leaked.bytes, lost);
	return write_line(report,
			  format_text("Heap: %s bytes, %s allocations%s%s%s",
				      grouped(used.bytes, bytes), grouped(used.count, count),
				      leaked.count ? "; " : "", leaked.count ? lost : "",
				      leaked.count ? " bytes leaked" : ""));
}

/* A row of the screen: bytes, a short value, and two columns of text. */
struct screen_row {
	uint64_t bytes;
	struct value second;
	char share[NUMBER_SIZE]; /* if that is the second */
	char *texts[2];		 /* owned */
};

struct screen_rows {
	struct screen_row list[MOST_SHOWN];
	size_t count;
	size_t second_width;
};

static void screen_rows_deinit(struct screen_rows *rows)
{
	for (size_t i = 0; i < MOST_SHOWN; i++)
		for (size_t j = 0; j < 2; j++)
			free(rows->list[i].texts[j]);
}
DEFINE_DEINIT(screen_rows_deinit, struct screen_rows)

static size_t widest(const struct screen_rows *rows, size_t column, const char *header)
{
	size_t most = strlen(header);

	for (size_t i = 0; i < rows->count; i++) {
		_cleanup_(free) char *shown = rows->list[i].texts[column]
						      ? escape_text(rows->list[i].texts[column])
						      : NULL;
		size_t width = shown ? text_width(shown, strlen(shown)) : 0;

		most = width > most ? width : most;
	}
	return most;
}

static void remove_bytes(char *text, size_t count)
{
	memmove(text, text + count, strlen(text + count) + 1);
}

/* "shared by a, b and 3 more" becomes "shared by a and others". */
static void leave_out_sharers(char *text)
{
	static const char others[] = " and others";
	char *shared = strstr(text, "shared by "), *comma = shared ? strchr(shared, ',') : NULL;

	if (comma && strlen(comma) >= strlen(others) && !memchr(shared, '<', comma - shared))
		memcpy(comma, others, sizeof(others));
}

/* The size or the kind of a holder without a name tells less than who holds it. */
static void leave_out_kind(char *text)
{
	const char *found = strstr(text, ", shared by ");

	if (found)
		remove_bytes(text, (size_t)(found + 2 - text));
}

static void leave_out_shared(char *text)
{
	static const char shared[] = "shared by ";

	if (strncmp(text, shared, strlen(shared)) == 0)
		remove_bytes(text, strlen(shared));
}

/* Leave out what tells least: "(anonymous namespace)::", and a library's version behind ".so". */
static void leave_out_least(char *text)
{
	static const char anonymous[] = "(anonymous namespace)::", library[] = ".so";
	char *found;

	while ((found = strstr(text, anonymous)) != NULL)
		remove_bytes(found, strlen(anonymous));
	for (found = text; (found = strstr(found, library)) != NULL;) {
		found += strlen(library);
		remove_bytes(found, strspn(found, ".0123456789"));
	}
}

static void leave_out(char *text, size_t width)
{
	static void (*const steps[])(char *text) = { leave_out_least, leave_out_sharers,
						     leave_out_kind, leave_out_shared };

	for (size_t i = 0; i < COUNT_OF(steps) && text_width(text, strlen(text)) > width; i++)
		steps[i](text);
}

static struct error *shorten(struct screen_rows *rows, size_t column, size_t width)
{
	for (size_t i = 0; i < rows->count; i++) {
		char *text = rows->list[i].texts[column];

		if (!text)
			continue;
		leave_out(text, width);
		rows->list[i].texts[column] = text_shortened(text, width);
		free(text);
		TRY_MEMORY(rows->list[i].texts[column]);
	}
	return NULL;
}

/* Have both columns fit the room; the second one gives way first, to two fifths of it. */
static struct error *fit_texts(struct screen_rows *rows, const struct table *table, size_t room)
{
	const struct column *last = &table->columns[table->column_count - 1];
	size_t first = widest(rows, 0, last[-1].name), second = widest(rows, 1, last->name);

	if (first + second <= room)
		return NULL;
	second = first + room * 2 / 5 < room ? room - first
		 : second < room * 2 / 5     ? second
					     : room * 2 / 5;
	TRY(shorten(rows, 1, second));
	return shorten(rows, 0, room - second);
}

/* The width left for text columns, beside the others and the gaps. */
static size_t room_beside(const struct report *report, const struct screen_rows *rows)
{
	size_t bytes = strlen("bytes");
	char number[NUMBER_SIZE];

	for (size_t i = 0; i < rows->count; i++) {
		size_t width = strlen(grouped(rows->list[i].bytes, number));

		bytes = width > bytes ? width : bytes;
	}
	return width_of(report) - bytes - rows->second_width - 3 * GAP;
}

/* The program's name for a holder says more than its kind, so leave out kinds first. */
static void leave_out_kinds(const struct first_screen *screen, const struct report *report,
			    const struct table *table, struct screen_rows *rows)
{
	const struct column *last = &table->columns[table->column_count - 1];
	size_t room = room_beside(report, rows), second = widest(rows, 1, last->name);
	size_t first = room - (second < room / 3 ? second : room / 3);

	for (size_t i = 0; i < rows->count; i++) {
		const struct holder *holder = &screen->holders[i];
		char **text = &rows->list[i].texts[0], *way;

		if (text_width(*text, strlen(*text)) <= first || holder->id == NO_ALLOCATION)
			continue;
		way = overview_way_text(screen, report, holder);
		if (!way)
			continue;
		free(*text);
		*text = way;
	}
}

static struct error *write_rows(struct report *report, const struct table *table,
				struct screen_rows *rows)
{
	TRY(fit_texts(rows, table, room_beside(report, rows)));
	report_begin_table(report, table);
	list_for_each(row, rows->list, rows->count) {
		report_row(report, row->bytes, row->second, row->texts[0], row->texts[1]);
	}
	report_end_table(report);
	return NULL;
}

/* "20,000 __main__.Listener", "2,000 of 408 bytes", or "12 blocks" of a region. */
static char *content_text(const struct first_screen *screen, const struct holder *holder)
{
	_cleanup_(free) char *kind = NULL;
	bool is_nameless = holder->content == KIND_UNKNOWN;
	char count[NUMBER_SIZE];

	if (holder->is_reserve)
		return strdup("library's own");
	if (variables_in_region(analysis_variables(screen->analysis), holder->example))
		return format_text("%s blocks", grouped(holder->content_count, count));
	kind = overview_kind_text(screen, holder->content, holder->example);
	return kind ? format_text("%s %s%s", grouped(holder->content_count, count),
				  is_nameless ? "of " : "", kind)
		    : NULL;
}

static struct error *write_holders(const struct first_screen *screen, struct report *report)
{
	static const struct table table =
		TABLE("holder", NULL, { "bytes", VALUE_BYTES }, { "share", VALUE_TEXT },
		      { "holder", VALUE_TEXT }, { "what is in it", VALUE_TEXT });
	_cleanup_(screen_rows_deinit) struct screen_rows rows = { .second_width = strlen("share") };

	if (screen->holder_count == 0) {
		rows_text(report, screen->lacks_holders
					  ? "The holders are not known: memory is short."
					  : "No object or variable holds a fiftieth of the heap.");
		return NULL;
	}
	for (; rows.count < screen->holder_count && rows.count < MOST_SHOWN; rows.count++) {
		const struct holder *holder = &screen->holders[rows.count];
		struct screen_row *row = &rows.list[rows.count];
		bool has_content = holder->example != NO_ALLOCATION || holder->is_reserve;

		row->bytes = holder->bytes;
		snprintf(row->share, sizeof(row->share), "%3u %%",
			 overview_percent(screen, holder));
		row->second = VALUE(row->share);
		row->texts[0] = overview_holder_text(screen, report, holder);
		if (has_content)
			row->texts[1] = content_text(screen, holder);
		if (!row->texts[0] || (has_content && !row->texts[1]))
			return &error_no_memory;
	}
	leave_out_kinds(screen, report, &table, &rows);
	return write_rows(report, &table, &rows);
}

/* Leaked memory may be held in a way that no reference shows. */
static struct error *write_likely_held(const struct first_screen *screen, struct report *report)
{
	char held[NUMBER_SIZE], leaked[NUMBER_SIZE];

	if (screen->likely_held.count == 0)
		return NULL;
	return write_line(
		report,
		format_text(
			"%s of %s leaked are likely held by tagged pointers: explain likelyheld",
			grouped(screen->likely_held.count, held),
			grouped(screen->sets[OVERVIEW_LEAKED].count, leaked)));
}

/* The text about a leak, to be freed; NULL if memory is short. */
static char *leak_text(const struct first_screen *screen, const struct tally *tally,
		       bool no_content)
{
	const struct root_samples *samples = &screen->leaks.samples.items[tally->number];
	_cleanup_(free) char *kind = overview_kind_text(screen, tally->key, samples->first);
	char shape[SHAPE_TEXT_SIZE];

	leak_root_shape(screen->analysis, samples, no_content, shape);
	return !kind || !*shape ? take(kind) : format_text("%s, %s", kind, shape);
}

static struct error *write_leaks(const struct first_screen *screen, struct report *report)
{
	static const struct table table =
		TABLE("leaked kind", NULL, { "bytes", VALUE_BYTES }, { "leaks", VALUE_COUNT },
		      { "kind", VALUE_TEXT }, { "allocated by", VALUE_TEXT });
	_cleanup_(screen_rows_deinit) struct screen_rows rows = { .second_width = strlen("leaks") };
	const struct tally_table *tallies = &screen->leaks.tallies;
	/* One line says how many there are. */
	size_t count = tallies->count > OVERVIEW_LEAKS ? OVERVIEW_LEAKS - 1 : tallies->count;

	if (count == 0) {
		rows_text(report, screen->lacks_leaks
					  ? "The kinds of leaks are not known: memory is short."
				  : findings_incomplete(analysis_findings(screen->analysis))
					  ? "No leak was found; whether there are any is not known."
					  : "Nothing leaked.");
		return NULL;
	}
	for (; rows.count < count; rows.count++) {
		const struct tally *tally = &tallies->items[rows.count];
		const char *maker = screen->allocated_by[rows.count];
		struct screen_row *row = &rows.list[rows.count];
		char number[NUMBER_SIZE];
		size_t width = strlen(grouped(tally->count, number));

		rows.second_width = width > rows.second_width ? width : rows.second_width;
		row->bytes = tally->bytes;
		row->second = VALUE(tally->count);
		row->texts[0] = leak_text(screen, tally, report->no_content);
		row->texts[1] = maker ? strdup(maker) : NULL;
		if (!row->texts[0] || (maker && !row->texts[1]))
			return &error_no_memory;
	}
	TRY(write_rows(report, &table, &rows));
	rows_left_out(report, "kinds of leaks", tallies->count, count);
	return write_likely_held(screen, report);
}

static bool is_shown(const struct report *report, const struct finding *finding)
{
	return finding->weight != FINDING_NOTE || !report->quiet;
}

static const char *weight_name(const struct finding *finding)
{
	return finding->weight == FINDING_INCOMPLETE ? "warning" : "note";
}

void overview_write_notes(const struct analysis *analysis, struct report *report)
{
	static const struct table table =
		TABLE("finding", "{weight}: {message}.", { "weight", VALUE_TEXT },
		      { "message", VALUE_TEXT });
	const struct findings *findings = analysis_findings(analysis);

	report_begin_table(report, &table);
	for (size_t i = 0; i < findings->count; i++)
		if (is_shown(report, &findings->list[i]))
			report_row(report, weight_name(&findings->list[i]),
				   findings->list[i].message);
	report_end_table(report);
	if (findings->count == 0)
		rows_text(report, "No notes: no problem was found that could make answers wrong.");
}

static struct error *write_note(struct report *report, const struct finding *finding)
{
	_cleanup_(free) char *text = format_text("%s: %s", weight_name(finding), finding->message);

	return write_line(report, text ? text_cut(text, width_of(report)) : NULL);
}

/* A line for each, and what makes answers wrong first. */
static struct error *write_notes(const struct first_screen *screen, struct report *report)
{
	const struct findings *findings = analysis_findings(screen->analysis);
	size_t count = 0, written = 0, most = MOST_NOTES;
	char left[NUMBER_SIZE];

	for (size_t i = 0; i < findings->count; i++)
		count += is_shown(report, &findings->list[i]);
	most = count > MOST_NOTES ? MOST_NOTES - 1 : count;
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < findings->count && written < most; i++) {
			const struct finding *finding = &findings->list[i];

			if ((finding->weight == FINDING_INCOMPLETE) != (pass == 0) ||
			    !is_shown(report, finding))
				continue;
			TRY(write_note(report, finding));
			written++;
		}
	}
	if (count == written)
		return NULL;
	return write_line(report, format_text("... and %s more notes: 'info --notes' has them all",
					      grouped(count - written, left)));
}

/* Suggest the command to run next: on the part of memory that explains most. */
static char *next_step(const struct first_screen *screen)
{
	const struct allocation_index *index = analysis_index(screen->analysis);
	const struct overview_memory *memory = &screen->memory;
	uint64_t used = screen->sets[OVERVIEW_USED].bytes;
	allocation_id example =
		screen->holder_count ? overview_holder_example(&screen->holders[0]) : NO_ALLOCATION;

	if (findings_incomplete(analysis_findings(screen->analysis)))
		return strdup("'info --notes' says why these answers may be wrong.");
	if (screen->sets[OVERVIEW_LEAKED].bytes > used / 10)
		return strdup("'summarize leakroots' shows what leaked, by kind.");
	if (memory->free > memory->used)
		return strdup("'fragmentation' shows why free memory stays.");
	/* Code and files are most of a small process, and tell little. */
	if (memory->other / 16 > memory->used)
		return strdup("'bill' shows what each byte is used for.");
	if (example != NO_ALLOCATION)
		return format_text("'explain %" PRIx64 "' shows what leads to the largest holder.",
				   allocation_start(index, example));
	return strdup("'top' shows what the heap is, by kind.");
}

static struct error *write_next(const struct first_screen *screen, struct report *report)
{
	_cleanup_(free) char *step = next_step(screen);

	return step ? write_line(report, format_text("Next: %s", step)) : &error_no_memory;
}

struct error *overview_write_text(const struct first_screen *screen, struct report *report)
{
	TRY(write_core(analysis_image(screen->analysis), report));
	TRY(write_ending(analysis_image(screen->analysis), &screen->ending, report));
	TRY(write_memory(&screen->memory, report));
	TRY(write_heap(screen, report));
	rows_text(report, "");
	TRY(write_holders(screen, report));
	rows_text(report, "");
	TRY(write_leaks(screen, report));
	rows_text(report, "");
	TRY(write_notes(screen, report));
	return write_next(screen, report);
}
