/*
 * Debug information that is compressed in its file, made readable in place.
 *
 * libdw would hold all of it in memory once any of it is needed. Instead the sections are
 * decompressed, piece by piece, into a file that has no name and is mapped like any other: only
 * what is looked at comes to memory.
 */
#ifndef ANALYZER_PROGRAM_DEBUG_UNPACK_H
#define ANALYZER_PROGRAM_DEBUG_UNPACK_H

#include "analyzer/program/debug/files.h"

/*
 * A file like the given one without compressed sections. -1: it has none, or there is no place for
 * such a file.
 */
int debug_file_unpack(const struct debug_file *file);

#endif
