/*
 * The calls that allocated what leaked, from another run of the program.
 */
#pragma once

#include "analyzer/gate/leak_stacks.h"
#include "analyzer/report/report.h"

/*
 * Find those of the kinds that count, if the program can be run again; they tell who allocated a
 * kind. What keeps them from being found is a finding.
 */
struct error *gate_find_stacks(struct analysis *analysis, struct leak_kinds *kinds,
			       struct leak_stacks *ret);

void gate_write_stacks(const struct leak_kinds *kinds, const struct leak_stacks *stacks,
		       struct report *report);

/* Name who allocated the kind, and where, by a recorded stack. */
struct error *gate_name_caller(struct leak_kind *kind, const struct recorded *recorded,
			       uint64_t stack);
