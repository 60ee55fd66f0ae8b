/*
 * Finds allocations that there may be more of from core to core, though not for ever: caches that
 * a module's data or an interpreter has for itself, and fills slowly.
 *
 * What the data of a module refers to itself is no more than that has room for: an array of
 * pointers fills, and a list grows. And of what a language's interpreter leads to, only what the
 * program has names for is the program's, with all that this alone holds; the rest are free lists,
 * tables of types, compiled code, garbage that an old word still refers to, and what hangs on
 * garbage in memory of its collector. The class in which all names stand may alone hold the
 * interpreter's state, so its name means only itself. That counts in programs with such names
 * only.
 */
#pragma once

#include "analyzer/analysis/analysis.h"

/* Builds what it needs; ret is to be deinitialised in any case. */
struct error *bounded_find(struct analysis *analysis, struct bitmap *ret);
