/*
 * Sets of allocations that the user named, until the dump is closed.
 *
 * A set is kept as its members, not as the words that selected them: it costs a bit for each
 * allocation. `derived` always exists, empty at first; `new` and `survived` exist once the dump was
 * compared with older ones.
 */
#pragma once

#include "analyzer/base/bitmap.h"

#define DERIVED_SET  "derived"
#define NEW_SET	     "new"
#define SURVIVED_SET "survived"

struct named_sets;

struct error *named_sets_create(struct named_sets **ret);
void named_sets_destroy(struct named_sets *sets);
DEFINE_CLEANUP(named_sets_destroy, struct named_sets *)

/* Give the set these members, which it owns then, even after an error. */
struct error *named_sets_assign(struct named_sets *sets, const char *name, struct bitmap *members);

/* Remove the set, if there is one. */
void named_sets_forget(struct named_sets *sets, const char *name);

/* The members of that name, or NULL. */
const struct bitmap *named_sets_find(const struct named_sets *sets, const char *name);

/* The number-th name, oldest first, or NULL at the end. */
const char *named_sets_name(const struct named_sets *sets, size_t number);
