#include "allocators/boehm/boehm.h"

enum {
	MOST_SECTIONS = 1 << 16,
	SMALLEST_SECTION = 1 << 16, /* only parts of others are smaller */

	/* A mark stack, of { address, descriptor }. */
	ENTRY = 2,	       /* words */
	FEWEST_ENTRIES = 4096, /* INITIAL_MARK_STACK_SIZE, LOCAL_... */
	NEAR = 16,	       /* words between its variables, at most */
	/* A marker, a thread of the collector, has a mark stack in its frames. */
	LOCAL_STACK = FEWEST_ENTRIES * ENTRY, /* words */
	MARKER_FRAMES = 16384,
	THREAD_WORDS = 8, /* of GC_Thread_Rep: one is its pthread_t */
};

static struct error *append_range(struct range_list *ranges, uint64_t start, uint64_t end)
{
	size_t count = ranges->count;
	struct memory_range *last = count > 0 ? &ranges->items[count - 1] : NULL;

	/* Ranges often follow each other. */
	if (last && last->start <= start && start <= last->end) {
		if (end > last->end)
			last->end = end;
		return NULL;
	}
	return array_append(ranges, (struct memory_range){ start, end });
}

/*
 * Add the pages of something of the collector's own. It gets scratch memory by pages, and uses it
 * for nothing else.
 */
static struct error *append_pages(struct range_list *ranges, uint64_t start, uint64_t size)
{
	return append_range(ranges, page_below(start), page_above(start + size));
}

/*
 * True if a former header is at address: all but the link in its first word is unchanged. Memory
 * that never was a header, such as the unused end of the collector's memory, has no size there.
 */
static bool is_spare(const struct collector *collector, struct view *view, uint64_t address)
{
	uint64_t block, kinds, size;
	size_t hint = 0;

	return address % granule(&collector->geometry) == 0 &&
	       view_word(view, address + words(collector, HEADER_BLOCK), &block) &&
	       block % block_bytes(collector) == 0 &&
	       view_word(view, address + words(collector, HEADER_BYTES), &kinds) &&
	       (kinds & UINT8_MAX) < MOST_KINDS && (kinds >> 8 & UINT8_MAX) <= FLAGS_KNOWN &&
	       view_word(view, address + words(collector, HEADER_SIZE), &size) && size > 0 &&
	       size % granule(&collector->geometry) == 0 && size >> 47 == 0 &&
	       !boehm_find_block(collector, address, &hint);
}

/* Add the free headers on the list that begins at address, if all members are such. */
static struct error *read_spares(struct collector *collector, struct view *view, uint64_t address,
				 uint64_t most)
{
	size_t before = collector->spares.count;

	while (address && collector->spares.count - before < most) {
		if (!is_spare(collector, view, address)) {
			collector->spares.count = before;
			return NULL;
		}
		TRY(array_append(&collector->spares, address));
		if (!view_word(view, address, &address))
			return NULL;
	}
	return NULL;
}

/* One of the variables at the start of GC_arrays is GC_hdr_free_list. */
struct error *boehm_find_spares(struct collector *collector, const struct heap_context *context)
{
	struct view view = { context->image };
	uint64_t most = context->image->size / boehm_header_size(collector);

	for (uint64_t i = ARRAYS_HEAD; i > 0 && collector->freelists; i--) {
		uint64_t word;

		if (view_word(&view, collector->freelists - words(collector, i), &word) &&
		    word >= PAGE)
			TRY(read_spares(collector, &view, word, most));
	}
	return NULL;
}

static struct error *append_scratch(const struct collector *collector, struct range_list *ranges)
{
	const struct boehm_block *blocks = collector->blocks.items;
	const uint64_t *indexes = collector->indexes.items;
	const uint64_t *spares = collector->spares.items;
	uint64_t header = boehm_header_size(collector);

	for (size_t i = 0; i < collector->indexes.count; i++)
		TRY(append_pages(ranges, indexes[i], index_size(&collector->geometry)));
	if (collector->nils)
		TRY(append_pages(ranges, collector->nils, index_size(&collector->geometry)));
	for (size_t i = 0; i < collector->blocks.count; i++)
		TRY(append_pages(ranges, blocks[i].header, header));
	for (size_t i = 0; i < collector->spares.count; i++)
		TRY(append_pages(ranges, spares[i], header));
	return NULL;
}

