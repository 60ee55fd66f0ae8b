#include "cli/serve/work.h"

#include "analyzer/base/list.h"
#include "analyzer/base/text.h"
#include "analyzer/image/image.h"
#include "analyzer/report/values.h"
#include "cli/prompt/capture.h"
#include "cli/prompt/captured.h"
#include "cli/prompt/completion.h"
#include "cli/prompt/execute.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

enum { MOST_KEPT = 64, MOST_TEXT = 256 << 10, MOST_MESSAGES = 64 << 10, MOST_WAITING = 256 };
static const uint64_t MOST_KEPT_BYTES = 1UL << 30; /* nearly all of them on the disk */

static const char FIRST_SCREEN[] = "info";

/* The rows of a command that ran. */
struct kept {
	char *command;
	char *notes;
	struct kept_rows *rows;
	uint64_t used; /* when, by work->uses */
};

struct work {
	struct session *session; /* borrowed; used by the thread alone */
	const char *core;	 /* borrowed */
	const struct word_list *older;
	atomic_bool *interrupted;
	pthread_t thread;
	int failed;

	pthread_mutex_t lock; /* protects the fields below */
	pthread_cond_t changed;
	struct job *first; /* the queue */
	size_t waiting;
	struct job *running;
	struct kept_rows *written; /* what it writes so far; or NULL */
	bool ahead;		   /* idle, so stages are built that may be needed */
	bool ready, ending;
	struct error *failure; /* why the core cannot be opened */
	struct kept kept[MOST_KEPT];
	uint64_t uses;
	struct writer state; /* what is known since the core is open, as members of an object */
};

void job_deinit(struct job *job)
{
	free(job->complaint);
	free(job->notes);
	if (job->rows)
		kept_rows_release(job->rows);
	writer_deinit(&job->answer);
	if (job->done > 0)
		close(job->done);
}

/* ---- what is kept */

static void forget(struct kept *kept)
{
	free(kept->command);
	free(kept->notes);
	if (kept->rows)
		kept_rows_release(kept->rows);
	*kept = (struct kept){ 0 };
}

static void forget_all(struct work *work)
{
	for (size_t i = 0; i < MOST_KEPT; i++)
		forget(&work->kept[i]);
}

/* Give the job what was kept for its command. */
static bool find_kept(struct work *work, struct job *job)
{
	list_for_each(kept, work->kept, MOST_KEPT) {
		if (!kept->command || strcmp(kept->command, job->text) != 0)
			continue;
		kept->used = ++work->uses;
		kept_rows_retain(kept->rows);
		job->rows = kept->rows;
		job->notes = kept->notes ? strdup(kept->notes) : NULL;
		return true;
	}
	return false;
}

static uint64_t kept_bytes(const struct work *work)
{
	uint64_t bytes = 0;

	list_for_each(kept, work->kept, MOST_KEPT)
		bytes += kept->rows ? kept_rows_cost(kept->rows) : 0;
	return bytes;
}

/* The one to be replaced first: a free place, or what was not asked for longest. */
static struct kept *oldest(struct work *work, bool only_taken)
{
	struct kept *found = NULL;

	list_for_each(kept, work->kept, MOST_KEPT)
		if ((kept->rows || !only_taken) && (!found || kept->used < found->used))
			found = kept;
	return found;
}

/* Keep what came of the job, unless that alone is too much. */
static void keep(struct work *work, const struct job *job)
{
	uint64_t cost = kept_rows_cost(job->rows);
	struct kept *kept;

	if (cost > MOST_KEPT_BYTES)
		return;
	while (kept_bytes(work) + cost > MOST_KEPT_BYTES)
		forget(oldest(work, true));
	kept = oldest(work, false);
	forget(kept);
	kept->command = strdup(job->text);
	if (!kept->command)
		return;
	kept->notes = job->notes ? strdup(job->notes) : NULL;
	kept_rows_retain(job->rows);
	kept->rows = job->rows;
	kept->used = ++work->uses;
}

/* ---- running a job */

static const char PREFIX[] = "heapcore: ";

