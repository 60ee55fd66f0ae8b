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

/* Rows of argp's table of options, less the last comma; a keeping begins the command's options. */
#define KEEPS(name, kind, member, value, doc)                              \
	{                                                                  \
		name, KEEP(kind, struct keeping, member), value, 0, doc, 0 \
	}
#define KEEPS_BY_LETTER(name, letter, kind, member, value, doc)                            \
	{                                                                                  \
		name, letter, value, BY_LETTER(KEEP(kind, struct keeping, member)), doc, 0 \
	}
#define KEEPING_OPTIONS                                                                             \
	KEEPS_BY_LETTER("output", 'o', TEXT, shelf.folder, "DIR", "Where cores and answers go"),    \
		KEEPS("max", TEXT, hourly, "N/h",                                                   \
		      "Keep at most N in an hour (6), 0 for no limit"),                             \
		KEEPS("room", SIZE, shelf.room, "SIZE", "Keep at most SIZE in DIR, such as 20G"),   \
		KEEPS("keep", TEXT, keep, "TIME",                                                   \
		      "Keep nothing for longer than TIME, such as 7d"),                             \
		KEEPS("exec", TEXT, answers.command, "COMMAND",                                     \
		      "Run COMMAND by the shell after each"),                                       \
		KEEPS("metrics", TEXT, answers.metrics, "FILE",                                     \
		      "Write OpenMetrics to FILE, not to DIR/metrics.prom"),                        \
		KEEPS_BY_LETTER("quiet", 'q', FLAG, quiet, NULL, "Report only errors"),             \
		KEEPS("max-memory", SIZE, answers.maximum_memory, "SIZE",                           \
		      "Use at most SIZE of memory to analyse a core"),                              \
		KEEPS("no-content", FLAG, answers.no_content, NULL,                                 \
		      "Leave the contents of memory out of all answers"),                           \
		KEEPS("slim", FLAG, answers.slim, NULL,                                             \
		      "Once a core was analysed, keep one without contents in its place, or none"), \
		KEEPS("no-cache", FLAG, no_cache, NULL,                                             \
		      "Keep nothing for other cores of the build"),                                 \
		KEEPS("debug-dir", TEXT, answers.debug.debug_directory, "DIR",                      \
		      "Also search DIR for separate debug files")

/* Check what was given, once all is; what was not gets its default. */
struct error *keeping_check(struct keeping *keeping);
