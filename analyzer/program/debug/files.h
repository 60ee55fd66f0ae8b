/*
 * Finding the files of a module: its own, and separate debug files; and the sections in them.
 *
 * Each is opened here and nowhere else, only if it is a regular file, and is used only if it has
 * the build-id that the module has in the dump.
 */
#pragma once

#include "analyzer/image/files.h"
#include "analyzer/program/debug/cursor.h"
#include "analyzer/program/debug/debug.h"

#include <elfutils/libdw.h>
#include <gelf.h>

/* An ELF file that was opened; { -1, NULL, NULL } is none. */
struct debug_file {
	int fd;
	Elf *elf;
	char *path; /* as it was looked up, below the sysroot */
};

void debug_file_close(struct debug_file *file);

/* The file of that absolute path, below the sysroot, if its id is right. */
bool debug_file_open(const char *sysroot, const char *path, const struct build_id *id,
		     struct debug_file *ret);

/* Take over a file opened elsewhere, if its id is right; else it is closed. */
bool debug_file_adopt(int fd, const char *path, const struct build_id *id, struct debug_file *ret);

/*
 * The separate debug file for the main one: by build-id and by the name in its .gnu_debuglink, in
 * the folders for such files.
 */
bool debug_file_find_separate(const struct debug_options *options, const struct debug_file *main,
			      const struct build_id *id, struct debug_file *ret);

/* True if link names the file's shared part. */
bool debug_file_shares(const struct debug_file *file, const char *link);

/* The file that holds what file shares with others (.gnu_debugaltlink, made by dwz). */
bool debug_file_find_shared(const struct debug_options *options, const struct debug_file *file,
			    struct debug_file *ret);

/*
 * A copy of file without compressed sections, see unpack.c, kept in the cache's folder, which may
 * be NULL. -1: it has none, or there is no place for the copy.
 */
int debug_file_unpack(const struct debug_file *file, const char *folder);

/*
 * The section of that name, and by *ret its header, copied: in the file, it may stand at any
 * address. NULL: elf, which may be NULL, has none.
 */
Elf_Scn *debug_section_find(Elf *elf, const char *name, GElf_Shdr *ret);

/* The section of that name, as in its file or decompressed by libdw; an empty one if there is none.
 */
struct cursor debug_section(Dwarf *dwarf, const char *name);
