/*
 * Selects what a core needs from mapped files to be read on a machine without them.
 *
 * It is what names need and what never changes: type names, vtables, dynamic symbols, unwinding
 * tables. All of it is in the segments of programs and libraries without code; only old linkers put
 * it beside code. The classes of Crystal are known by code alone, so where Boehm's collector is
 * about, the program's own code is needed, too.
 */
#pragma once

#include "analyzer/capture/source.h"

/* Find which areas of the map are needed: an array of bool, to be freed. */
struct error *portable_find(const struct source *source, const struct memory_map *map, bool **ret);
