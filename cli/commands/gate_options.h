/*
 * The switches of the command `gate`.
 */
#pragma once

#include "analyzer/query/kind.h"

#include "cli/command.h"

/* The measure that a limit applies to. */
enum gate_measure {
	MEASURE_LEAKED,
	MEASURE_LEAKED_BYTES,
	MEASURE_USED,
	MEASURE_CLASS,
	MEASURE_GROWTH,
	MEASURE_CLASS_GROWTH,
	MEASURE_GROWING, /* kinds that grow from each core to the next; without a switch */
	MEASURES,
};

struct gate_measure_facts {
	const char *name; /* of its switch */
	const char *noun; /* the unit; the name of the class follows */
	bool of_leaks, of_class, of_growth;
};

extern const struct gate_measure_facts gate_measures[MEASURES];

struct gate_limit {
	enum gate_measure measure;
	const char *typed; /* the value; borrowed */
	uint64_t limit;
	struct kind kind; /* of a class */
	char *name;	  /* its word; owned */
};

struct gate_options {
	struct gate_limit *limits;
	size_t limit_count;
	const char *baseline;	  /* or NULL */
	const char *compared;	  /* an older core, or NULL */
	struct word_list growing; /* older cores, the oldest first */
	struct word_list suppress;
	bool update, ratchet;
	bool likely;
	bool no_known;
	bool self_check;
};

extern const struct argp_option gate_switches[];

struct error *gate_options_parse(int key, const char *value, void *options);
void gate_options_release(void *options);
