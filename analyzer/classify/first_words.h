/*
 * The signatures of all allocations, read in one go over the heap.
 *
 * To read the first words of ten million allocations takes as many misses of the processor's
 * caches, for each question anew. There are few different ones: each is given a number, and the
 * numbers are kept, 4 bytes for each allocation. Identity words stand near, and so are looked for
 * as well.
 */
#pragma once

#include "analyzer/base/progress.h"
#include "analyzer/base/side_file.h"
#include "analyzer/classify/identity.h"
#include "analyzer/classify/signature.h"

struct first_words;

struct first_words_input {
	struct signature_reader signatures; /* has not read anything */
	const struct identities *identities;
	struct memory_account *account;
	struct progress *progress;
};

struct error *first_words_create(const struct first_words_input *input, struct first_words **ret);
void first_words_destroy(struct first_words *words);
DEFINE_CLEANUP(first_words_destroy, struct first_words *)

/* How many different signatures there are. */
size_t first_words_count(const struct first_words *words);

/*
 * Into a side file, and from one: candidates, as which of them are signatures depends on the debug
 * information at hand.
 */
struct error *first_words_save(const struct first_words *words, struct side_writer *writer);
struct error *first_words_load(struct side_file *file, size_t count,
			       const struct signature_reader *signatures,
			       struct memory_account *account, struct first_words **ret);

/* The signature, 0: none; and whether there may be an identity without one. */
uint64_t first_words_at(const struct first_words *words, allocation_id id);
bool first_words_may_have_identity(const struct first_words *words, allocation_id id);

/* Prefetch the signature of an allocation that is needed soon. */
void first_words_fetch(const struct first_words *words, allocation_id id);
