/*
 * A file of named arrays, kept beside a dump so that what was found out about it need not be found
 * out again.
 *
 * It is mapped, not read: an array costs no private memory, and no time until it is looked at.
 *
 *	header | table of sections | array | array | ...
 *
 * All numbers are little-endian; arrays begin at multiples of SIDE_ALIGNMENT. Header and table have
 * a checksum, and each array has one (XXH3 of xxHash, 64 bits). These tell damage, not malice:
 * users of an array check its contents, because anybody may have written the file.
 */
#pragma once

#include "analyzer/base/memory.h"

#include <stdbool.h>
#include <stdint.h>

enum { SIDE_ALIGNMENT = 4096, SIDE_SECTIONS = 48 };

/* The numbers of the arrays, so that no two share one. */
enum side_number {
	SIDE_STAGES, /* which stages are there, and what they found */
	SIDE_FINDINGS,
	SIDE_INDEX, /* counts */
	SIDE_ARENAS,
	SIDE_REGIONS,
	SIDE_CLAIMS,
	SIDE_LARGE,
	SIDE_HELD,
	SIDE_EXTENTS,
	SIDE_USED,
	SIDE_CACHED,
	SIDE_TRAITS,			/* one for each trait */
	SIDE_TARGETS = SIDE_TRAITS + 8, /* one for each kind of root */
	SIDE_INTEGERS = SIDE_TARGETS + 6,
	SIDE_SHARES,
	SIDE_OFFSETS,
	SIDE_EDGES,
	SIDE_ANCHORED,
	SIDE_LEAKED,
	SIDE_GARBAGE,
	SIDE_LOST_HELD,
	SIDE_LOST,
	SIDE_LEAKS, /* counts */
	SIDE_LEAK_ROOTS,
	SIDE_LEAKED_PATTERNS,
	SIDE_SIGNATURES,
	SIDE_SIGNATURE_NUMBERS,
	SIDE_IDENTITIES,
	SIDE_NUMBERS_END,
};

/* The dump and the heapcore that a file was made from; a changed identity makes the file stale. */
struct side_identity {
	uint64_t dump_size;
	int64_t dump_seconds, dump_nanoseconds; /* when it was changed last */
	uint64_t dump_hash;			/* of what was looked at of it */
	uint64_t maker;				/* which heapcore, by a hash */
};

/* An array in the mapped file, borrowed from it. */
struct side_array {
	const void *bytes; /* NULL: there is none of that name */
	size_t size;
};

struct side_file;

/*
 * Map the file at path. It must be a regular one that nobody but its owner can write, who is root
 * or the user, and of that identity; an error says what is not so. Errors of code ERROR_BAD_DUMP
 * mean that it can be made anew.
 */
struct error *side_file_open(const char *path, const struct side_identity *identity,
			     struct side_file **ret);
void side_file_close(struct side_file *file);
DEFINE_CLEANUP(side_file_close, struct side_file *)

/*
 * The array of that number, its checksum checked when first asked for: an error if it does not fit.
 * That there is none is no error.
 */
struct error *side_file_find(struct side_file *file, unsigned int number, struct side_array *ret);

/*
 * Like side_file_find(), for count elements of that size; fails if the array is missing or has
 * another size.
 */
struct error *side_file_take(struct side_file *file, unsigned int number, size_t count,
			     size_t element, const void **ret);

/* Check all arrays against their checksums. */
struct error *side_file_check(struct side_file *file);

/* Identifies this heapcore by a hash of the program's build-id. */
uint64_t side_maker(void);

struct side_writer;

/*
 * Begin a file that is to replace the one at path, beside it, for its owner only. Until it is done
 * nobody sees it, and it never follows a link.
 */
struct error *side_writer_create(const char *path, struct side_writer **ret);
/* Leaves the file at path as it was. */
void side_writer_destroy(struct side_writer *writer);
DEFINE_CLEANUP(side_writer_destroy, struct side_writer *)

/* The array of that number begins; it is what is added until the next. */
void side_writer_begin(struct side_writer *writer, unsigned int number);
struct error *side_writer_add(struct side_writer *writer, const void *bytes, size_t size);
/* Both at once. */
struct error *side_writer_array(struct side_writer *writer, unsigned int number, const void *bytes,
				size_t size);

/* The bytes of the file so far. */
uint64_t side_writer_size(const struct side_writer *writer);

/* Put it in its place. The writer is to be destroyed. */
struct error *side_writer_finish(struct side_writer *writer, const struct side_identity *identity);

/*
 * The first array in which what was written so far differs from the file, or SIDE_SECTIONS if there
 * is none.
 */
unsigned int side_writer_compare(struct side_writer *writer, const struct side_file *file);

/* Memory that stands in a side file: its size never changes, and to release it does nothing. */
struct memory side_memory(const void *bytes, size_t size);
