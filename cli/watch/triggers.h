/*
 * When heapcore watch looks into a process: judged from readings alone, so that no clock and no
 * kernel is needed to test it.
 *
 *	memory	  what is used passes the threshold; again at half of what is left then, and at half
 *of the rest, so that the last answer is close to the end pressure  the kernel tells of pressure,
 *and the threshold is near growth	  anonymous memory is higher by so much than at its lowest
 *within the last so long
 *
 * Each is set again once it no longer holds, or after the process was looked into.
 */
#pragma once

#include "analyzer/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cause { CAUSE_NONE, CAUSE_ASKED, CAUSE_MEMORY, CAUSE_PRESSURE, CAUSE_GROWTH, CAUSES };

extern const char *const cause_names[CAUSES];

struct trigger_options {
	unsigned int percent; /* of the limit; 0: see size */
	uint64_t size;	      /* bytes in use; 0: neither */
	uint64_t growth;      /* bytes; 0: not looked at */
	double growth_time;   /* seconds */
};

struct reading {
	double time; /* seconds, from any moment on */
	uint64_t used;
	uint64_t most; /* 0: there is no limit */
	bool pressed;
	bool has_anonymous; /* it was looked at this time */
	uint64_t anonymous;
};

enum { LOWEST_COUNT = 64 };

struct triggers {
	struct trigger_options options;
	uint64_t next; /* use that is looked into again; 0: the threshold */
	bool was_pressed;
	/* The lowest anonymous memory in each part of the time, a ring; 0: none was read. */
	uint64_t lowest[LOWEST_COUNT];
	uint64_t part; /* number of the last */
};

/* "85%" or "3G"; "200M/h" or "50M/10m"; "4/h". */
struct error *parse_memory(const char *word, struct trigger_options *ret);
struct error *parse_growth(const char *word, struct trigger_options *ret);
struct error *parse_hourly(const char *word, uint64_t *ret);

/* Bytes in use from which on the process is looked into; UINT64_MAX: never. */
uint64_t triggers_threshold(const struct triggers *triggers, uint64_t most);

/* Why to look now. */
enum cause triggers_judge(struct triggers *triggers, const struct reading *reading);

/* It was looked into, or is left alone for another reason: wait for what comes beyond. */
void triggers_done(struct triggers *triggers, const struct reading *reading);
