/*
 * Switches that `heapcore watch` and `receive` share: where cores and answers go, how many stay,
 * and what is done with each.
 */
#pragma once

#include "cli/command.h"
#include "cli/watch/answers.h"

struct keeping {
	struct shelf shelf;
	struct answers_options answers;
	const char *hourly, *keep; /* as they were given; or NULL */
	bool quiet, no_cache;
};

/* Keys of the switches; those of a command's own begin behind them. */
enum {
	KEY_MAXIMUM = 256,
	KEY_ROOM,
	KEY_KEEP,
	KEY_EXEC,
	KEY_METRICS,
	KEY_MAXIMUM_MEMORY,
	KEY_NO_CONTENT,
	KEY_SLIM,
	KEY_NO_CACHE,
	KEY_DEBUG_DIR,
	KEY_OWN,
};

/* Rows of argp's table of options, less the last comma. */
#define KEEPING_OPTIONS                                                                                \
	{ "output", 'o', "DIR", 0, "Where cores and answers go", 0 },                                  \
		{ "max", KEY_MAXIMUM, "N/h", 0, "Keep at most N in an hour (6), 0 for no limit", 0 },  \
		{ "room", KEY_ROOM, "SIZE", 0, "Keep at most SIZE in DIR, such as 20G", 0 },           \
		{ "keep", KEY_KEEP, "TIME", 0, "Keep nothing for longer than TIME, such as 7d", 0 },   \
		{ "exec", KEY_EXEC, "COMMAND", 0, "Run COMMAND by the shell after each", 0 },          \
		{ "metrics",                                                                           \
		  KEY_METRICS,                                                                         \
		  "FILE",                                                                              \
		  0,                                                                                   \
		  "Write OpenMetrics to FILE, not to DIR/metrics.prom",                                \
		  0 },                                                                                 \
		{ "quiet", 'q', NULL, 0, "Report only errors", 0 },                                    \
		{ "max-memory",                                                                        \
		  KEY_MAXIMUM_MEMORY,                                                                  \
		  "SIZE",                                                                              \
		  0,                                                                                   \
		  "Use at most SIZE of memory to analyse a core",                                      \
		  0 },                                                                                 \
		{ "no-content",                                                                        \
		  KEY_NO_CONTENT,                                                                      \
		  NULL,                                                                                \
		  0,                                                                                   \
		  "Leave the contents of memory out of all answers",                                   \
		  0 },                                                                                 \
		{ "slim",                                                                              \
		  KEY_SLIM,                                                                            \
		  NULL,                                                                                \
		  0,                                                                                   \
		  "Once a core was analysed, keep one without contents in its place, or none",         \
		  0 },                                                                                 \
		{ "no-cache", KEY_NO_CACHE, NULL, 0, "Keep nothing for other cores of the build", 0 }, \
	{                                                                                              \
		"debug-dir", KEY_DEBUG_DIR, "DIR", 0, "Also search DIR for separate debug files",      \
			0                                                                              \
	}

/* Keep the value of one of these switches; false: it is none. */
bool keeping_keep(struct keeping *keeping, int key, const char *argument, struct error **ret_error);

/* Check what was given, once all is; what was not gets its default. */
struct error *keeping_check(struct keeping *keeping);
