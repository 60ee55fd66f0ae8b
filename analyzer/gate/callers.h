/*
 * Finds who allocated, wherever the memory of the program says it: by the recorder (recorded.h), or
 * as the program noted it itself (analyzer/heap/noting.h), for all blocks or for a sample.
 */
#pragma once

#include "analyzer/base/address_map.h"
#include "analyzer/gate/recorded.h"
#include "analyzer/heap/noting.h"

/* Calls that allocated, and how much. */
struct caller {
	const struct noting *noting; /* NULL: by the recorder, whose stack it is */
	void *owner;		     /* of the notes */
	uint64_t calls;
	uint64_t count, bytes; /* as the notes have them */
};

struct callers {
	struct analysis *analysis; /* borrowed */
	struct recorded recorded;  /* if there is a recorder; then there is no list */
	HASH_TABLE(struct caller) list;
	struct address_map blocks; /* to their caller's number, where all are noted */
};

/* ret is all zeros; nothing is found where nobody noted anything. Builds what it needs. */
struct error *callers_find(struct analysis *analysis, struct callers *ret);
void callers_deinit(struct callers *callers);
DEFINE_DEINIT(callers_deinit, struct callers)

/* True if it is known of all blocks that were noted, rather than of none or of a sample. */
bool callers_know_blocks(const struct callers *callers);

/* A number below 2^32 of the calls that allocated the block; 0: they are not known. */
uint64_t callers_of(struct callers *callers, uint64_t address);

/* The calls of that number, the innermost first, with what is inlined; to be freed. */
struct error *callers_calls(const struct callers *callers, uint64_t number, struct backtrace *ret);

/* Count the recorder's stacks, too, and order the list: most bytes first. Numbers change. */
struct error *callers_rank(struct callers *callers);

/* The calls of one in the list, likewise. */
struct error *caller_calls(const struct callers *callers, const struct caller *caller,
			   struct backtrace *ret);

/*
 * One of these: "load (app.c:7)", "app.py:7", "libfoo.so+0x4018", "unknown code"; to be freed; NULL
 * if memory is short.
 */
char *callers_name(const struct callers *callers, const struct frame *frame);

/* The name of who noted it: "tracemalloc", "recorder". */
const char *caller_source(const struct caller *caller);
