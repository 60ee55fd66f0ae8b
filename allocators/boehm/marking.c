#include "allocators/boehm/marking.h"

#include "allocators/boehm/blocks.h"
#include "allocators/boehm/data.h"

enum {
	ENTRY = 16,	       /* bytes of a mark stack's */
	FEWEST_ENTRIES = 4096, /* INITIAL_MARK_STACK_SIZE, LOCAL_... */
	/* How far apart the variables of a mark stack are, at most. */
	NEAR = 128,
	/* A marker's own mark stack, and what else is on its stack. */
	LOCAL_STACK = FEWEST_ENTRIES * ENTRY,
	MARKER_FRAMES = 16384,
	THREAD_WORDS = 8, /* of GC_Thread_Rep: one is its pthread_t */
};

struct search {
	const struct collector *collector;
	const struct heap_context *context;
	struct view view;
	struct block_sink *sink;
};

/* Whether [start, end) is memory that may be the collector's, and no block. */
static bool can_be_scratch(const struct search *search, uint64_t start, uint64_t end)
{
	const struct region *region = image_find(search->context->image, start);
	size_t hint = 0;

	return start % PAGE == 0 && region && region->end >= end &&
	       (region->rights & RIGHT_WRITE) && !region->mapping &&
	       !program_find_stack(search->context->program, start) &&
	       !boehm_find_block(search->collector, start, &hint) &&
	       !boehm_find_block(search->collector, end - 1, &hint);
}

/*
 * Whether the word at where may be how many entries the mark stack has: then its start and end are
 * noted nearby.
 */
static bool is_mark_stack(struct search *search, uint64_t where, uint64_t word,
			  struct memory_range *ret)
{
	if (word < FEWEST_ENTRIES || word > UINT32_MAX || word & (word - 1))
		return false;
	for (uint64_t i = 0; i < 2 * NEAR; i += 8) {
		uint64_t start, end = 0;
		bool ends = false;

		if (!view_word(&search->view, where - NEAR + i, &start) || start % PAGE != 0 ||
		    start == 0)
			continue;
		for (uint64_t j = 0; j < 2 * NEAR && !ends; j += 8)
			ends = view_word(&search->view, where - NEAR + j, &end) &&
			       end - start == word * ENTRY;
		if (!ends || !can_be_scratch(search, start, end))
			continue;
		*ret = (struct memory_range){ start, end };
		return true;
	}
	return false;
}

/* Where GC_arrays has GC_mark_stack_size, from 8.2 on: behind GC_all_bottom_indices. 0: nowhere. */
static uint64_t find_mark_stack_size(struct search *search)
{
	const struct collector *collector = search->collector;
	uint64_t address = collector->freelists - ARRAYS_HEAD, word;
	struct memory_range stack;

	if (!collector->freelists)
		return 0;
	while (address < collector->freelists &&
	       !(view_word(&search->view, address, &word) && word == collector->index))
		address += 8;
	for (; address < collector->freelists; address += 8)
		if (view_word(&search->view, address, &word) &&
		    is_mark_stack(search, address, word, &stack))
			return address;
	return 0;
}

bool boehm_mark_state(const struct collector *collector, const struct heap_context *context,
		      uint32_t *ret)
{
	struct search search = { collector, context, { context->image } };
	uint64_t size = find_mark_stack_size(&search);

	return size && image_read_u32(context->image, size + 8, ret);
}

/* Whether GC_mark_stack, its limit and top begin at where. */
static bool is_stack_row(struct search *search, uint64_t where, uint64_t start,
			 struct memory_range *ret)
{
	uint64_t end, top, size;

	if (start % PAGE != 0 || !view_word(&search->view, where + 8, &end) ||
	    !view_word(&search->view, where + 16, &top))
		return false;
	size = end - start;
	/* top is one entry below the start of an empty stack. */
	if (size < LOCAL_STACK || size > UINT32_MAX || size & (size - 1) ||
	    (top - start) % ENTRY != 0 || top + ENTRY - start > size ||
	    !can_be_scratch(search, start, end))
		return false;
	*ret = (struct memory_range){ start, end };
	return true;
}

static struct error *claim_mark_stack(struct search *search, uint64_t where, uint64_t word)
{
	struct memory_range stack;
	struct error *error;

	if (is_stack_row(search, where, word, &stack)) {
		/* The limit may happen to be where a block starts. */
		error = block_sink_claim(search->sink, where, where + 24);
		return error ? error : block_sink_claim(search->sink, stack.start, stack.end);
	}
	if (!is_mark_stack(search, where, word, &stack))
		return NULL;
	return block_sink_claim(search->sink, stack.start, stack.end);
}

/* Claim the mark stack of the thread that collects, if others help it. */
static struct error *claim_local_stack(struct search *search)
{
	uint64_t size = find_mark_stack_size(search), start;

	if (!size || !view_word(&search->view, size - 16, &start) || !start ||
	    !can_be_scratch(search, start, start + LOCAL_STACK))
		return NULL;
	return block_sink_claim(search->sink, start, start + LOCAL_STACK);
}

/* Whether the collector has the thread on its list of those to stop. */
static bool is_registered(struct search *search, const struct thread *thread)
{
	const uint64_t *all = search->collector->threads.items;

	for (size_t i = 0; i < search->collector->threads.count; i++)
		for (uint64_t j = 0; j < THREAD_WORDS; j++) {
			uint64_t word;

			if (view_word(&search->view, all[i] + 8 * j, &word) &&
			    word == thread->thread_pointer)
				return true;
		}
	return false;
}

/*
 * The word may be the pthread_t of a marker: a thread that the collector knows but does not stop,
 * with one mark stack in its frames.
 */
static struct error *claim_marker(struct search *search, uint64_t word)
{
	const struct program *program = search->context->program;

	for (size_t i = 0; i < program_thread_count(program); i++) {
		const struct thread *thread = program_thread(program, i);
		const struct stack *stack;

		if (thread->thread_pointer != word || thread->stack == NO_STACK)
			continue;
		stack = program_stack(program, thread->stack);
		if (stack->kind != STACK_THREAD || word <= stack->live || word > stack->live_end ||
		    word - stack->live - LOCAL_STACK > MARKER_FRAMES ||
		    is_registered(search, thread))
			return NULL;
		return block_sink_claim(search->sink, stack->live, word);
	}
	return NULL;
}

static struct error *look(void *data, uint64_t where, uint64_t word)
{
	struct search *search = data;
	struct error *error = claim_mark_stack(search, where, word);

	return error ? error : claim_marker(search, word);
}

struct error *boehm_claim_marking(const struct collector *collector,
				  const struct heap_context *context, struct block_sink *sink)
{
	struct search search = { collector, context, { context->image }, sink };
	struct error *error = boehm_visit_own_data(collector, context->image, look, &search);

	if (!error)
		error = claim_local_stack(&search);
	return error;
}
