/*
 * The sampler of tcmalloc, src/common.h of gperftools, where TCMALLOC_SAMPLE_PARAMETER is set: a
 * sampled allocation has a span of its own, which leads to
 *
 *	StackTrace  | bytes that were asked for | how many | return addresses, the innermost first |
 */
#include "allocators/tcmalloc/tcmalloc.h"

enum { WORD = 8, MOST_CALLS = 1 << 10 };

/* The bytes that were asked for, and how many calls follow; false: it is not sampled. */
static bool read_trace(struct view *view, uint64_t trace, uint64_t ret[static 2])
{
	return trace && trace % WORD == 0 && view_read(view, trace, ret, 2 * (size_t)WORD) &&
	       ret[1] > 0 && ret[1] <= MOST_CALLS;
}

static struct error *visit_spans(const struct tcmalloc *tc, struct view *view, noted_visitor *visit,
				 void *data)
{
	array_for_each(span, &tc->spans) {
		uint64_t words[2];
		struct noted_blocks noted = {
			.start = span->start,
			.count = 1,
			.calls = span->objects,
		};

		if (!span_is_sampled(span) || span_location(span) != SPAN_IN_USE ||
		    !read_trace(view, span->objects, words))
			continue;
		noted.bytes = words[0];
		TRY(visit(data, &noted));
	}
	return NULL;
}

static struct error *visit_sampled(void *owner, noted_visitor *visit, void *data)
{
	const struct tcmalloc_heap *heap = owner;
	struct view view = { heap->context.image };

	array_for_each(tc, &heap->list)
		if (tc->word == WORD)
			TRY(visit_spans(tc, &view, visit, data));
	return NULL;
}

static size_t read_calls(void *owner, uint64_t calls, uint64_t *ret, size_t most)
{
	const struct tcmalloc_heap *heap = owner;
	struct view view = { heap->context.image };
	uint64_t words[2];
	size_t count;

	if (!read_trace(&view, calls, words))
		return 0;
	count = words[1] < most ? (size_t)words[1] : most;
	return view_read(&view, calls + sizeof(words), ret, count * sizeof(*ret)) ? count : 0;
}

const struct noting tcmalloc_noting = {
	.name = "tcmalloc",
	.is_sampled = true,
	.visit = visit_sampled,
	.read_calls = read_calls,
};
