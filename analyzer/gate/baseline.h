/*
 * Leaks that were accepted, by fingerprint: a file that is kept with the program's source.
 *
 *	{
 *	  "heapcore-baseline": 1,
 *	  "leaks": [
 *	    {"fingerprint": "9b2c...", "kind": "shop::Order", "size": 72,
 *	     "roots": 100, "bytes": 23200},
 *	    ...
 *	  ]
 *	}
 *
 * Each leak is one line in the file, and they are in the order of their fingerprints, so that a
 * change shows as the lines that it is. A leak may have a "reason", which people write and which is
 * kept.
 */
#pragma once

#include "analyzer/gate/leak_kinds.h"

struct baseline_entry {
	uint64_t fingerprint;
	char *kind; /* owned */
	uint64_t size;
	uint64_t roots; /* so many are allowed */
	uint64_t bytes;
	char *reason; /* owned; or NULL */
	bool matched; /* a leak has that fingerprint */
};

struct baseline {
	struct baseline_entry *list; /* by fingerprint */
	size_t count;
};

/* ret is zeroed. What is wrong with the file is ERROR_USAGE. */
struct error *baseline_read(const char *path, struct baseline *ret);
void baseline_deinit(struct baseline *baseline);
DEFINE_DEINIT(baseline_deinit, struct baseline)

/* Parse text; name is that of the file, for messages. */
struct error *baseline_parse(const char *text, size_t size, const char *name, struct baseline *ret);

struct baseline_entry *baseline_find(const struct baseline *baseline, uint64_t fingerprint);

/* Fill in the kinds' states, and mark the entries that they match. */
void baseline_compare(struct baseline *baseline, struct leak_kinds *kinds);

/*
 * Make a baseline that accepts the leaks that are not suppressed, with the reasons of the old one.
 * ret is zeroed.
 */
struct error *baseline_accept(const struct baseline *old, const struct leak_kinds *kinds,
			      struct baseline *ret);

/*
 * Lower what got better: entries without a leak are dropped, others allow no more roots than there
 * are. Suppressed leaks change nothing. Returns whether something was lowered.
 */
bool baseline_ratchet(struct baseline *baseline, const struct leak_kinds *kinds);

/* Print as JSON; *ret is to be freed. */
struct error *baseline_print(const struct baseline *baseline, char **ret, size_t *ret_size);

/* Replace the file, or leave it as it is. */
struct error *baseline_write(const struct baseline *baseline, const char *path);
