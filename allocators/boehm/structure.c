#include "allocators/boehm/boehm.h"

#include "analyzer/program/symbols.h"

struct visitor {
	const struct collector *collector;
	const struct heap_context *context;
	program_range_visitor *visit;
	void *data;
};

static struct error *visit_word(const struct visitor *visitor, uint64_t address)
{
	return visitor->visit(visitor->data, address, words(visitor->collector, 1));
}

/* Visit the words of the range that are counts, or all ones. */
static struct error *visit_counts(const struct visitor *visitor, struct memory_range range)
{
	const struct collector *collector = visitor->collector;
	struct view view = { visitor->context->image };
	uint64_t word;

	for (uint64_t at = range.start; at < range.end; at += words(collector, 1))
		if (view_word(&view, at, &word) &&
		    (word < block_bytes(collector) || word == complement(collector, 0)))
			TRY(visit_word(visitor, at));
	return NULL;
}

/* Visit what finalizers and disappearing links have of the objects that they are for. */
static struct error *visit_complements(const struct visitor *visitor)
{
	const struct collector *collector = visitor->collector;

	array_for_each(block, &collector->blocks) {
		if (block->kind != KIND_NORMAL || !is_small(collector, block))
			continue;
		for (uint64_t at = block->start; at + block->size <= block_end(collector, block);
		     at += block->size) {
			unsigned int bits =
				boehm_complements(collector, visitor->context->image, at);

			for (unsigned int i = 0; bits >> i; i++)
				if (bits >> i & 1)
					TRY(visit_word(visitor, at + words(collector, i)));
		}
	}
	return NULL;
}

static struct error *visit_collector(const struct visitor *visitor)
{
	const struct collector *collector = visitor->collector;
	const struct module *module =
		program_find_module(visitor->context->program, collector->start);
	uint64_t cycle;

	TRY(boehm_visit_bookkeeping(collector, visitor->context, visitor->visit, visitor->data));
	if (module && module_find_variable(module, "GC_gc_no", &cycle))
		TRY(visit_word(visitor, cycle));
	array_for_each(list, &collector->thread_lists)
		TRY(visit_counts(visitor, *list));
	return visit_complements(visitor);
}

struct error *boehm_visit_structure(const struct heap *base, program_range_visitor *visit,
				    void *data)
{
	const struct boehm_heap *heap = (const struct boehm_heap *)base;

	list_for_each(collector, heap->collectors, heap->collector_count)
		TRY(visit_collector(&(struct visitor){ collector, &heap->context, visit, data }));
	return NULL;
}
