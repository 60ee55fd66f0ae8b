/*
 * A core without contents: what answers need, and nothing of what the program keeps in memory.
 *
 * What stays is decided by rules, never by what happens to be read:
 *
 *	- a word that is an address in memory that the process had, wherever it stands;
 *	- what allocators, the loader and the C library write themselves: heads of blocks, arenas,
 *	  sizes of stacks, tables of thread-local variables, names of modules;
 *	- what stands in binaries: code and constants that the process did not change.
 *
 * Zeros stay zeros. Any other word becomes a placeholder, which is neither an address nor a small
 * number; text in a block becomes as many equal letters, so that it still counts as text.
 *Arguments, environment, vector registers and the rest of the stacks are no exception.
 *
 *	core        | headers | notes | mapping     | mapping | ...
 *	slim core   | header  | mapping  |  | mapping | ... | notes, our note | headers
 *
 * Everything has its size and place; pages that were holes stay holes. Where there is nothing but
 * placeholders for pages, these are left out: the segment ends there, and the next has a flag.
 */
#pragma once

#include "analyzer/analysis/analysis.h"

#include <stdint.h>

/* The origins of bytes of a core. */
enum slim_origin {
	SLIM_USED,	/* allocations in use */
	SLIM_FREE,	/* free ones */
	SLIM_ALLOCATOR, /* heads of blocks, arenas */
	SLIM_STACK,
	SLIM_DATA,   /* variables of the program and its libraries */
	SLIM_BINARY, /* code and constants, as in files */
	SLIM_OTHER,  /* mappings of the program's own */
	SLIM_NOTES,  /* registers, names of files, what the kernel said */
	SLIM_ORIGINS,
};

/* The fate of the bytes of one origin; added up, they are all that the core has of it. */
struct slim_tally {
	uint64_t zeros;
	uint64_t addresses; /* kept: addresses of memory */
	uint64_t structure; /* kept: written by an allocator, the loader, the C library or a linker
			     */
	uint64_t contents;  /* kept as the options say */
	uint64_t placeholders; /* left out */
};

struct slim_options {
	int fd; /* of the file, empty; borrowed; -1: only to count */
	bool packed;
	const struct bitmap *whole; /* allocations that stay as they are; borrowed; or NULL */
	bool hash_names;	    /* that no binary has */
	bool strings;		    /* so do texts of those that are strings */
	struct progress *progress;
};

struct slim_sizes {
	struct slim_tally tallies[SLIM_ORIGINS];
	uint64_t file;	   /* bytes, holes included */
	uint64_t left_out; /* bytes of memory that debuggers do not find */
	uint64_t packed;   /* bytes of the file if it is packed */
	uint64_t core;	   /* bytes of the core that it is of */
};

/* "allocations in use" */
const char *slim_origin_name(enum slim_origin origin);

/*
 * Write a slim core of the analysis' dump. Needs an ELF core whose heaps all have
 * visit_structure(), as the languages that have objects in it: else an error of code
 * ERROR_NOT_SUPPORTED says what it has.
 */
struct error *slim_write(struct analysis *analysis, const struct slim_options *options,
			 struct slim_sizes *ret);
