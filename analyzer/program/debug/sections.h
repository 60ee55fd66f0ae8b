/*
 * The sections of debug information as they stand in their file, or decompressed by libdw.
 */
#ifndef ANALYZER_PROGRAM_DEBUG_SECTIONS_H
#define ANALYZER_PROGRAM_DEBUG_SECTIONS_H

#include "analyzer/program/debug/cursor.h"

#include <elfutils/libdw.h>
#include <gelf.h>

/*
 * The section of that name, and by *ret its header, copied: in the file, it may stand at any
 * address. NULL: elf, which may be NULL, has none.
 */
Elf_Scn *debug_section_find(Elf *elf, const char *name, GElf_Shdr *ret);

/* The section of that name; an empty one if there is none. */
struct cursor debug_section(Dwarf *dwarf, const char *name);

#endif
