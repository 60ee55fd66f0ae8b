/*
 * Finding the stacks of a dump, and which part of each is in use.
 *
 * Only what is certain to be a stack becomes one. The kernel's stack of the main thread holds the
 * bytes that AT_RANDOM points at. glibc keeps the stacks that it makes on lists, and its struct
 * pthread, at the upper end of a stack, tells where the stack begins. Anything else that a stack
 * pointer points into stays ordinary memory, all of it a root.
 *
 *	block         stack pointer       struct pthread     block + size
 *	| guard | dead | red zone | frames | TLS | pthread |
 *
 * The offsets within struct pthread are the architecture's (arch.h). Where the block is recorded
 * differs between versions; it is found by its contents.
 */
#include "analyzer/base/keep.h"
#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/program/program_parts.h"
#include "analyzer/program/symbols.h"

#include <elf.h>
#include <string.h>

/* struct pthread (glibc, nptl/descr.h and tls.h), besides what the architecture tells */
static const uint32_t ROBUST = (uint32_t)-20; /* robust_head.futex_offset */

enum {
	PTHREAD_ALIGNMENT = 64,	  /* of it, and so of its list of stacks, { next, prev } */
	POINTER_ALIGNMENT = 16,	  /* the same if it lies below the thread pointer */
	PTHREAD_EXITING = 0x30,	  /* in cancelhandling: a thread has ended by itself */
	PTHREAD_FREED = 0x20,	  /* and was joined, or was detached */
	PTHREAD_SIZE = 2304,	  /* at most about this much, in all versions */
	PTHREAD_REACH = 1 << 16,  /* from it to the end of the stack, at most */
	SMALLEST_STACK = 1 << 14, /* PTHREAD_STACK_MIN */
	MAXIMUM_STACKS = 1 << 20,
	MOST_LOOKS = 1 << 12, /* more than the loader's and libraries' data */
};

static uint64_t word(const struct arch *arch, const uint8_t *bytes, size_t offset)
{
	return load_word(bytes + offset, arch_word_size(arch));
}

/*
 * stackblock, stackblock_size and guardsize stand in a row: the descriptor itself is in that block.
 */
static bool find_block(const struct arch *arch, const uint8_t *bytes, size_t size,
		       struct descriptor *descriptor)
{
	unsigned int step = arch_word_size(arch);

	for (size_t i = arch->pthread.tid; i + 3 * step <= size; i += step) {
		uint64_t block = word(arch, bytes, i), length = word(arch, bytes, i + step),
			 guard = word(arch, bytes, i + 2 * step);

		/* No stack is larger than its address: a number before one is none. */
		if (block > descriptor->address || length > block ||
		    length <= descriptor->address - block ||
		    length - (descriptor->address - block) > PTHREAD_REACH ||
		    length > UINT64_MAX - block || length < SMALLEST_STACK || guard >= length ||
		    guard % PAGE != 0)
			continue;
		descriptor->start = block;
		descriptor->end = block + length;
		descriptor->block = descriptor->address + i;
		return true;
	}
	return false;
}

uint32_t descriptor_tid(const struct image *image, uint64_t address)
{
	uint64_t place = address + image->arch->pthread.tid;
	uint32_t tid;

	return image_read_u32(image, place, &tid) ? tid : 0;
}

bool descriptor_read(const struct image *image, uint64_t address, struct descriptor *ret)
{
	const struct arch *arch = image->arch;
	size_t self = arch->pthread.self, tid = arch->pthread.tid, cancel = arch->pthread.cancel;
	struct descriptor descriptor = { .address = address };
	uint8_t bytes[PTHREAD_SIZE];
	size_t size = sizeof(bytes), step = arch_word_size(arch);
	uint64_t available, first;

	/* Most that is taken for one ends here already. */
	if (!image_read_word(image, address, &first) || (self && first != address) ||
	    !image_bytes(image, address, &available))
		return false;
	size = MIN(size, available);
	if (size <= cancel + sizeof(int32_t) || size < tid + 24 ||
	    !image_read(image, address, bytes, size) ||
	    (self && word(arch, bytes, self) != address) ||
	    !find_block(arch, bytes, size, &descriptor))
		return false;
	memcpy(&descriptor.tid, bytes + tid, sizeof(int32_t));
	if (arch->pthread.robust && (uint32_t)word(arch, bytes, arch->pthread.robust) != ROBUST)
		cancel += sizeof(int32_t);
	descriptor.exited = bytes[cancel] & PTHREAD_EXITING;
	descriptor.freed = bytes[cancel] & PTHREAD_FREED;
	/* joinid, which names the thread itself once it is detached */
	for (size_t i = tid + 8; i + step <= size; i += step)
		if (word(arch, bytes, i) == address)
			descriptor.detached = true;
	*ret = descriptor;
	return true;
}