struct error *boehm_add_owned(const struct collector *collector, struct range_list *ranges)
{
	const struct boehm_block *blocks = collector->blocks.items;

	TRY(append_scratch(collector, ranges));
	for (size_t i = 0; i < collector->blocks.count; i++)
		TRY(append_range(ranges, blocks[i].start, block_end(collector, &blocks[i])));
	return NULL;
}

/* The claims of one collector. */
struct claims {
	ARRAY(uint64_t) sections; /* starts of those that were found */
	const struct collector *collector;
	const struct heap_context *context;
	struct view view;
	program_range_visitor *visit;
	void *data; /* of visit */
	size_t hint;
};

static struct error *claim_range(struct claims *claims, uint64_t start, uint64_t end)
{
	return claims->visit(claims->data, start, end - start);
}

/* Claim the heads of the lists, and size_map. */
static struct error *claim_arrays(struct claims *claims)
{
	const struct collector *collector = claims->collector;
	uint64_t end = collector->size_map + words(collector, largest_small(collector) + 1);

	return collector->freelists ? claim_range(claims, collector->freelists, end) : NULL;
}

/* Claim the lists of blocks to be swept, of each kind. */
static struct error *claim_reclaim_lists(struct claims *claims)
{
	const struct collector *collector = claims->collector;
	uint64_t list;

	for (size_t kind = 0; kind < collector->kind_count; kind++)
		if (view_word(&claims->view,
			      kind_entry(collector, kind) + words(collector, KIND_RECLAIM),
			      &list) &&
		    list)
			TRY(claim_range(claims, list,
					list + words(collector, list_heads(collector))));
	return NULL;
}

/*
 * True if { start, size } at address is a section: a stretch of whole blocks that the collector got
 * from the system at once. Programs may describe a large object in the same way, which is no
 * section.
 */
static bool is_section(struct claims *claims, uint64_t address)
{
	const struct collector *collector = claims->collector;
	const struct boehm_block *block;
	uint64_t start, size;

	if (!view_word(&claims->view, address, &start) || start == 0 || start % PAGE != 0 ||
	    !view_word(&claims->view, address + words(claims->collector, 1), &size) || size == 0 ||
	    size % PAGE != 0 || size > collector->size + collector->unmapped)
		return false;
	block = boehm_find_block(collector, start, &claims->hint);
	if (!block || block->start != start ||
	    (!is_free(block) && block_end(collector, block) == start + size))
		return false;
	block = boehm_find_block(collector, start + size - 1, &claims->hint);
	return block && block_end(collector, block) == start + size;
}

/* Claim the list of sections at the word, or where it points to. */
static struct error *claim_sections(struct claims *claims, uint64_t where, uint64_t word)
{
	const uint64_t step = words(claims->collector, 2);
	uint64_t address = where, end, start, size;

	if (word % claims->collector->geometry.word != 0)
		return NULL;
	if (!is_section(claims, where))
		address = word;
	if (!view_word(&claims->view, address + words(claims->collector, 1), &size) ||
	    size < SMALLEST_SECTION)
		return NULL;
	for (end = address; end - address < step * MOST_SECTIONS && is_section(claims, end);
	     end += step) {
		if (!view_word(&claims->view, end, &start))
			break;
		TRY(array_append(&claims->sections, start));
	}
	return end > address ? claim_range(claims, address, end) : NULL;
}

/*
 * Claim the collector's variable with the start of the section that it got last, which is no
 * reference to the object there. But an internal table may be there, too.
 */
static struct error *claim_notes(struct claims *claims)
{
	const uint64_t *starts = claims->sections.items;
	uint64_t end = claims->collector->freelists;

	for (uint64_t i = 1; i <= ARRAYS_HEAD && end; i++) {
		uint64_t at = end - words(claims->collector, i), word;
		size_t j = 0;

		if (!view_word(&claims->view, at, &word) || word == 0)
			continue;
		while (j < claims->sections.count && starts[j] != word)
			j++;
		if (j == claims->sections.count ||
		    boehm_is_internal(claims->collector, claims->context->image, word))
			continue;
		TRY(claim_range(claims, at, at + words(claims->collector, 1)));
	}
	return NULL;
}

