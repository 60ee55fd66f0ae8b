#include "analyzer/classify/kept_words.h"

#include "analyzer/base/array.h"

enum { RANKED = 512 }; /* ids that share a rank: a cache line of members */

struct kept_words {
	const struct bitmap *members;
	ARRAY(uint32_t) ranks;	  /* how many members are below, by RANKED ids */
	ARRAY(uint64_t) words;	  /* by rank */
	struct bitmap identified; /* may have an identity, by id */
};

static size_t find_rank(const struct kept_words *words, allocation_id id)
{
	const uint64_t *bits = words->members->words;
	size_t rank = words->ranks.items[id / RANKED];

	for (size_t i = id / RANKED * (RANKED / 64); i < id / 64; i++)
		rank += bits_count(bits[i]);
	return rank + bits_count(bits[id / 64] & ((UINT64_C(1) << id % 64) - 1));
}

static struct error *count_ranks(struct kept_words *words)
{
	const struct bitmap *members = words->members;
	size_t count = bitmap_word_count(members);
	uint32_t rank = 0;

	TRY(array_resize(&words->ranks, members->count / RANKED + 1));
	for (size_t i = 0; i < count; i++) {
		if (i % (RANKED / 64) == 0)
			words->ranks.items[i / (RANKED / 64)] = rank;
		rank += bits_count(members->words[i]);
	}
	return array_resize(&words->words, rank + (size_t)1);
}

struct error *kept_words_create(const struct bitmap *members, struct memory_account *account,
				struct kept_words **ret)
{
	_cleanup_(kept_words_destroy) struct kept_words *words = calloc(1, sizeof(*words));

	TRY_MEMORY(words);
	words->members = members;
	arrays_use(account, &words->ranks, &words->words);
	TRY(count_ranks(words));
	TRY(bitmap_init(&words->identified, members->count, account));
	*ret = take(words);
	return NULL;
}

void kept_words_destroy(struct kept_words *words)
{
	arrays_release(&words->ranks, &words->words);
	bitmap_deinit(&words->identified);
	free(words);
}

void kept_words_add(struct kept_words *words, allocation_id id, uint64_t word,
		    bool may_have_identity)
{
	words->words.items[find_rank(words, id)] = word;
	if (may_have_identity)
		bitmap_set_atomic(&words->identified, id);
}

bool kept_words_find(const struct kept_words *words, allocation_id id, uint64_t *ret)
{
	if (!bitmap_get(words->members, id))
		return false;
	*ret = words->words.items[find_rank(words, id)];
	return true;
}

bool kept_words_may_have_identity(const struct kept_words *words, allocation_id id)
{
	return !bitmap_get(words->members, id) || bitmap_get(&words->identified, id);
}
