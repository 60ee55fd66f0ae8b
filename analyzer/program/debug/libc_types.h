/*
 * Types of the C library to which programs have pointers, and whose members only the library's own
 * debug information has: what regcomp() makes.
 */
#pragma once

#include "analyzer/program/debug/type_reader.h"

/* Add these to what was read, if the program only declares them. */
struct error *libc_types_add(struct type_reader *reader);

/* True if the entry stands for such a type, and so is in no file. */
bool libc_type_is(uint64_t entry);

/* True if one of these has that name. */
bool libc_type_has_name(const char *name);
