#include "cli/watch/watch.h"

#include "analyzer/base/progress.h"
#include "analyzer/base/text.h"
#include "cli/prompt/switches.h"
#include "cli/watch/events.h"
#include "cli/watch/keeping.h"
#include "cli/watch/look.h"
#include "cli/watch/triggers.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static const char DOCUMENTATION[] =
	"Wait beside a process until its memory is nearly used up, or grows too fast, and then keep a core of it and who holds its memory, before the kernel kills it.\vTARGET is the number of a process; name:NAME for the largest process of that name, which is waited for; a control group, as a folder or as in /proc/PID/cgroup; or a unit of systemd, such as shop.service. Of several processes the largest is examined. SIGUSR1 asks for that now.\n"
	"\n"
	"DIR/TIME-NAME-PID/ has core.zst without contents (or core), reason.json, screen.txt, leaks.txt and growth.txt (since the look before), DIR/latest leads to the newest, DIR/metrics.prom is for scrapers. The oldest make room for new ones.\n"
	"\n"
	"COMMAND gets the paths in HEAPCORE_DIR, HEAPCORE_CORE, HEAPCORE_SCREEN, HEAPCORE_LEAKS, HEAPCORE_GROWTH and HEAPCORE_REASON; also HEAPCORE_PID, HEAPCORE_NAME and HEAPCORE_CAUSE.\n"
	"\n"
	"Exit status: 0 if the process ended, or after SIGTERM; 2 for wrong usage; 3 if the last look failed.";

struct watch_options {
	struct keeping keeping; /* first: its options are among these */
	const char *target;
	const char *memory, *growth;
	struct trigger_options triggers;
	bool all, whole;
};

static const struct argp_option OPTIONS[] = {
	{ "memory", KEEP(TEXT, struct watch_options, memory), "PERCENT%|SIZE", 0,
	  "Examine it when so much of the limit is used (85%), and again at half of what is left",
	  0 },
	{ "growth", KEEP(TEXT, struct watch_options, growth), "SIZE/TIME", 0,
	  "Examine it when private memory grew by SIZE within TIME, as in 200M/h", 0 },
	{ "all", KEEP(FLAG, struct watch_options, all), NULL, 0,
	  "Examine all processes of the group, not only the largest", 0 },
	KEEPING_OPTIONS,
	{ "whole", KEEP(FLAG, struct watch_options, whole), NULL, 0,
	  "Keep cores with contents; the default is one without in their place, where it can be made",
	  0 },
	{ 0 },
};

enum { DEFAULT_PERCENT = 85 };

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
	struct watch_options *options = state->input;

	if (key != ARGP_KEY_ARG)
		return switch_take(OPTIONS, key, argument, state);
	if (options->target)
		argp_error(state, "only one TARGET can be given");
	options->target = argument;
	return 0;
}

const struct argp watch_parser = {
	.options = OPTIONS,
	.parser = parse_option,
	.args_doc = "-o DIR TARGET",
	.doc = DOCUMENTATION,
};

static struct error *check(struct watch_options *options)
{
	if (!options->target)
		return error_create(ERROR_USAGE, "give a process, a control group or a unit");
	if (options->whole && options->keeping.answers.slim)
		return error_create(ERROR_USAGE, "give --slim or --whole");
	options->keeping.answers.prefers_slim = !options->whole;
	options->triggers.percent = DEFAULT_PERCENT;
	if (options->memory) {
		options->triggers.percent = 0;
		TRY(parse_memory(options->memory, &options->triggers));
	}
	if (options->growth)
		TRY(parse_growth(options->growth, &options->triggers));
	return keeping_check(&options->keeping);
}

struct watch {
	struct watch_options options;
	struct session session;
	struct target target;
	struct triggers triggers;
	struct events events;
	struct meter meters[MOST_METERS];
	size_t meter_count, nearest; /* the meter of which the reading is */
	struct reading reading;
	double rate;	    /* bytes a second by which use rises: the most, lately */
	double next_check;  /* of whether processes are left */
	double next_growth; /* when private memory is looked at again */
	pid_t *processes;   /* room for MOST_PROCESSES; owned */
	size_t looks;
	bool told_full;
};

/* Private memory of all processes of the target. */
static uint64_t sum_anonymous(struct watch *watch)
{
	size_t count = target_processes(&watch->target, watch->processes);
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += anonymous_memory(watch->processes[i]);
	return sum;
}

