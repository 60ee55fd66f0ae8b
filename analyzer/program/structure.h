/*
 * Words other than addresses that the C library and its loader write into a process's memory, and
 * the analysis reads: numbers of threads, sizes of their stacks, tables of thread-local variables,
 * names of modules. A core without contents keeps them (analyzer/slim).
 */
#pragma once

#include "analyzer/program/program.h"

/* Visit each such range; they may overlap, and may be absent. An error ends the visit. */
struct error *program_visit_structure(const struct program *program, program_range_visitor *visit,
				      void *data);