static struct error *add_stack(struct program *program, struct stack stack)
{
	return LIST_APPEND(program->stacks, program->stack_count, stack);
}

/*
 * The live part of a stack that thread runs on. One whose stack pointer is elsewhere, on a signal
 * stack or a coroutine's, may return to any of it.
 */
static uint64_t live_part(const struct thread *thread, uint64_t start, uint64_t end)
{
	if (thread->live >= start && thread->live < end)
		return thread->live;
	if (thread->stack_pointer < start || thread->stack_pointer >= end)
		return start;
	return thread_live(thread, start);
}

/*
 * The place where a main thread's frames began, if it ended by itself: nothing of the program is
 * below, only its arguments are above. Other threads keep the process running; its id is that of
 * the main thread.
 */
static uint64_t find_end_of_frames(const struct program *program)
{
	uint32_t process = program->image->origin.process;
	uint64_t place, end;

	for (size_t i = 0; i < program->thread_count; i++)
		if (program->threads[i].id == process)
			return 0;
	if (process == 0)
		return 0;
	for (size_t i = 0; i < program->module_count; i++)
		if (strncmp(module_file_name(&program->modules[i]), "ld-", 3) == 0 &&
		    module_find_variable(&program->modules[i], "__libc_stack_end", &place) &&
		    image_read_word(program->image, place, &end))
			return end;
	return 0;
}

static struct error *add_main_stack(struct program *program)
{
	const struct image *image = program->image;
	const struct thread *threads = program->threads;
	const struct region *region = image_find(image, image_auxiliary(image, AT_RANDOM, 0));
	struct stack stack = { .kind = STACK_MAIN, .thread = NO_THREAD };
	uint64_t above;

	if (!region || !(region->rights & RIGHT_WRITE))
		return NULL;
	stack.start = stack.live = region->start;
	stack.end = stack.live_end = region->end;
	for (size_t i = 0; i < program->thread_count && stack.thread == NO_THREAD; i++) {
		uint64_t pointer = threads[i].stack_pointer;

		if (pointer < stack.start || pointer >= stack.end)
			continue;
		stack.thread = (uint32_t)i;
		stack.live = live_part(&threads[i], stack.start, stack.end);
	}
	above = find_end_of_frames(program);
	if (stack.thread == NO_THREAD && above > stack.start && above < stack.end)
		stack.live = above;
	return add_stack(program, stack);
}

static struct error *add_thread_stacks(struct program *program)
{
	const struct image *image = program->image;

	for (size_t i = 0; i < program->thread_count; i++) {
		const struct thread *thread = &program->threads[i];
		struct descriptor found;

		if (!descriptor_read(image, thread_descriptor(program, thread->thread_pointer),
				     &found))
			continue;
		TRY(add_stack(program, (struct stack){
					       .kind = STACK_THREAD,
					       .start = found.start,
					       .live = live_part(thread, found.start, found.end),
					       .live_end = found.end,
					       .end = found.end,
					       .thread = (uint32_t)i,
					       .descriptor = found.address,
				       }));
	}
	return NULL;
}

/*
 * Add the live part of an ended thread's stack. Once the thread cannot be joined any more, glibc
 * keeps the stack for another thread, and with it only the table of its TLS (dtv); before, the
 * descriptor holds the thread's result.
 *
 * A thread that has not ended by itself vanished in a fork, which leaves the child all stacks and
 * one thread. glibc counts the stack as free, but what stands there is as the thread left it, and
 * nobody knows where it was.
 */
static struct error *add_finished(struct program *program, const struct descriptor *descriptor)
{
	uint64_t dtv = (uint64_t)program->image->arch->pthread.dtv;
	bool over = descriptor->tid < 0 || descriptor->detached || descriptor->freed;
	struct stack stack = {
		.kind = over ? STACK_FINISHED : STACK_UNJOINED,
		.start = descriptor->start,
		.live = descriptor->address,
		.live_end = over ? descriptor->address + program->pthread_pointer + dtv +
					    image_word_size(program->image)
				 : descriptor->end,
		.end = descriptor->end,
		.thread = NO_THREAD,
		.descriptor = descriptor->address,
	};

	if (descriptor->tid == 0 && !descriptor->exited) {
		stack.kind = STACK_VANISHED;
		stack.live = stack.start;
		stack.live_end = stack.end;
	}
	return add_stack(program, stack);
}

