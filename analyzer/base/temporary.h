/*
 * Files without a name: they are gone with the last of their handles, however the program ends, and
 * nobody else can open them.
 */
#pragma once

#include "analyzer/base/error.h"

#include <stdint.h>

/*
 * Make one in that folder, for its owner only, to be read and written. Without a folder it is
 * /var/tmp, which is rarely in memory, or else /tmp.
 */
struct error *temporary_open(const char *folder, int *ret);

/* Write all of the bytes at the offset of a file; false: errno tells why not. */
bool write_fully(int fd, const void *bytes, size_t size, uint64_t offset);

/* The folder that is meant by NULL or by that name. */
const char *temporary_folder(const char *folder);