/* The meter that is nearest to its end tells. */
static void read_meters(struct watch *watch)
{
	double highest = -1;

	for (size_t i = 0; i < watch->meter_count; i++) {
		uint64_t used, most;

		if (!meter_read(&watch->meters[i], watch->triggers.options.percent, &used, &most) ||
		    most == 0 || (double)used / (double)most <= highest)
			continue;
		highest = (double)used / (double)most;
		watch->reading.used = used;
		watch->reading.most = most;
		watch->nearest = i;
	}
}

static const struct group_limit *limit_of(const struct watch *watch)
{
	return watch->meter_count && watch->meters[0].kind == METER_GROUP ? &watch->meters[0].limit
									  : NULL;
}

/* The group's limits are there once a process is. */
static void find_meters(struct watch *watch)
{
	const struct group_limit *limit;

	watch->meter_count = target_meters(&watch->target, watch->meters);
	limit = limit_of(watch);
	if (limit)
		events_listen(&watch->events, limit,
			      triggers_threshold(&watch->triggers, limit->most));
}

/* The most of late is forgotten in some seconds. */
static void rate_use(struct watch *watch, const struct reading *last)
{
	static const double FORGETTING = 0.5; /* a second */
	double passed = watch->reading.time - last->time, rate;

	if (last->time == 0 || passed <= 0)
		return;
	rate = ((double)watch->reading.used - (double)last->used) / passed;
	watch->rate -= watch->rate * (passed < 1 ? passed : 1) * FORGETTING;
	if (rate > watch->rate)
		watch->rate = rate;
}

static void read_all(struct watch *watch, bool pressed)
{
	const struct trigger_options *options = &watch->triggers.options;
	const struct reading last = watch->reading;
	struct reading *reading = &watch->reading;

	*reading = (struct reading){ .time = clock_now(), .pressed = pressed };
	if (watch->meter_count == 0)
		find_meters(watch);
	if (options->percent)
		read_meters(watch);
	else
		reading->used = sum_anonymous(watch);
	rate_use(watch, &last);
	reading->has_anonymous = options->growth && reading->time >= watch->next_growth;
	if (reading->has_anonymous) {
		reading->anonymous = sum_anonymous(watch);
		watch->next_growth = reading->time + options->growth_time / LOWEST_COUNT;
	}
}

/* Seconds until so many bytes are used; below 0: it cannot be told. */
static double seconds_until(const struct watch *watch, uint64_t use)
{
	uint64_t used = watch->reading.used;

	if (use == 0 || use == UINT64_MAX || watch->rate < 1)
		return -1;
	return use > used ? (double)(use - used) / watch->rate : 0;
}

/* Milliseconds until files are read again: seldom, unless the threshold is near. */
static int pause_of(const struct watch *watch)
{
	enum { SOONEST = 10, SOON = 50, LATER = 250, EMPTY = 1000 };
	uint64_t threshold = triggers_threshold(&watch->triggers, watch->reading.most);
	double seconds = seconds_until(watch, threshold);

	if (watch->meter_count == 0)
		return EMPTY;
	if (threshold == UINT64_MAX || watch->reading.used < threshold - threshold / 4)
		return seconds >= 0 && seconds * 500 < LATER ? SOON : LATER;
	return seconds >= 0 && seconds * 500 < SOON ? SOONEST : SOON;
}

static void look(struct watch *watch, pid_t process, enum cause cause)
{
	const struct meter *meter = &watch->meters[watch->nearest];
	struct look look = {
		.process = process,
		.cause = cause_names[cause],
		.meter = watch->reading.most ? meter_name(meter) : "",
		.used = watch->reading.used,
		.most = watch->reading.most,
		.seconds = seconds_until(watch, watch->reading.most),
		.limit = limit_of(watch),
	};
	struct error *error = look_into(&watch->session, &watch->options.keeping, &look);

	if (error)
		session_complain(&watch->session, error_wrap(error, "process %d", process));
	else
		watch->looks++;
	/* The last of several looks decides. */
	watch->session.failed = error;
	watch->session.wrong_usage = false;
}

/* The largest in front. */
static void put_largest_first(pid_t *processes, size_t count)
{
	uint64_t most = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t size = anonymous_memory(processes[i]);
		pid_t process = processes[i];

		if (size <= most)
			continue;
		most = size;
		processes[i] = processes[0];
		processes[0] = process;
	}
}

