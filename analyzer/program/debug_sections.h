/*
 * The sections of debug information as they stand in their file, or
 * decompressed by libdw.
 */
#ifndef ANALYZER_PROGRAM_DEBUG_SECTIONS_H
#define ANALYZER_PROGRAM_DEBUG_SECTIONS_H

#include "analyzer/program/debug_cursor.h"

#include <elfutils/libdw.h>

/* The section of that name; an empty one if there is none. */
struct cursor debug_section(Dwarf *dwarf, const char *name);

#endif
