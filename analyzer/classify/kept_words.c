#include "analyzer/classify/kept_words.h"

enum { RANKED = 512 }; /* ids that share a rank: a cache line of members */

struct kept_words {
	const struct bitmap *members;
	struct memory ranks;	  /* uint32_t: how many members are below, by RANKED ids */
	struct memory words;	  /* uint64_t, by rank */
	struct bitmap identified; /* may have an identity, by id */
};

static size_t find_rank(const struct kept_words *words, allocation_id id)
{
	const uint64_t *bits = words->members->words;
	size_t rank = ((const uint32_t *)words->ranks.bytes)[id / RANKED];

	for (size_t i = id / RANKED * (RANKED / 64); i < id / 64; i++)
		rank += bits_count(bits[i]);
	return rank + bits_count(bits[id / 64] & ((UINT64_C(1) << id % 64) - 1));
}

static struct error *count_ranks(struct kept_words *words)
{
	const struct bitmap *members = words->members;
	size_t count = bitmap_word_count(members);
	struct error *error =
		memory_resize(&words->ranks, (members->count / RANKED + 1) * sizeof(uint32_t));
	uint32_t rank = 0;

	if (error)
		return error;
	for (size_t i = 0; i < count; i++) {
		if (i % (RANKED / 64) == 0)
			((uint32_t *)words->ranks.bytes)[i / (RANKED / 64)] = rank;
		rank += bits_count(members->words[i]);
	}
	return memory_resize(&words->words, (rank + (size_t)1) * sizeof(uint64_t));
}

struct error *kept_words_create(const struct bitmap *members, struct memory_account *account,
				struct kept_words **ret)
{
	struct kept_words *words = calloc(1, sizeof(*words));
	struct error *error;

	if (!words)
		return &error_no_memory;
	words->members = members;
	words->ranks.account = words->words.account = account;
	error = count_ranks(words);
	if (!error)
		error = bitmap_init(&words->identified, members->count, account);
	if (error)
		kept_words_destroy(words);
	else
		*ret = words;
	return error;
}

void kept_words_destroy(struct kept_words *words)
{
	memory_release(&words->ranks);
	memory_release(&words->words);
	bitmap_deinit(&words->identified);
	free(words);
}

void kept_words_add(struct kept_words *words, allocation_id id, uint64_t word,
		    bool may_have_identity)
{
	((uint64_t *)words->words.bytes)[find_rank(words, id)] = word;
	if (may_have_identity)
		bitmap_set_atomic(&words->identified, id);
}

bool kept_words_find(const struct kept_words *words, allocation_id id, uint64_t *ret)
{
	if (!bitmap_get(words->members, id))
		return false;
	*ret = ((const uint64_t *)words->words.bytes)[find_rank(words, id)];
	return true;
}

bool kept_words_may_have_identity(const struct kept_words *words, allocation_id id)
{
	return !bitmap_get(words->members, id) || bitmap_get(&words->identified, id);
}
