/*
 * Finds each thread's control block.
 *
 * The dump has the thread pointer, but some that write cores put rubbish there, or nothing. If the
 * block begins with its own address, as on x86-64 (ELF Handling For Thread-Local Storage, 3.4.6),
 * the pointer can be checked, and the block be found without it: above the stack pointer in the
 * thread's own stack, or, for the thread that the kernel started, near an end of the memory that
 * the loader or a static program allocated.
 *
 * Where thread-local variables are above the block (variant I), it has the address of the table
 * (dtv) of them instead, of which the first are right behind the block. How far below it struct
 * pthread begins depends on the version of glibc: where a number of a thread stands there, and is
 * on glibc's list of stacks. The thread pointer is the start of the block or, on other machines,
 * its end.
 *
 *	struct pthread        block
 *	| list | number | ... | table | 0 | variables of module 1 | ...
 */
#include "analyzer/base/budget.h"
#include "analyzer/program/program_parts.h"

#include <string.h>

enum {
	ENDS = 1 << 20, /* so much of a mapping's beginning and end is read */

	/* of variant I */
	TABLE_ENTRY = 16, /* the first is in front of the table, with its size */
	MOST_ENTRIES = 1 << 16,
	MOST_BETWEEN = 1 << 16, /* the variables are aligned */
	POINTER_ALIGNMENT = 16,
};

/* Limit for the memory read, for all searches together. */
static const uint64_t BUDGET = UINT64_C(1) << 30;

struct search {
	struct program *program;
	const struct image *image;
	struct thread *threads;
	size_t count;
	uint64_t alignment;   /* of what is searched for */
	bool has_distance;    /* program->pthread_pointer is that of its glibc */
	struct budget budget; /* bytes to search */
	/* Blocks with a number that no thread has, and the last of them. */
	size_t strangers;
	uint64_t stranger;
};

static bool has_table(const struct image *image, uint64_t address)
{
	uint64_t count, block, table, unused, between;
	int64_t dtv = image->arch->pthread.dtv, variables = image->arch->pthread.variables;

	if (!image_read_u64(image, address + (uint64_t)dtv, &table) || table % TABLE_ENTRY != 0 ||
	    table < PAGE)
		return false;
	for (between = (uint64_t)(variables - dtv) - 8; between > 0; between -= 8)
		if (!image_read_u64(image, address + (uint64_t)variables - between, &unused) ||
		    unused != 0)
			return false;
	return image_read_u64(image, table - TABLE_ENTRY, &count) && count - 1 < MOST_ENTRIES &&
	       image_read_u64(image, table + TABLE_ENTRY, &block) &&
	       block - address - (uint64_t)variables < MOST_BETWEEN;
}

static bool is_block(const struct image *image, uint64_t address)
{
	uint64_t first, self;

	if (!image->arch->pthread.self)
		return address % POINTER_ALIGNMENT == 0 && has_table(image, address);
	return address != 0 && image_read_word(image, address, &first) && first == address &&
	       image_read_word(image, address + image->arch->pthread.self, &self) &&
	       self == address;
}

/* True if a struct pthread with the number of a thread is at address. */
static bool is_descriptor(const struct search *search, uint64_t address)
{
	uint64_t next, list = address + search->image->arch->pthread.list, back;
	uint32_t id = descriptor_tid(search->image, address);
	bool is_thread = false;

	for (size_t i = 0; id != 0 && !is_thread && i < search->count; i++)
		is_thread = search->threads[i].id == id;
	return is_thread && image_read_word(search->image, list, &next) &&
	       image_read_word(search->image, next + image_word_size(search->image), &back) &&
	       back == list;
}

static void find_distance(struct search *search, uint64_t pointer)
{
	const struct arch *arch = search->image->arch;

	if (arch->pthread.most <= arch->pthread.pointer)
		search->has_distance = true;
	for (uint16_t i = arch->pthread.pointer; i <= arch->pthread.most && !search->has_distance;
	     i += POINTER_ALIGNMENT) {
		if (!is_descriptor(search, pointer - i))
			continue;
		search->program->pthread_pointer = i;
		search->has_distance = true;
	}
}

/* The next address in [start, end) with a block; end if there is none. */
static uint64_t next_block(struct search *search, uint64_t start, uint64_t end)
{
	uint64_t alignment = search->alignment;
	uint64_t at = (start + alignment - 1) & ~(alignment - 1);
	unsigned int word = image_word_size(search->image);
	bool names_itself = search->image->arch->pthread.self != 0;

	while (at < end && budget_take_many(&search->budget, alignment)) {
		uint64_t size, first;
		const uint8_t *bytes;

		if (at % PAGE == 0)
			at = image_next_data(search->image, at);
		bytes = at < end ? image_bytes(search->image, at, &size) : NULL;
		if (!bytes || size < word)
			return end;
		first = load_word(bytes, word);
		if ((first == at || !names_itself) && is_block(search->image, at)) {
			if (!search->has_distance)
				find_distance(search, at);
			return at;
		}
		at = (at & ~(alignment - 1)) + alignment;
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
		if (descriptor_read(search->image, thread_descriptor(search->program, at),
				    &descriptor) &&
		    thread->stack_pointer - descriptor.start < descriptor.end - descriptor.start) {
			set(thread, at,
			    (uint32_t)descriptor.tid == thread->id ? POINTER_FOUND
								   : POINTER_LIKELY);
			return;
		}
		at += search->alignment;
	}
}

/* Assign the block to the thread whose number it has. */
static void assign(struct search *search, uint64_t address)
{
	uint32_t id = descriptor_tid(search->image, thread_descriptor(search->program, address));

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
		start += search->alignment;
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
	enum { PTHREAD_ALIGNMENT = 64 };
	const struct image *image = program->image;
	struct thread *threads = program->threads, *last = NULL;
	struct search search = {
		.program = program,
		.image = image,
		.threads = threads,
		.count = program->thread_count,
		.alignment = image->arch->pthread.self ? PTHREAD_ALIGNMENT : POINTER_ALIGNMENT,
		.budget = { BUDGET },
	};

	for (size_t i = 0; i < program->thread_count; i++) {
		bool is_right = is_block(image, threads[i].thread_pointer);

		threads[i].pointer_source = is_right ? POINTER_TOLD : POINTER_UNKNOWN;
		if (is_right && !search.has_distance)
			find_distance(&search, threads[i].thread_pointer);
	}
	if (count_unknown(&search, &last) == 0)
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
