/*
 * The first words of a set of allocations, kept by the pass that finds their patterns: it has each
 * in the processor's cache, and of a dump larger than memory, it is the last to read them all.
 */
#pragma once

#include "analyzer/heap/index.h"

struct kept_words;

/* Create it for members, which are borrowed; nothing is read yet. */
struct error *kept_words_create(const struct bitmap *members, struct memory_account *account,
				struct kept_words **ret);
void kept_words_destroy(struct kept_words *words);
DEFINE_CLEANUP(kept_words_destroy, struct kept_words *)

/*
 * Keep the first word of a member, 0 if it is absent or the member shorter, and whether it may have
 * an identity: see identity_possible(). Several threads may, each for other members.
 */
void kept_words_add(struct kept_words *words, allocation_id id, uint64_t word,
		    bool may_have_identity);

/* The first word of the allocation; false: it is no member. */
bool kept_words_find(const struct kept_words *words, allocation_id id, uint64_t *ret);

/* True if the allocation may have an identity; always true for non-members. */
bool kept_words_may_have_identity(const struct kept_words *words, allocation_id id);
