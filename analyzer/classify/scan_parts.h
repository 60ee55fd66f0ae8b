/*
 * The parts of a scan: scan.c says what is looked at, and by whom; scan_words.c finds the
 * references among its words.
 */
#ifndef ANALYZER_CLASSIFY_SCAN_PARTS_H
#define ANALYZER_CLASSIFY_SCAN_PARTS_H

#include "analyzer/base/parallel.h"
#include "analyzer/classify/module_bounds.h"
#include "analyzer/classify/scan.h"
#include "analyzer/heap/word_filter.h"
#include "analyzer/heap/work_chunks.h"

enum {
	OFFSETS = MOST_OFFSET / 8 + 1,
	MOST_CLASSIFIERS = 128,
	MOST_MATCHERS = 64, /* each has a bit of a word */
};

/* A stretch of a root; the words around it are in range. */
struct piece {
	struct memory_range range;
	uint64_t start, end;
	enum root_kind kind;
};

/* The filtered words of a row of memory. Small allocations beside each other share it. */
struct row {
	uint64_t start; /* a multiple of FILTER_BYTES */
	uint64_t mask;
	bool known;
};

struct scanner {
	struct reader reader;
	struct view sources; /* what is scanned; readers jump */
	struct row row;
	struct reference references[MOST_ADDRESSES];
	uint64_t words[MOST_ADDRESSES];
	uint64_t suspects[MOST_ADDRESSES]; /* the matchers that care */
	uint64_t suspected[MOST_MATCHERS]; /* the words, of those looked at */
	bool counted[MOST_ADDRESSES];	   /* held by no stack */
	size_t count;
	size_t source_hint;
};

/* Those who look at references. */
struct matchers {
	uint8_t numbers[MOST_MATCHERS];
	uint64_t (*suspects[MOST_MATCHERS])(const struct reader *reader,
					    const struct reference *first, uint64_t mask);
	size_t count;
	uint64_t at[OFFSETS]; /* those that care for that offset */
};

struct scan {
	const struct scan_input *input;
	enum scan_aim aim;
	struct split_work work;
	struct overview overview;
	struct word_filter filter;
	struct module_bounds bounds;
	const struct bitmap *used;
	const struct bitmap *sources;	  /* of the used ones, those looked at */
	const struct bitmap *pointerless; /* they refer to nothing; or NULL */
	struct scanner *scanners;	  /* one for each thread */
	_Atomic uint64_t steps;		  /* the budget of their readers */
	struct piece *pieces;
	size_t piece_count;
	struct work_chunks chunks;
	bool is_needed;
	struct matchers matchers;
	/* Numbers of classifiers, 0 at the end; who wants least bytes first. */
	uint8_t inspectors[MOST_CLASSIFIERS + 1];
	uint8_t plain_inspectors[MOST_CLASSIFIERS + 1]; /* of pointerless */
	uint8_t finishers[MOST_CLASSIFIERS + 1];
};

/*
 * Collect the words of [start, start + size) that may be references. bytes is at start, in the
 * region of the scanner's sources read last, and all of the holder is in a row with it.
 */
void scan_words(struct scan *scan, struct scanner *scanner, struct memory_range holder,
		uint64_t start, const uint8_t *bytes, uint64_t size, allocation_id source,
		bool counted);

/* Look up the words collected so far, and show them to those who care. */
void scan_look_up(struct scan *scan, struct scanner *scanner);

#endif
