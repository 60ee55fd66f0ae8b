/*
 * The sampler of tcmalloc (sampling.md): of allocations, one of 2 MiB on average has a span of its
 * own, which leads to what is known of it (internal/sampled_allocation.h, internal/logging.h):
 *
 *	| lock | 2 links | handle | (proxy) | bytes asked for | alignment | (truth) | bytes given |
 *	| ... | how many | 64 return addresses |
 *
 * What is between and behind differs with the version. The truth is whether the caller learned how
 * much it was given or, later, whether there is an alignment. The span's address is just before
 * the number of return addresses or, in older ones, behind the last of these.
 */
#include "allocators/google_tcmalloc/google_tcmalloc.h"

#include "analyzer/image/view.h"

enum {
	LEAST_WORD = 9, /* of the number of addresses */
	MOST_WORD = 24,
	PROXY_WORD = 4, /* or what was asked for */
	GIVEN = 2,	/* so many words behind it is what was given, */
	LAST_GIVEN = 3, /* or so many */
	MOST_CALLS = 64,
	WORDS = MOST_WORD + 1 + MOST_CALLS + 8,
};

/* The number of the word that tells how many calls follow; 0: it is no sample of the span. */
static unsigned int find_calls(const struct google_span *span, const uint64_t words[static WORDS])
{
	for (unsigned int i = LEAST_WORD; i <= MOST_WORD; i++) {
		if (words[i] > MOST_CALLS)
			continue;
		if (words[i - 1] == span->start)
			return i;
		for (unsigned int j = i + 1 + MOST_CALLS; j < i + 1 + MOST_CALLS + 8; j++)
			if (words[j] == span->start)
				return i;
	}
	return 0;
}

/* A sampled allocation has the size of a class, or all pages. */
static bool may_be_given(const struct google_tcmalloc *tc, const struct google_span *span,
			 uint64_t wanted, uint64_t bytes)
{
	if (bytes < wanted || bytes > span->bytes)
		return false;
	for (unsigned int i = 1; i < MOST_CLASSES && tc->classes[i] > tc->classes[i - 1]; i++)
		if (tc->classes[i] == bytes)
			return true;
	return bytes == span->bytes;
}

bool google_read_sample(const struct google_tcmalloc *tc, struct view *view,
			const struct google_span *span, struct google_sample *ret)
{
	uint64_t words[WORDS];
	unsigned int calls, word = PROXY_WORD;

	if (span->sample < PAGE || span->sample % WORD != 0 || span->sample >> ADDRESS_BITS ||
	    !view_read(view, span->sample, words, sizeof(words)))
		return false;
	calls = find_calls(span, words);
	if (!calls)
		return false;
	*ret = (struct google_sample){ .calls = span->sample + calls * (uint64_t)WORD };
	if (words[word] == 0 || google_find_span(tc, words[word]))
		ret->proxy = words[word++]; /* a large one has none */
	ret->wanted = words[word];
	for (unsigned int i = word + GIVEN; i <= word + LAST_GIVEN && !ret->bytes; i++)
		if (may_be_given(tc, span, ret->wanted, words[i]))
			ret->bytes = words[i];
	return ret->wanted <= span->bytes;
}

static struct error *visit_spans(const struct google_tcmalloc *tc, struct view *view,
				 noted_visitor *visit, void *data)
{
	array_for_each(span, &tc->spans) {
		struct google_sample sample;
		struct noted_blocks noted = {
			.start = span->start,
			.count = 1,
		};

		if (!google_read_sample(tc, view, span, &sample))
			continue;
		noted.bytes = sample.wanted;
		noted.calls = sample.calls;
		TRY(visit(data, &noted));
	}
	return NULL;
}

static struct error *visit_sampled(void *owner, noted_visitor *visit, void *data)
{
	const struct google_heap *heap = owner;
	struct view view = { heap->context.image };

	array_for_each(tc, &heap->list)
		TRY(visit_spans(tc, &view, visit, data));
	return NULL;
}

static size_t read_calls(void *owner, uint64_t calls, uint64_t *ret, size_t most)
{
	const struct google_heap *heap = owner;
	struct view view = { heap->context.image };
	uint64_t count;

	if (!view_word(&view, calls, &count) || count > MOST_CALLS)
		return 0;
	count = MIN(count, most);
	return view_read(&view, calls + WORD, ret, count * sizeof(*ret)) ? (size_t)count : 0;
}

const struct noting google_noting = {
	.name = "tcmalloc",
	.is_sampled = true,
	.visit = visit_sampled,
	.read_calls = read_calls,
};
