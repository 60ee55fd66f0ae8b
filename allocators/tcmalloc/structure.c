#include "allocators/tcmalloc/tcmalloc.h"

enum { TRACE_HEAD_WORDS = 2 /* of a sampled allocation: its size, and how many calls follow */ };

static struct error *visit_spans(const struct tcmalloc *tc, program_range_visitor *visit,
				 void *data)
{
	array_for_each(span, &tc->spans) {
		TRY(visit(data, span->metadata, span_bytes(tc)));
		if (span_is_sampled(span) && span_location(span) == SPAN_IN_USE &&
		    !tcmalloc_find_span(tc, span->objects))
			TRY(visit(data, span->objects, TRACE_HEAD_WORDS * (uint64_t)tc->word));
	}
	return NULL;
}

static struct error *visit_tcmalloc(const struct tcmalloc *tc, program_range_visitor *visit,
				    void *data)
{
	TRY(visit(data, tc->class_table, tc->class_count * sizeof(uint32_t)));
	TRY(visit(data, tc->central.start, tc->central.end - tc->central.start));
	array_for_each(cache, &tc->caches)
		TRY(visit(data, cache->address, list_bytes(tc) * tc->class_count));
	array_for_each(pool, &tc->pools)
		TRY(visit(data, pool->start, pool->end - pool->start));
	return visit_spans(tc, visit, data);
}

/* Leaves of the page map have nothing but addresses. */
struct error *tcmalloc_visit_structure(const struct heap *base, program_range_visitor *visit,
				       void *data)
{
	const struct tcmalloc_heap *heap = (const struct tcmalloc_heap *)base;

	array_for_each(tc, &heap->list)
		TRY(visit_tcmalloc(tc, visit, data));
	return NULL;
}
