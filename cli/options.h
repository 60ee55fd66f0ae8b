/*
 * The command line of heapcore.
 *
 *	heapcore [OPTIONS] CORE [COMMAND WORDS...]
 *	heapcore [OPTIONS] -p PID [COMMAND WORDS...]
 *	heapcore [OPTIONS] --coredumpctl MATCH [COMMAND WORDS...]
 *	heapcore [OPTIONS] diff OLD [OLD...] CORE
 *
 * What follows CORE belongs to the command, switches too.
 */
#pragma once

#include "cli/command.h"
#include "cli/live/process_root.h"
#include "cli/prompt/reports.h"

#include <argp.h>

/* Commands given by -c or -f, in the order of both. */
struct given {
	const char *text;
	bool is_file;
};

struct options {
	const char *core;
	const char *process;		      /* that a core is to be taken of, or NULL */
	char process_root[PROCESS_ROOT_SIZE]; /* of a process with files of its own */
	const char *kept;		      /* a match of coredumpctl(1) instead, or NULL */
	char **words;			      /* of the command behind CORE */
	size_t word_count;
	char **arguments; /* owned: those of the command line, options in front */
	struct given *given;
	size_t given_count;
	struct word_list compared;	/* older cores, of --compare */
	const char *format;		/* NULL: text */
	const char *table;		/* the only one to be written; or NULL */
	struct tag_words tags;		/* of --tag */
	struct report_file_names files; /* of -o */
	const char *manual;		/* only write it, in that form; or NULL */
	enum colour colour;
	size_t maximum_memory; /* bytes; 0: not told */
	bool truncation_check;
	unsigned int threads; /* 0: one a processor */
	bool side_file, verify_side_file;
	bool verbose;
	bool quiet;
	bool no_content;
	bool no_cache;
	bool chap;
	bool no_pager;
	struct debug_options debug;
};

/* The usage, one form a line, and the options. */
extern const char program_usages[];
extern const struct argp_option program_options[];

/* The place of the first argument that is neither an option nor the value of one, or count. */
int options_end(int count, char **arguments);

/* All that options point to is in arguments. Exits if they are wrong. */
void options_parse(int count, char **arguments, struct options *ret);
void options_deinit(struct options *options);
DEFINE_DEINIT(options_deinit, struct options)