static void act(struct watch *watch, enum cause cause)
{
	size_t count = target_processes(&watch->target, watch->processes);

	if (cause != CAUSE_ASKED && shelf_is_full(&watch->options.keeping.shelf)) {
		if (!watch->told_full)
			session_note(&watch->session,
				     "no look (%s): %" PRIu64 " were taken within an hour (--max)",
				     cause_names[cause], watch->options.keeping.shelf.hourly);
		watch->told_full = true;
		return;
	}
	watch->told_full = false;
	put_largest_first(watch->processes, count);
	for (size_t i = 0; i < count && (i == 0 || watch->options.all); i++)
		if (!session_interrupted(&watch->session))
			look(watch, watch->processes[i], cause);
}

static void tell_begin(struct watch *watch)
{
	char most[NUMBER_SIZE];

	read_all(watch, false);
	if (watch->meter_count == 0)
		session_note(&watch->session, "waiting for %s", watch->target.word);
	else if (watch->reading.most)
		session_note(&watch->session, "watching %s against %s, %s", watch->target.word,
			     meter_name(&watch->meters[watch->nearest]),
			     in_largest_unit(watch->reading.most, most));
	else
		session_note(&watch->session, "watching %s", watch->target.word);
}

static void tell_end(struct watch *watch)
{
	session_note(&watch->session, "%s has ended%s; %zu look%s in %s", watch->target.word,
		     events_killed(&watch->events) ? ", killed for want of memory" : "",
		     watch->looks, watch->looks == 1 ? "" : "s",
		     watch->options.keeping.shelf.folder);
}

static struct error *begin(struct watch *watch)
{
	struct watch_options *options = &watch->options;

	TRY(target_open(options->target, &watch->target));
	watch->processes = calloc(MOST_PROCESSES, sizeof(*watch->processes));
	TRY_MEMORY(watch->processes);
	TRY(shelf_open(&options->keeping.shelf));
	TRY(events_open(&watch->events,
			watch->target.kind == TARGET_PROCESS ? watch->target.end : -1));
	watch->triggers.options = options->triggers;
	tell_begin(watch);
	/* From here on growth counts. */
	triggers_judge(&watch->triggers, &watch->reading);
	return look_obstacle(options->keeping.shelf.folder, limit_of(watch));
}

/* Find out, once a second, whether any process is left. */
static void check_processes(struct watch *watch)
{
	double now = clock_now();

	if (now < watch->next_check)
		return;
	watch->next_check = now + 1;
	if (watch->meter_count == 0 || target_processes(&watch->target, watch->processes) > 0)
		return;
	watch->meter_count = 0;
	events_forget(&watch->events);
}

static void watch_all(struct watch *watch)
{
	while (!session_interrupted(&watch->session)) {
		struct happened happened = { 0 };
		enum cause cause;

		events_await(&watch->events, pause_of(watch), &happened);
		if (target_has_ended(&watch->target)) {
			tell_end(watch);
			return;
		}
		check_processes(watch);
		read_all(watch, happened.pressed);
		if (watch->meter_count == 0)
			continue;
		cause = triggers_judge(&watch->triggers, &watch->reading);
		if (happened.asked || cause) {
			act(watch, happened.asked ? CAUSE_ASKED : cause);
			triggers_done(&watch->triggers, &watch->reading);
		}
	}
}

/* SIGTERM, by which services are ended, as SIGINT. */
static void catch_end(struct progress *progress)
{
	struct sigaction action;

	interrupt_catch(progress, true);
	sigaction(SIGINT, NULL, &action);
	sigaction(SIGTERM, &action, NULL);
}

static struct error *run(struct watch *watch, int count, char **arguments)
{
	struct watch_options *options = &watch->options;
	struct error *error;

	if (argp_parse(&watch_parser, count, arguments, 0, NULL, options))
		return &error_no_memory;
	error = check(options);
	session_init(&watch->session, options->keeping.quiet);
	/* Nobody sees progress. */
	progress_line_init(&watch->session.progress, NULL);
	catch_end(&watch->session.progress.progress);
	TRY(error);
	TRY(begin(watch));
	watch_all(watch);
	return NULL;
}

static void watch_deinit(struct watch *watch)
{
	events_close(&watch->events);
	target_close(&watch->target);
	free(watch->processes);
	session_deinit(&watch->session);
}
DEFINE_DEINIT(watch_deinit, struct watch)

int watch_main(int count, char **arguments)
{
	_cleanup_(watch_deinit) struct watch watch = { .target.end = -1, .events = NO_EVENTS };
	struct error *error;

	umask(S_IRWXG | S_IRWXO); /* memory holds secrets */
	error = run(&watch, count, arguments);
	if (error)
		session_complain(&watch.session, error);
	return session_status(&watch.session);
}