/* True if [start, end) may be memory of the collector outside of blocks. */
static bool can_be_scratch(const struct claims *claims, uint64_t start, uint64_t end)
{
	const struct program *program = claims->context->program;
	const struct region *region = image_find(claims->context->image, start);
	size_t hint = 0;

	return start % PAGE == 0 && region && region->end >= end &&
	       (region->rights & RIGHT_WRITE) && !region->mapping &&
	       !program_find_stack(program, start) && !program_find_stack(program, end - 1) &&
	       !boehm_find_block(claims->collector, start, &hint) &&
	       !boehm_find_block(claims->collector, end - 1, &hint);
}

/*
 * True if the word at where may be the number of entries of the mark stack, with its start and end
 * nearby.
 */
static bool is_mark_stack(struct claims *claims, uint64_t where, uint64_t word,
			  struct memory_range *ret)
{
	if (word < FEWEST_ENTRIES || word > UINT32_MAX || word & (word - 1))
		return false;
	const uint64_t first = where - words(claims->collector, NEAR);

	for (uint64_t i = 0; i < UINT64_C(2) * NEAR; i++) {
		uint64_t start, end = 0;
		bool ends = false;

		if (!view_word(&claims->view, first + words(claims->collector, i), &start) ||
		    start % PAGE != 0 || start == 0)
			continue;
		for (uint64_t j = 0; j < UINT64_C(2) * NEAR && !ends; j++)
			ends = view_word(&claims->view, first + words(claims->collector, j),
					 &end) &&
			       end - start == words(claims->collector, word * ENTRY);
		if (!ends || !can_be_scratch(claims, start, end))
			continue;
		*ret = (struct memory_range){ start, end };
		return true;
	}
	return false;
}

/* The address of GC_mark_stack_size in GC_arrays, from 8.2 on, behind GC_all_bottom_indices; or 0.
 */
static uint64_t find_mark_stack_size(struct claims *claims)
{
	const struct collector *collector = claims->collector;
	uint64_t address = collector->freelists - words(collector, ARRAYS_HEAD), word;
	struct memory_range stack;

	if (!collector->freelists)
		return 0;
	while (address < collector->freelists &&
	       !(view_word(&claims->view, address, &word) && word == collector->index))
		address += words(collector, 1);
	for (; address < collector->freelists; address += words(collector, 1))
		if (view_word(&claims->view, address, &word) &&
		    is_mark_stack(claims, address, word, &stack))
			return address;
	return 0;
}

bool boehm_mark_state(const struct collector *collector, const struct heap_context *context,
		      uint32_t *ret)
{
	struct claims claims = { .collector = collector,
				 .context = context,
				 .view = { context->image } };
	uint64_t size = find_mark_stack_size(&claims);

	return size && image_read_u32(context->image, size + words(collector, 1), ret);
}

/* True if GC_mark_stack, its limit and top begin at where. */
static bool is_stack_row(struct claims *claims, uint64_t where, uint64_t start,
			 struct memory_range *ret)
{
	const uint64_t entry = words(claims->collector, ENTRY);
	uint64_t end, top, size;

	if (start % PAGE != 0 ||
	    !view_word(&claims->view, where + words(claims->collector, 1), &end) ||
	    !view_word(&claims->view, where + words(claims->collector, 2), &top))
		return false;
	size = end - start;
	/* top is one entry below the start of an empty stack. */
	if (size < words(claims->collector, LOCAL_STACK) || size > UINT32_MAX ||
	    size & (size - 1) || (top - start) % entry != 0 || top + entry - start > size ||
	    !can_be_scratch(claims, start, end))
		return false;
	*ret = (struct memory_range){ start, end };
	return true;
}

static struct error *claim_mark_stack(struct claims *claims, uint64_t where, uint64_t word)
{
	struct memory_range stack;

	if (is_stack_row(claims, where, word, &stack)) {
		/* The limit may happen to be where a block starts. */
		TRY(claim_range(claims, where, where + words(claims->collector, 3)));
		return claim_range(claims, stack.start, stack.end);
	}
	if (!is_mark_stack(claims, where, word, &stack))
		return NULL;
	return claim_range(claims, stack.start, stack.end);
}

/* Claim the mark stack of the collecting thread, if others help it. */
static struct error *claim_local_stack(struct claims *claims)
{
	const uint64_t length = words(claims->collector, LOCAL_STACK);
	uint64_t size = find_mark_stack_size(claims), start;

