#include "allocators/glibc/lists.h"

#include <signal.h>
#include <string.h>

enum {
	INNER_FRAMES = 512, /* bytes above the stack pointer */
	MAXIMUM_CHAIN = 1 << 20,
};

/* True if the thread runs code of the module with malloc. */
static bool is_in_home(const struct glibc_heap *heap, const struct thread *thread)
{
	const struct module *module = program_find_module(heap->context.program, heap->home);
	uint64_t at = thread->instruction;

	return module && at >= module->start && at < module->end;
}

static bool may_be_inside(const struct glibc_heap *heap, const struct thread *thread)
{
	/* malloc makes no other calls. */
	return is_in_home(heap, thread) && (thread->system_call == SYSTEM_CALL_NONE ||
					    thread->system_call == SYSTEM_CALL_MEMORY);
}

/*
 * True if a fault of this thread ended the process. The thread may have caught the signal and sent
 * it to itself again.
 */
static bool has_crashed(const struct image *image, const struct thread *thread)
{
	if (image_signal_is_foreign(image, thread->state))
		return false;
	switch (thread->state->signal) {
	case SIGSEGV:
	case SIGBUS:
	case SIGILL:
	case SIGFPE:
		return true;
	case SIGABRT: /* by abort(), not from outside */
		return thread->system_call == SYSTEM_CALL_KILL;
	default:
		return false;
	}
}

void glibc_find_work(struct glibc_heap *heap)
{
	const struct program *program = heap->context.program;
	size_t threads = program->thread_count;
	bool crashed = false, inside = false;

	/* The kernel gives all threads the signal that the first one took. */
	if (threads > 0) {
		const struct thread *first = &program->threads[0];

		crashed = has_crashed(heap->context.image, first) &&
			  (threads == 1 || is_in_home(heap, first));
	}
	for (size_t i = 0; i < threads; i++)
		inside |= may_be_inside(heap, &program->threads[i]);
	list_for_each(arena, heap->arenas, heap->arena_count) {
		/* With a single thread, malloc takes no lock. */
		arena->locked |= threads == 1 && inside && arena->main;
		arena->in_fault = arena->locked && crashed;
		arena->locked &= !crashed;
	}
}

static const char *tell_fault(bool in_fault)
{
	return in_fault ? "A thread was inside of malloc: it may only be unfinished. " : "";
}

const char *glibc_tell_work(const struct glibc_arena *arena)
{
	return tell_fault(arena->in_fault);
}

const char *glibc_tell_any_work(const struct glibc_heap *heap)
{
	bool in_fault = false;

	for (size_t i = 0; i < heap->arena_count; i++)
		in_fault |= heap->arenas[i].in_fault;
	return tell_fault(in_fault);
}

/* True if the chunk at address is in use; sets its size including the header. */
static bool is_used_chunk(const struct glibc_heap *heap, const struct block_sink *sink,
			  uint64_t chunk, uint64_t *ret_size)
{
	struct block block;

	if (!glibc_may_be_chunk(heap, chunk) ||
	    !block_sink_find(sink, chunk + heap->header, &block) || block.state != BLOCK_USED)
		return false;
	*ret_size = block.size;
	return true;
}

/* malloc takes a fast bin whole when it consolidates: the chain behind a chunk is free as well. */
static void free_chain(struct glibc_heap *heap, struct block_sink *sink, uint64_t chunk,
		       uint64_t size)
{
	struct view view = { heap->context.image };
	uint64_t link, found;

	for (size_t i = 0; i < MAXIMUM_CHAIN; i++) {
		if (!view_word(&view, chunk + heap->header, &link))
			return;
		link = glibc_demangle(heap, chunk + heap->header, link);
		if (!is_used_chunk(heap, sink, link, &found) || found != size)
			return;
		block_sink_restate(sink, link + heap->header, BLOCK_FREE);
		chunk = link;
	}
}

static struct error *hold(struct glibc_heap *heap, struct block_sink *sink, uint64_t chunk)
{
	uint64_t size;

	if (!is_used_chunk(heap, sink, chunk, &size))
		return NULL;
	free_chain(heap, sink, chunk, size);
	return block_sink_hold(sink, chunk + heap->header);
}

static struct error *hold_for_thread(struct glibc_heap *heap, struct block_sink *sink,
				     const struct thread *thread)
{
	unsigned int registers = heap->context.image->arch->register_count;
	uint64_t word;
	struct view view = { heap->context.image };

	for (unsigned int i = 0; i < registers; i++)
		TRY(hold(heap, sink, thread->state->registers[i]));
	for (uint64_t i = thread->used_from & ~((uint64_t)heap->word - 1);
	     i < thread->stack_pointer + INNER_FRAMES; i += heap->word)
		if (view_word(&view, i, &word))
			TRY(hold(heap, sink, word));
	return NULL;
}

struct error *glibc_hold_transit(struct glibc_heap *heap, struct block_sink *sink)
{
	const struct program *program = heap->context.program;

	list_for_each(thread, program->threads, program->thread_count) {
		if (may_be_inside(heap, thread))
			TRY(hold_for_thread(heap, sink, thread));
	}
	return NULL;
}