/* The last message, without the program's name. */
static char *last_message(struct capture *messages)
{
	const char *text = capture_text(messages), *start;
	size_t length = strlen(text);

	length -= length && text[length - 1] == '\n';
	start = memrchr(text, '\n', length);
	start = start ? start + 1 : text;
	length -= (size_t)(start - text);
	if (strncmp(start, PREFIX, strlen(PREFIX)) == 0) {
		start += strlen(PREFIX);
		length -= strlen(PREFIX);
	}
	return strndup(start, length);
}

/* Messages that are no findings, which the document has, a line each; or NULL. */
static char *other_messages(struct capture *messages)
{
	static const char *const findings[] = { "note: ", "warning: " };
	const char *line = capture_text(messages), *next;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	for (; out && *line; line = next) {
		bool is_finding = false;

		next = strchrnul(line, '\n');
		next += *next == '\n';
		if (strncmp(line, PREFIX, strlen(PREFIX)) == 0)
			line += strlen(PREFIX);
		for (size_t i = 0; i < COUNT_OF(findings); i++)
			is_finding |= strncmp(line, findings[i], strlen(findings[i])) == 0;
		if (!is_finding)
			fwrite(line, 1, (size_t)(next - line), out);
	}
	if (out)
		fclose(out);
	if (text && *text)
		return text;
	free(text);
	return NULL;
}

static struct error *read_line(struct work *work, const struct job *job, struct line *ret)
{
	TRY(line_split(job->text, ret));
	return reading_check(ret, work->older);
}

/* Let others see what is written; NULL: no more. */
static void show_written(struct work *work, struct kept_rows *rows)
{
	struct kept_rows *former;

	if (rows)
		kept_rows_retain(rows);
	pthread_mutex_lock(&work->lock);
	former = work->written;
	work->written = rows;
	pthread_mutex_unlock(&work->lock);
	if (former)
		kept_rows_release(former);
}

/* Run the line; false: it failed, and messages say why. */
static bool run_line(struct work *work, const struct line *line, FILE *output,
		     struct capture *messages, void (*before)(void *data), void *data)
{
	struct captured captured;

	captured_begin(&captured, work->session, output, NULL, messages->stream);
	if (before) {
		captured.output.before = before;
		captured.output.data = data;
	}
	execute_words(work->session, line->words, line->count);
	return captured_end(work->session);
}

static struct error *run_rows(struct work *work, const struct line *line, struct job *job)
{
	struct session *session = work->session;
	_cleanup_(capture_deinit) struct capture messages = { 0 };
	_cleanup_(kept_rows_release) struct kept_rows *rows = NULL;
	const struct report_format *usual = session->format;
	struct error *error;
	bool fine;

	TRY(capture_init(&messages, MOST_MESSAGES));
	TRY(kept_rows_create(session->debug->temporary_folder, &rows));
	TRY(report_format_find("json", &session->format));
	session->with_kinds = true;
	show_written(work, rows);
	fine = run_line(work, line, kept_rows_stream(rows), &messages, NULL, NULL);
	show_written(work, NULL);
	session->format = usual;
	error = kept_rows_end(rows);
	if (!error && session_interrupted(session))
		error = error_create(ERROR_INTERRUPTED, "cancelled");
	if (error)
		return error;
	if (!fine) {
		job->complaint = last_message(&messages);
		return job->complaint ? NULL : &error_no_memory;
	}
	job->notes = other_messages(&messages);
	job->rows = take(rows);
	return NULL;
}

struct text_limit {
	const struct capture *text;
	atomic_bool *interrupted;
};

/* Nobody sees what else the command has to say. */
static void check_limit(void *data)
{
	const struct text_limit *limit = data;

	if (limit->text->left_out)
		atomic_store(limit->interrupted, true);
}

static struct error *run_text(struct work *work, const struct line *line, struct job *job)
{
	_cleanup_(capture_deinit) struct capture messages = { 0 }, text = { 0 };
	struct text_limit limit = { &text, work->interrupted };
	struct writer *writer = &job->answer;
	_cleanup_(free) char *all = NULL;
	bool is_cut, fine;

