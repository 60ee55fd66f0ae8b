/*
 * The files that the process had mapped, where they are at hand.
 *
 * A path comes from the dump and is not trusted: a file is opened only if it is a regular one, and
 * used only if its build-id is the one that the dump has in memory. What is absent from the dump
 * can then be read from it.
 *
 * A sysroot is a folder that stands for the root of the machine on which the process ran: paths,
 * and the links on their way, are looked up below it. A path that begins with the sysroot itself,
 * as those of a chroot do, is also that of the file there.
 */
#pragma once

#include "analyzer/image/image.h"

/* Identifies one build of a file. */
struct build_id {
	uint8_t bytes[64]; /* 20 for SHA-1, 16 for MD5 and UUID */
	size_t size;	   /* 0: there is none */
};

/*
 * The build-id of the ELF file mapped from base to end, its first byte at base. Reads nothing
 * outside of that range.
 */
struct build_id build_id_of_image(const struct image *image, uint64_t base, uint64_t end);

/*
 * Open the regular file of that absolute path below sysroot, which may be NULL. Returns -1 if there
 * is none, or it is empty.
 */
int file_open_below(const char *sysroot, const char *path);

void file_table_deinit(struct file_table *table);

/*
 * The file of that mapping, at the beginning of a module that goes on to end, if it has the
 * module's build-id, was matched, or the dump has none and all that it has of the module's headers
 * and constants is in the file; or what the dump has of it, or NULL in *ret, and why. The table
 * owns it. A file stands for no more than
 * MOST_MODULES_OF_FILE modules: a program has one of a file, a few with dlmopen(), while a small
 * dump could name a large file again and again.
 */
enum { MOST_MODULES_OF_FILE = 64 };

struct error *file_table_find(struct file_table *table, const struct image *image,
			      const struct mapping *mapping, uint64_t end,
			      const struct image_file **ret, enum file_state *ret_state);

/*
 * The rights of a part of a mapping that the dump does not tell of, by the program headers of its
 * file. gcore leaves out what was never written.
 */
uint8_t mapping_rights(const struct mapping *mapping, uint64_t address);
