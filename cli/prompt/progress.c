#include "cli/prompt/progress.h"

#include <inttypes.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* In milliseconds. */
static const int64_t FIRST_SHOW = 500;
static const int64_t SHOW_INTERVAL = 100;
static const int64_t REMAINING_KNOWN = 400; /* after that much of a task */

enum { MAXIMUM_LINE = 160 };

/* Cheap, and by some milliseconds behind. */
static int64_t now_milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int terminal_width(FILE *terminal)
{
	struct winsize size;

	if (ioctl(fileno(terminal), TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return 80;
	return size.ws_col < MAXIMUM_LINE ? size.ws_col : MAXIMUM_LINE;
}

/* The remaining time of the task at its rate so far, in seconds; -1: unknown. */
static int64_t remaining(const struct progress_line *line, uint64_t done, int64_t now)
{
	int64_t elapsed = now - line->task_start;

	if (done <= line->task_first || done > line->total || elapsed < REMAINING_KNOWN)
		return -1;
	return (int64_t)((double)elapsed * (double)(line->total - done) /
				 (double)(done - line->task_first) / 1000 +
			 0.5);
}

static int format_line(const struct progress_line *line, uint64_t done, int64_t now, char *text,
		       size_t size)
{
	int64_t seconds = remaining(line, done, now);
	double share;

	if (!line->total || done > line->total)
		return snprintf(text, size, "%s ...", line->task);
	share = 100 * (double)done / (double)line->total;
	if (seconds < 1)
		return snprintf(text, size, "%s: %.0f %%", line->task, share);
	if (seconds < 100)
		return snprintf(text, size, "%s: %.0f %%, %" PRId64 " s left", line->task, share,
				seconds);
	return snprintf(text, size, "%s: %.0f %%, %" PRId64 " min left", line->task, share,
			(seconds + 30) / 60);
}

static void write_line(struct progress_line *line, int64_t now)
{
	uint64_t done = atomic_load(&line->progress.done);
	int width = terminal_width(line->terminal);
	char text[MAXIMUM_LINE];

	if (line->task != line->progress.task || line->total != line->progress.total) {
		line->task = line->progress.task;
		line->total = line->progress.total;
		line->task_start = now;
		line->task_first = done;
	}
	if (!line->task)
		return;
	format_line(line, done, now, text, sizeof(text));
	/* The last column stays free: writing there may scroll. */
	fprintf(line->terminal, "\r\033[K%.*s", width - 1, text);
	fflush(line->terminal);
	line->visible = true;
}

/* Called often, and from any thread: the clock decides who writes. */
static void show(struct progress *progress)
{
	struct progress_line *line = progress->show_data;
	int64_t next = atomic_load_explicit(&line->next_show, memory_order_relaxed);
	int64_t now = now_milliseconds();

	if (now < next ||
	    !atomic_compare_exchange_strong(&line->next_show, &next, now + SHOW_INTERVAL))
		return;
	if (atomic_flag_test_and_set(&line->writing))
		return;
	write_line(line, now);
	atomic_flag_clear(&line->writing);
}

void progress_line_init(struct progress_line *line, FILE *file)
{
	*line = (struct progress_line){ .next_show = INT64_MAX };
	atomic_flag_clear(&line->writing);
	if (!file || !isatty(fileno(file)))
		return;
	line->terminal = file;
	line->progress.show = show;
	line->progress.show_data = line;
}

void progress_line_begin(struct progress_line *line)
{
	if (!line->terminal)
		return;
	line->task = NULL;
	line->progress.task = NULL;
	atomic_store(&line->next_show, now_milliseconds() + FIRST_SHOW);
}

void progress_line_clear(struct progress_line *line)
{
	if (!line->visible)
		return;
	fputs("\r\033[K", line->terminal);
	fflush(line->terminal);
	line->visible = false;
}

void progress_line_stop(struct progress_line *line)
{
	atomic_store(&line->next_show, INT64_MAX);
	progress_line_clear(line);
}