	TRY(capture_init(&messages, MOST_MESSAGES));
	TRY(capture_init(&text, MOST_TEXT));
	fine = run_line(work, line, text.stream, &messages, check_limit, &limit);
	capture_cut_to_lines(&text);
	is_cut = text.left_out > 0;
	all = format_text("%s%s", is_cut ? "" : capture_text(&messages), capture_text(&text));
	TRY_MEMORY(all);
	writer_text(writer, "{\"text\": ");
	json_text(writer, all);
	writer_text(writer, ", \"truncated\": ");
	writer_text(writer, json_truth(is_cut));
	writer_text(writer, ", \"failed\": ");
	writer_text(writer, json_truth(!fine && !is_cut));
	writer_text(writer, "}\n");
	return NULL;
}

static struct error *run_words(struct work *work, struct job *job)
{
	struct writer *writer = &job->answer;
	char *text = NULL, *rest = NULL;
	size_t size = 0, count = 0;
	FILE *out = open_memstream(&text, &size);

	TRY_MEMORY(out);
	completion_use(work->session->analysis, true);
	completion_write_line(job->text, out);
	completion_use(NULL, false);
	fclose(out);
	writer_text(writer, "{\"words\": [");
	for (char *word = strtok_r(text, "\n", &rest); word; word = strtok_r(NULL, "\n", &rest)) {
		writer_text(writer, count++ ? ", " : "");
		json_text(writer, word);
	}
	writer_text(writer, "]}\n");
	free(text);
	return NULL;
}

static struct error *run_job(struct work *work, struct job *job)
{
	_cleanup_(line_deinit) struct line line = { 0 };

	if (job->kind == JOB_WORDS)
		return run_words(work, job);
	TRY(read_line(work, job, &line));
	if (reading_changes_answers(&line)) {
		pthread_mutex_lock(&work->lock);
		forget_all(work);
		pthread_mutex_unlock(&work->lock);
	}
	return job->kind == JOB_ROWS ? run_rows(work, &line, job) : run_text(work, &line, job);
}

/* Run it, and keep what came of it. */
static void do_job(struct work *work, struct job *job)
{
	_cleanup_(error_destroy) struct error *error = run_job(work, job);

	if (error && !job->complaint)
		job->complaint = strdup(error_message(error));
	if (job->answer.failed && !job->complaint)
		job->complaint = strdup(error_message(&error_no_memory));
}

/* ---- state */

static void write_findings(struct writer *writer, const struct findings *findings)
{
	writer_text(writer, ", \"findings\": [");
	for (size_t i = 0; i < findings->count; i++) {
		writer_text(writer, i ? ", {" : "{");
		json_finding(writer, &findings->list[i]);
		writer_put(writer, '}');
	}
	writer_put(writer, ']');
}

static void write_process(struct writer *writer, const struct session *session)
{
	const struct image *image = analysis_image(session->analysis);
	bool has_command = image->origin.command[0] && !session->no_content;

	writer_text(writer, ", \"process\": ");
	writer_decimal(writer, (uint64_t)image->origin.process);
	writer_text(writer, ", \"command\": ");
	if (has_command)
		json_text(writer, image->origin.command);
	else
		writer_text(writer, "null");
}

/* By the thread, after each job: findings may have come. */
static void renew_state(struct work *work)
{
	struct writer state = { 0 };

	write_process(&state, work->session);
	write_findings(&state, analysis_findings(work->session->analysis));
	pthread_mutex_lock(&work->lock);
	writer_deinit(&work->state);
	work->state = state;
	pthread_mutex_unlock(&work->lock);
}

static void write_progress(const struct work *work, struct writer *writer)
{
	const struct progress *progress = &work->session->progress.progress;
	const char *task = progress->task;
	uint64_t done = atomic_load(&progress->done), total = progress->total;
	char share[32];

	writer_text(writer, ", \"ready\": ");
	writer_text(writer, json_truth(work->ready));
	writer_text(writer, ", \"working\": ");
	writer_text(writer, json_truth(work->running || !work->ready));
	if (!task || (work->ready && !work->running)) {
		writer_text(writer, ", \"stage\": null");
		return;
	}
	snprintf(share, sizeof(share), "%.3f", done < total ? (double)done / (double)total : 0);
	writer_text(writer, ", \"stage\": {\"text\": ");
	json_text(writer, task);
	writer_text(writer, ", \"share\": ");
	writer_text(writer, share);
	writer_put(writer, '}');
}

