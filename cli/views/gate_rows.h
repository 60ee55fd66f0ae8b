/*
 * The tables of the command `gate`.
 */
#ifndef CLI_VIEWS_GATE_ROWS_H
#define CLI_VIEWS_GATE_ROWS_H

#include "analyzer/gate/baseline.h"
#include "analyzer/gate/suppressions.h"
#include "analyzer/report/report.h"
#include "cli/commands/gate_options.h"

/* A limit, and what there is. */
struct gate_check {
	const struct gate_limit *limit;
	uint64_t value;
	bool is_nothing; /* nothing is of its kind, so that may be mistyped */
};

static inline bool gate_check_failed(const struct gate_check *check)
{
	return check->value > check->limit->limit;
}

/* "--max-leaked 0", "leaked allocations"; to be freed, NULL: out of memory. */
char *gate_check_rule(const struct gate_check *check);
char *gate_check_what(const struct gate_check *check);

void gate_write_leaks(struct report *report, const struct leak_kinds *kinds);

/* What several leaks reach, and how much of it counts. */
void gate_write_shared(struct report *report, struct leak_total shared, struct leak_total counted);
void gate_write_gone(struct report *report, const struct baseline *baseline);
void gate_write_unused(struct report *report, const struct suppressions *suppressions);
void gate_write_checks(struct report *report, const struct gate_check *checks, size_t count);

struct gate_outcome {
	const char *name; /* "passed", "failed" or "incomplete" */
	struct leak_total leaked;
	uint64_t suppressed, known; /* allocations */
};

void gate_write_outcome(struct report *report, const struct gate_outcome *outcome);

#endif