	if (!size || !view_word(&claims->view, size - words(claims->collector, 2), &start) ||
	    !start || !can_be_scratch(claims, start, start + length))
		return NULL;
	return claim_range(claims, start, start + length);
}

/* True if the thread of that pthread_t is one of those that the collector stops. */
static bool is_registered(struct claims *claims, uint64_t self)
{
	const uint64_t *all = claims->collector->threads.items;

	for (size_t i = 0; i < claims->collector->threads.count; i++)
		for (uint64_t j = 0; j < THREAD_WORDS; j++) {
			uint64_t word;

			if (view_word(&claims->view, all[i] + words(claims->collector, j), &word) &&
			    word == self)
				return true;
		}
	return false;
}

/*
 * The word may be the pthread_t of a marker: a thread that the collector knows but does not stop,
 * with one mark stack in its frames.
 */
static struct error *claim_marker(struct claims *claims, uint64_t word)
{
	const struct program *program = claims->context->program;

	list_for_each(thread, program->threads, program->thread_count) {
		const struct stack *stack;

		if (thread_descriptor(program, thread->thread_pointer) != word ||
		    thread->stack == NO_STACK)
			continue;
		stack = &program->stacks[thread->stack];
		if (stack->kind != STACK_THREAD || word <= stack->live || word > stack->live_end ||
		    word - stack->live - words(claims->collector, LOCAL_STACK) > MARKER_FRAMES ||
		    is_registered(claims, word))
			return NULL;
		return claim_range(claims, stack->live, word);
	}
	return NULL;
}

static struct error *claim_at(void *data, uint64_t where, uint64_t word)
{
	struct claims *claims = data;

	TRY(claim_sections(claims, where, word));
	TRY(claim_mark_stack(claims, where, word));
	return claim_marker(claims, word);
}

/* Claim the pages of headers and indexes. */
static struct error *claim_scratch(struct claims *claims)
{
	_cleanup_(array_release) struct range_list scratch = { .memory.account =
								       claims->context->account };

	TRY(append_scratch(claims->collector, &scratch));
	array_for_each(range, &scratch)
		TRY(claim_range(claims, range->start, range->end));
	return NULL;
}

/* Claim what the collector has for itself, and no word of the program was ever in. */
static struct error *claim_own(struct claims *claims)
{
	TRY(claim_scratch(claims));
	TRY(claim_arrays(claims));
	return claim_reclaim_lists(claims);
}

static struct error *claim_in_sink(void *data, uint64_t start, uint64_t size)
{
	return block_sink_claim(data, start, start + size);
}

struct error *boehm_claim_bookkeeping(const struct collector *collector,
				      const struct heap_context *context, struct block_sink *sink)
{
	_cleanup_(array_release) struct claims claims = {
		.collector = collector,
		.context = context,
		.view = { context->image },
		.visit = claim_in_sink,
		.data = sink,
		.sections = { .memory.account = context->account },
	};

	TRY(claim_own(&claims));
	TRY(boehm_visit_own_data(collector, context->image, claim_at, &claims));
	TRY(claim_notes(&claims));
	return claim_local_stack(&claims);
}

/* Sections have sizes, and the mark stack has one. Its entries, and markers' stacks, have words of
 * the program. */
static struct error *claim_sizes_at(void *data, uint64_t where, uint64_t word)
{
	struct claims *claims = data;
	struct memory_range stack;

	TRY(claim_sections(claims, where, word));
	return is_mark_stack(claims, where, word, &stack)
		       ? claim_range(claims, where, where + words(claims->collector, 1))
		       : NULL;
}

struct error *boehm_visit_bookkeeping(const struct collector *collector,
				      const struct heap_context *context,
				      program_range_visitor *visit, void *data)
{
	_cleanup_(array_release) struct claims claims = {
		.collector = collector,
		.context = context,
		.view = { context->image },
		.visit = visit,
		.data = data,
		.sections = { .memory.account = context->account },
	};
	uint64_t size;

	TRY(claim_own(&claims));
	TRY(boehm_visit_own_data(collector, context->image, claim_sizes_at, &claims));
	/* GC_mark_state follows. */
	size = find_mark_stack_size(&claims);
	return size ? visit(data, size, words(collector, 2)) : NULL;
}