static void write_older(const struct work *work, struct writer *writer)
{
	writer_text(writer, ", \"old\": [");
	for (size_t i = 0; i < work->older->count; i++) {
		writer_text(writer, i ? ", " : "");
		json_text(writer, older_core_name(work->older, i));
	}
	writer_put(writer, ']');
}

void work_state(struct work *work, struct writer *writer)
{
	struct stat status = { .st_size = 0 };

	stat(work->core, &status);
	writer_text(writer, "{\"core\": ");
	json_text(writer, work->core);
	writer_text(writer, ", \"size\": ");
	writer_decimal(writer, (uint64_t)status.st_size);
	write_older(work, writer);
	writer_text(writer, ", \"version\": \"" VERSION "\", \"content\": ");
	writer_text(writer, json_truth(!work->session->no_content));
	pthread_mutex_lock(&work->lock);
	write_progress(work, writer);
	if (work->state.used)
		writer_bytes(writer, work->state.buffer, work->state.used);
	else
		writer_text(writer, ", \"process\": null, \"command\": null, \"findings\": []");
	pthread_mutex_unlock(&work->lock);
	writer_text(writer, "}\n");
}

/* ---- the thread */

/* The next job, once there is one; NULL: there will be none. Builds ahead while it waits. */
static struct job *next_job(struct work *work)
{
	struct job *job;

	while (!work->first && !work->ending) {
		work->ahead = analysis_has_ahead(work->session->analysis);
		if (!work->ahead) {
			pthread_cond_wait(&work->changed, &work->lock);
			continue;
		}
		atomic_store(work->interrupted, false);
		pthread_mutex_unlock(&work->lock);
		error_destroy(analysis_build_ahead(work->session->analysis));
		pthread_mutex_lock(&work->lock);
		work->ahead = false;
	}
	job = work->ending ? NULL : work->first;
	if (!job)
		return NULL;
	work->first = job->next;
	work->waiting--;
	work->running = job;
	atomic_store(work->interrupted, false);
	return job;
}

static void tell_done(struct job *job)
{
	eventfd_write(job->done, 1);
}

static void *run(void *data)
{
	struct work *work = data;
	struct job first = { .kind = JOB_ROWS, .text = FIRST_SCREEN };
	struct error *error = session_open(work->session, work->core);
	struct job *job;

	if (!error) {
		do_job(work, &first);
		renew_state(work);
	}
	pthread_mutex_lock(&work->lock);
	work->failure = error;
	work->ready = !error;
	if (first.rows && !first.complaint)
		keep(work, &first);
	if (error)
		eventfd_write(work->failed, 1);
	while (!error && (job = next_job(work)) != NULL) {
		bool is_kept = job->kind == JOB_ROWS && find_kept(work, job);

		pthread_mutex_unlock(&work->lock);
		if (!is_kept) {
			do_job(work, job);
			renew_state(work);
		}
		pthread_mutex_lock(&work->lock);
		work->running = NULL;
		if (!is_kept && job->rows)
			keep(work, job);
		tell_done(job);
	}
	pthread_mutex_unlock(&work->lock);
	job_deinit(&first);
	return NULL;
}

struct error *work_start(struct session *session, const char *core, const struct word_list *older,
			 int failed, struct work **ret)
{
	struct work *work = calloc(1, sizeof(*work));

	TRY_MEMORY(work);
	work->session = session;
	work->core = core;
	work->older = older;
	work->failed = failed;
	work->interrupted = &session->progress.progress.interrupted;
	pthread_mutex_init(&work->lock, NULL);
	pthread_cond_init(&work->changed, NULL);
	errno = pthread_create(&work->thread, NULL, run, work);
	if (errno) {
		free(work);
		return error_system("a thread");
	}
	*ret = work;
	return NULL;
}

