/*
 * The switches of the command `gate`.
 */
#ifndef CLI_COMMANDS_GATE_OPTIONS_H
#define CLI_COMMANDS_GATE_OPTIONS_H

#include "analyzer/query/kind.h"

#include "cli/command.h"

/* What is limited. */
enum gate_measure {
	MEASURE_LEAKED,
	MEASURE_LEAKED_BYTES,
	MEASURE_USED,
	MEASURE_CLASS,
	MEASURE_GROWTH,
	MEASURE_CLASS_GROWTH,
};

struct gate_limit {
	enum gate_measure measure;
	const char *typed; /* the value; borrowed */
	uint64_t limit;
	struct kind kind; /* of MEASURE_CLASS and MEASURE_CLASS_GROWTH */
	char *name;	  /* its word; owned */
};

struct gate_options {
	struct gate_limit *limits;
	size_t limit_count;
	const char *baseline; /* or NULL */
	const char *compared; /* an older core, or NULL */
	const char **suppress;
	size_t suppress_count;
	bool update, ratchet;
	bool likely;
	bool self_check;
};

extern const struct argp_option gate_switches[];
extern const struct switch_place gate_places[];

struct error *gate_options_parse(int key, const char *value, void *options);
void gate_options_release(void *options);

/* The switch that sets such a limit, as "--max-leaked". */
const char *gate_measure_switch(enum gate_measure measure);

/* Whether it is about growth since an older core. */
bool gate_measures_growth(enum gate_measure measure);

#endif
