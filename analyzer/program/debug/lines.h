/*
 * Finds the source line that an address was compiled from.
 *
 * libdw's dwarf_getsrc_die() does this, too, but keeps all lines of a unit in memory from the first
 * call on: for 50 addresses tens of megabytes, and of a hostile file 40 bytes for each of its own.
 * Here the program that yields the lines (DWARF 5, section 6.2) is run up to the line asked for.
 */
#pragma once

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

struct source_line {
	const char *folder; /* of the file, relative ones included; or NULL */
	const char *file;
	uint64_t line;
};

/* The line of address, as it is in the file, in the unit. */
bool source_line_find(Dwarf_Die *unit, uint64_t address, struct source_line *ret);

/* The unit's file of that number. */
bool source_file_find(Dwarf_Die *unit, uint64_t number, struct source_line *ret);
