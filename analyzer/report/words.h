/*
 * Memory as people read it: 8-byte words, four to a line of 0x20 bytes.
 *
 *	 0:     55bd4cec3ca0                0     55bd5b510a40               18
 *	20:                1                0
 *
 * A line begins with its offset, or address, unless there is only one. What is absent from the dump
 * is said in a line of its own. The last line is left open, for more to follow.
 */
#ifndef ANALYZER_REPORT_WORDS_H
#define ANALYZER_REPORT_WORDS_H

#include "analyzer/report/report.h"
#include "analyzer/report/writer.h"

void words_write(struct writer *writer, const struct memory_view *view);

#endif