/*
 * True if the descriptor's thread has ended. The kernel clears its number only once the thread is
 * gone. Before, it may run no more of the program and be missing from the dump.
 */
static bool has_ended(const struct program *program, const struct descriptor *descriptor)
{
	bool has_ended = descriptor->tid <= 0 || descriptor->exited;

	for (size_t i = 0; descriptor->tid > 0 && has_ended && i < program->thread_count; i++) {
		uint64_t pointer = program->threads[i].thread_pointer;

		has_ended = pointer && thread_descriptor(program, pointer) != descriptor->address;
	}
	return has_ended;
}

/* Walk the list of stacks whose head stands at address, if there is one. */
static struct error *walk_list(struct program *program, uint64_t head, uint64_t next)
{
	const struct image *image = program->image;
	const struct arch *arch = image->arch;
	uint64_t previous = head, back;

	for (size_t i = 0; i < MAXIMUM_STACKS && next != head; i++) {
		struct descriptor descriptor;

		if (!image_read_word(image, next + image_word_size(image), &back) ||
		    back != previous ||
		    !descriptor_read(image, next - arch->pthread.list, &descriptor))
			return NULL;
		if (has_ended(program, &descriptor))
			TRY(add_finished(program, &descriptor));
		previous = next;
		if (!image_read_word(image, next, &next))
			return NULL;
	}
	return NULL;
}

/*
 * The heads of the lists of stacks are in the data of the loader, of the C library or of a static
 * program. A head is known by its first member, which points back, and is no member itself. So no
 * list is walked twice.
 *
 * If there is a loader, the heads are in data that is small: where more words could be pointers of
 * a head, they are those of a table, into a heap that may be larger than memory.
 */
static struct error *scan_for_lists(struct program *program, const struct region *region)
{
	enum { MOST = 64 << 20 };
	const struct image *image = program->image;
	uint64_t size = region->end - region->start, back;
	uint64_t looks = image_auxiliary(image, AT_BASE, 0) ? MOST_LOOKS : MOST;
	unsigned int step = image_word_size(image);
	uint64_t list = image->arch->pthread.list;
	uint64_t alignment = image->arch->pthread.self ? PTHREAD_ALIGNMENT : POINTER_ALIGNMENT;

	size = MIN(size, MOST);
	for (uint64_t i = 0; i + 2 * step <= size && looks > 0; i += step) {
		uint64_t head = region->start + i;
		uint64_t next = word(image->arch, region->bytes, i);
		uint64_t last = word(image->arch, region->bytes, i + step);
		struct descriptor member;

		/*
		 * An empty list's head points at itself. What next leads to may have to be read
		 * from the disk: it comes last.
		 */
		if (next < PAGE || (next - list) % alignment != 0 || next == head ||
		    (last - list) % alignment != 0)
			continue;
		looks--;
		if (!image_read_word(image, next + image_word_size(image), &back) || back != head ||
		    descriptor_read(image, head - image->arch->pthread.list, &member))
			continue;
		TRY(walk_list(program, head, next));
	}
	return NULL;
}

static struct error *add_finished_stacks(struct program *program)
{
	uint64_t scanned = 0; /* several modules may be in one region */

	list_for_each(module, program->modules, program->module_count) {
		const struct region *region =
			image_find(program->image, MAX(module->start, scanned));

		/* Its mappings, and what is zero at first right behind them. */
		while (region && region->start <= module->end) {
			if ((region->rights & RIGHT_READ) && !(region->rights & RIGHT_EXECUTE) &&
			    region->origin == REGION_CORE)
				TRY(scan_for_lists(program, region));
			scanned = region->end;
			region = image_find(program->image, scanned);
		}
	}
	return NULL;
}

DEFINE_COMPARE(compare_stacks, struct stack, ASCENDING(start), ASCENDING(kind))

/* Sort them; of two that overlap, the first counts. */
static void sort_stacks(struct program *program)
{
	SORT(program->stacks, program->stack_count, compare_stacks);
	program->stack_count = LIST_KEEP(program->stacks, program->stack_count, stack, last,
					 !last || stack->start >= last->end);
}

struct error *program_find_stacks(struct program *program)
{
	TRY(add_main_stack(program));
	TRY(add_thread_stacks(program));
	TRY(add_finished_stacks(program));
	sort_stacks(program);
	for (size_t i = 0; i < program->stack_count; i++)
		if (program->stacks[i].thread != NO_THREAD)
			program->threads[program->stacks[i].thread].stack = (uint32_t)i;
	return NULL;
}
