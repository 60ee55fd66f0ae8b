/*
 * Where each thread's control block is.
 *
 * The dump has the thread pointer, but some that write cores put rubbish there. If the block begins
 * with its own address, as on x86-64 (ELF Handling For Thread-Local Storage, 3.4.6), the pointer
 * can be checked, and the block be found without it: above the stack pointer in the thread's own
 * stack, or, for the thread that the kernel started, near an end of the memory that the loader or a
 * static program allocated.
 */
#include "analyzer/program/program_parts.h"

#include <string.h>

enum {
	ALIGNMENT = 64, /* of struct pthread */
	ENDS = 1 << 20, /* so much of a mapping's beginning and end is read */
};

/* How much memory is read for it at most, by all searches together. */
static const uint64_t BUDGET = UINT64_C(1) << 30;

struct search {
	const struct image *image;
	struct thread *threads;
	size_t count;
	uint64_t budget;
	/* Blocks with a number that no thread has, and the last of them. */
	size_t strangers;
	uint64_t stranger;
};

static bool names_itself(const struct image *image, uint64_t address)
{
	uint64_t first, self;

	return address != 0 && image_read_u64(image, address, &first) && first == address &&
	       image_read_u64(image, address + image->arch->pthread.self, &self) && self == address;
}

/* Without a block that names itself, its number tells. */
static bool is_right(const struct image *image, const struct thread *thread)
{
	uint64_t address = thread->thread_pointer;

	if (image->arch->pthread.self)
		return names_itself(image, address);
	return address != 0 &&
	       descriptor_tid(image, thread_descriptor(image, address)) == thread->id;
}

/* The next address in [start, end) with a block; end if there is none. */
static uint64_t next_block(struct search *search, uint64_t start, uint64_t end)
{
	uint64_t at = (start + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);

	while (at < end && search->budget >= ALIGNMENT) {
		uint64_t size, first;
		const uint8_t *bytes;

		if (at % PAGE == 0)
			at = image_next_data(search->image, at);
		bytes = at < end ? image_bytes(search->image, at, &size) : NULL;
		if (!bytes || size < sizeof(first))
			return end;
		search->budget -= ALIGNMENT;
		memcpy(&first, bytes, sizeof(first));
		if (first == at && names_itself(search->image, at))
			return at;
		at = (at & ~(uint64_t)(ALIGNMENT - 1)) + ALIGNMENT;
	}
	return end;
}

static void set(struct thread *thread, uint64_t address, enum pointer_source source)
{
	thread->thread_pointer = address;
	thread->pointer_source = source;
}

/* glibc puts the block at the upper end of a stack that it makes. */
static void search_stack(struct search *search, struct thread *thread)
{
	const struct region *region = image_find(search->image, thread->stack_pointer);
	uint64_t at = thread->stack_pointer;
	struct descriptor descriptor;

	if (!region || !region->bytes || !(region->rights & RIGHT_WRITE))
		return;
	while ((at = next_block(search, at, region->end)) < region->end) {
		if (descriptor_read(search->image, at, &descriptor) &&
		    thread->stack_pointer - descriptor.start < descriptor.end - descriptor.start) {
			set(thread, at,
			    (uint32_t)descriptor.tid == thread->id ? POINTER_FOUND
								   : POINTER_LIKELY);
			return;
		}
		at += ALIGNMENT;
	}
}

/* Whose block that is, by the number in it. */
static void assign(struct search *search, uint64_t address)
{
	uint32_t id = descriptor_tid(search->image, address);

	for (size_t i = 0; i < search->count; i++)
		if (search->threads[i].thread_pointer == address)
			return;
	list_for_each(thread, search->threads, search->count) {
		if (thread->pointer_source == POINTER_UNKNOWN && thread->id == id) {
			set(thread, address, POINTER_FOUND);
			return;
		}
	}
	if ((int32_t)id > 0) {
		search->strangers++;
		search->stranger = address;
	}
}

static void search_range(struct search *search, uint64_t start, uint64_t end)
{
	while ((start = next_block(search, start, end)) < end) {
		assign(search, start);
		start += ALIGNMENT;
	}
}

static void search_memory(struct search *search)
{
	list_for_each(region, search->image->regions, search->image->region_count) {
		if (region->origin != REGION_CORE || !(region->rights & RIGHT_WRITE))
			continue;
		if (region->end - region->start <= 2 * ENDS) {
			search_range(search, region->start, region->end);
			continue;
		}
		search_range(search, region->start, region->start + ENDS);
		search_range(search, region->end - ENDS, region->end);
	}
}

static size_t count_unknown(const struct search *search, struct thread **ret_last)
{
	size_t count = 0;

	for (size_t i = 0; i < search->count; i++)
		if (search->threads[i].pointer_source == POINTER_UNKNOWN) {
			*ret_last = &search->threads[i];
			count++;
		}
	return count;
}

/* Correct the threads' pointers, and say in them how sure each is. */
void program_check_thread_pointers(struct program *program)
{
	const struct image *image = program->image;
	struct thread *threads = program->threads, *last = NULL;
	struct search search = { image, threads, program->thread_count, BUDGET, 0, 0 };

	for (size_t i = 0; i < program->thread_count; i++)
		threads[i].pointer_source =
			is_right(image, &threads[i]) ? POINTER_TOLD : POINTER_UNKNOWN;
	if (count_unknown(&search, &last) == 0 || !image->arch->pthread.self)
		return;
	for (size_t i = 0; i < program->thread_count; i++)
		if (threads[i].pointer_source == POINTER_UNKNOWN)
			search_stack(&search, &threads[i]);
	if (count_unknown(&search, &last) == 0)
		return;
	search_memory(&search);
	/* In a container, threads have other numbers than for its host. */
	if (count_unknown(&search, &last) == 1 && search.strangers == 1)
		set(last, search.stranger, POINTER_LIKELY);
}
