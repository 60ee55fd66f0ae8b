/*
 * The command line of `heapcore run`.
 *
 *	heapcore run [OPTIONS] -- PROGRAM [ARGUMENTS...]
 *
 * What is no option of its own is one of the gate's.
 */
#ifndef CLI_LIVE_RUN_OPTIONS_H
#define CLI_LIVE_RUN_OPTIONS_H

#include "cli/options.h"

#include <argp.h>
#include <stdint.h>

struct run_options {
	char **program; /* and its arguments, NULL behind them */
	const char *core_path;
	bool portable;
	const char *log_path;
	const char *format;
	struct report_file_names files; /* of -o */
	uint64_t timeout;		/* seconds; 0: none */
	int error_status;		/* where the gate found something; 0: the gate's */
	bool follow;
	bool quiet;
	bool no_content;
	enum colour colour;
	struct debug_options debug;
	const char **commands; /* of -c, instead of the gate */
	size_t command_count;
	char **gate; /* the words of the gate, its name first */
	size_t gate_count;
};

extern const struct argp run_parser; /* for the manual, too */

/* All that options point to is in arguments. Exits if they are wrong. */
void run_options_parse(int count, char **arguments, struct run_options *ret);
void run_options_deinit(struct run_options *options);
DEFINE_DEINIT(run_options_deinit, struct run_options)

#endif
