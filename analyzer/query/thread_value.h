/*
 * The value of a thread in a row: the kernel's number of it.
 */
#ifndef ANALYZER_QUERY_THREAD_VALUE_H
#define ANALYZER_QUERY_THREAD_VALUE_H

#include "analyzer/program/program.h"
#include "analyzer/report/report.h"

/* Absent, if thread is NO_THREAD. */
static inline void report_thread(struct report *report, const struct program *program,
				 uint32_t thread)
{
	report_add(report, VALUE_IF(thread != NO_THREAD, program_thread(program, thread)->id));
}

#endif
