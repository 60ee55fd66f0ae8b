/*
 * Memory that a program cannot have been without, and that the dump lacks: what only it refers to
 * looks leaked.
 */
#ifndef ANALYZER_PROGRAM_MISSING_H
#define ANALYZER_PROGRAM_MISSING_H

#include "analyzer/base/findings.h"
#include "analyzer/program/program.h"

/* Tell of stacks, thread-local storage and data of modules that are missing. */
void missing_report(const struct image *image, const struct program *program,
		    struct findings *findings);

#endif