void work_stop(struct work *work)
{
	struct job *next;

	pthread_mutex_lock(&work->lock);
	work->ending = true;
	atomic_store(work->interrupted, true);
	for (struct job *job = take(work->first); job; job = next) {
		next = job->next; /* who waits may release the job at once */
		job->cancelled = true;
		tell_done(job);
	}
	pthread_cond_broadcast(&work->changed);
	pthread_mutex_unlock(&work->lock);
	pthread_join(work->thread, NULL);
	forget_all(work);
	writer_deinit(&work->state);
	error_destroy(work->failure);
	pthread_cond_destroy(&work->changed);
	pthread_mutex_destroy(&work->lock);
	free(work);
}

struct error *work_failure(struct work *work)
{
	struct error *error;

	pthread_mutex_lock(&work->lock);
	error = take(work->failure);
	pthread_mutex_unlock(&work->lock);
	return error;
}

/* ---- clients */

/* Under the lock. False: there are too many, or no more. */
static bool enqueue(struct work *work, struct job *job)
{
	struct job **end = &work->first;

	if (work->ending || work->waiting == MOST_WAITING)
		return false;
	while (*end)
		end = &(*end)->next;
	*end = job;
	work->waiting++;
	if (work->ahead)
		atomic_store(work->interrupted, true);
	pthread_cond_broadcast(&work->changed);
	return true;
}

/* Under the lock: the job that runs is interrupted, one that waits is dropped. */
static void cancel(struct work *work, struct job *job)
{
	struct job **place = &work->first;

	job->cancelled = true;
	if (work->running == job) {
		atomic_store(work->interrupted, true);
		return;
	}
	while (*place && *place != job)
		place = &(*place)->next;
	if (!*place)
		return; /* it is done */
	*place = job->next;
	work->waiting--;
	tell_done(job);
}

void work_cancel(struct work *work, const char *id)
{
	struct job *next;

	pthread_mutex_lock(&work->lock);
	if (work->running && work->running->id && strcmp(work->running->id, id) == 0)
		cancel(work, work->running);
	for (struct job *job = work->first; job; job = next) {
		next = job->next;
		if (job->id && strcmp(job->id, id) == 0)
			cancel(work, job);
	}
	pthread_mutex_unlock(&work->lock);
}

bool work_first_rows(struct work *work, const char *id, uint64_t rows, struct writer *writer)
{
	struct kept_rows *written = NULL;
	bool has_rows;

	pthread_mutex_lock(&work->lock);
	if (work->written && work->running && work->running->id &&
	    strcmp(work->running->id, id) == 0) {
		written = work->written;
		kept_rows_retain(written);
	}
	pthread_mutex_unlock(&work->lock);
	if (!written)
		return false;
	has_rows = kept_rows_write_first(written, rows, writer);
	kept_rows_release(written);
	return has_rows;
}

/* The connection's end comes as an event of its own. */
static void wait_for(struct work *work, struct job *job, int connection)
{
	struct pollfd files[] = { { job->done, POLLIN, 0 }, { connection, POLLRDHUP, 0 } };

	for (;;) {
		if (poll(files, COUNT_OF(files), -1) < 0)
			continue;
		if (files[0].revents)
			return;
		files[1].fd = -1;
		pthread_mutex_lock(&work->lock);
		cancel(work, job);
		pthread_mutex_unlock(&work->lock);
	}
}

bool work_do(struct work *work, struct job *job, int connection)
{
	bool is_kept, is_queued;

	pthread_mutex_lock(&work->lock);
	is_kept = job->kind == JOB_ROWS && find_kept(work, job);
	if (!is_kept)
		job->done = eventfd(0, EFD_CLOEXEC);
	is_queued = !is_kept && job->done > 0 && enqueue(work, job);
	pthread_mutex_unlock(&work->lock);
	if (is_queued)
		wait_for(work, job, connection);
	return is_kept || (is_queued && !job->cancelled);
}
