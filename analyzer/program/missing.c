/*
 * Reporting memory that a program cannot have been without, and that the dump lacks.
 */
#include "analyzer/base/budget.h"
#include "analyzer/base/bytes.h"
#include "analyzer/image/mapped_file.h"
#include "analyzer/program/program_parts.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
	BLOCK_SIZE = 64, /* of a thread control block's beginning */
	PIECE = 1 << 16, /* of a stack, tested at once */
};

/* Bytes of stacks that are tested: thousands could be in one memory. */
#define BUDGET (UINT64_C(1) << 32)

/*
 * The end of the memory that the stack pointer points into: of the stack, if known; else the thread
 * control block, if above, as on a stack that glibc made; else the end of the region, such as a
 * coroutine's stack.
 */
static uint64_t find_stack_end(const struct program *program, const struct thread *thread,
			       const struct region *region)
{
	const struct stack *stack = program_find_stack(program, thread->stack_pointer);
	uint64_t block = thread->thread_pointer;

	if (stack)
		return stack->end < region->end ? stack->end : region->end;
	if (block >= thread->stack_pointer && block < region->end &&
	    region->end - block > BLOCK_SIZE)
		return block + BLOCK_SIZE;
	return region->end;
}

/*
 * True if everything above a thread's stack pointer is zero, which cannot be: frames may hold a
 * large array of zeros, but the arguments and the environment are at the upper end, or the thread
 * control block, which has its own address. Stops when the budget for all stacks is used up.
 */
static bool is_stack_empty(const struct program *program, const struct thread *thread,
			   struct budget *budget)
{
	const struct image *image = program->image;
	const struct region *region = image_find(image, thread->stack_pointer);
	uint64_t place = thread->stack_pointer, end;

	if (!region || !region->bytes)
		return false;
	end = find_stack_end(program, thread, region);
	for (place = image_next_data(image, place); place < end;
	     place = image_next_data(image, place)) {
		uint64_t size = end - place;

		size = MIN(size, PIECE);
		if (!bytes_are_zero(region->bytes + (place - region->start), size))
			return false;
		place += size;
		if (!budget_take_many(budget, size))
			break;
	}
	return true;
}

/* A stack pointer may be nonsense; one into absent memory is not. */
static bool is_stack_absent(const struct image *image, const struct thread *thread)
{
	const struct region *region = image_find(image, thread->stack_pointer);

	return region && (region->rights & RIGHT_WRITE) && region->origin == REGION_ABSENT;
}

/*
 * Go without C has no thread control block; then there is something else on the page.
 */
static bool is_local_storage_missing(const struct image *image, const struct thread *thread)
{
	uint64_t pointer = thread->thread_pointer, size;
	const uint8_t *bytes;

	if (pointer == 0 || thread->pointer_source != POINTER_UNKNOWN)
		return false;
	bytes = image_bytes(image, page_below(pointer), &size);
	return !bytes || bytes_are_zero(bytes, MIN(size, PAGE));
}

/* True if the dump's thread pointer can never have been the address of a control block. */
static bool is_pointer_rubbish(const struct image *image, const struct thread *thread)
{
	enum { LOWEST = 1 << 16, ALIGNMENT = 8 };
	uint64_t stated = thread->state->thread_pointer;
	const struct region *region = image_find(image, stated);

	return stated != 0 &&
	       (stated < LOWEST || stated >> image->arch->address_bits || stated % ALIGNMENT != 0 ||
		(region && !(region->rights & RIGHT_WRITE)));
}

enum { OTHERS_SIZE = 48 };

/* The first that is missing, and how many are. */
struct missing {
	const char *what; /* of a module, or NULL */
	uint64_t thread, address;
	size_t count;
};

static void note_missing(struct missing *missing, const char *what, uint64_t thread,
			 uint64_t address)
{
	if (missing->count++ == 0) {
		missing->what = what;
		missing->thread = thread;
		missing->address = address;
	}
}

/* " (and 3 more)" */
static const char *name_others(const struct missing *missing, char buffer[static OTHERS_SIZE])
{
	if (missing->count < 2)
		return "";
	snprintf(buffer, OTHERS_SIZE, " (and %zu more)", missing->count - 1);
	return buffer;
}

static void report_zeros(const struct thread *thread, struct findings *findings)
{
	findings_add(
		findings, FINDING_INCOMPLETE,
		"the stack of thread %u is all zeros in the core: the writer of the core could not read it (gdb before 15 cannot where glibc 2.42 or later made it). What only it refers to looks leaked",
		thread->id);
}

/*
 * Report bad thread pointers. The tool that wrote the core had no better ones; the memory itself is
 * not lost.
 */
static void report_pointers(const struct program *program, struct findings *findings)
{
	const struct image *image = program->image;
	struct missing rubbish[POINTER_LIKELY + 1] = { 0 };
	static const char *const consequences[] = {
		[POINTER_UNKNOWN] =
			"no control block was found for it, so thread-local variables have no names",
		[POINTER_FOUND] = "its control block was found by its number",
		[POINTER_LIKELY] = "what is likely its control block was found",
	};
	char others[OTHERS_SIZE];

	list_for_each(thread, program->threads, program->thread_count) {
		if (thread->pointer_source != POINTER_TOLD && is_pointer_rubbish(image, thread))
			note_missing(&rubbish[thread->pointer_source], NULL, thread->id,
				     thread->state->thread_pointer);
	}
	for (size_t i = 0; i <= POINTER_LIKELY; i++)
		if (rubbish[i].count > 0)
			findings_add(findings, FINDING_NOTE,
				     "the thread pointer of thread %" PRIu64
				     "%s in the core, %#" PRIx64 ", cannot be right; %s",
				     rubbish[i].thread, name_others(&rubbish[i], others),
				     rubbish[i].address, consequences[i]);
}

static void report_threads(const struct program *program, struct findings *findings)
{
	const struct image *image = program->image;
	struct missing stacks = { 0 }, storage = { 0 };
	struct budget budget = { BUDGET };
	char others[OTHERS_SIZE];

	list_for_each(thread, program->threads, program->thread_count) {
		if (is_stack_empty(program, thread, &budget))
			report_zeros(thread, findings);
		else if (is_stack_absent(image, thread))
			note_missing(&stacks, NULL, thread->id, thread->stack_pointer);
		if (is_local_storage_missing(image, thread) && !is_pointer_rubbish(image, thread))
			note_missing(&storage, NULL, thread->id, thread->thread_pointer);
	}
	if (stacks.count > 0)
		findings_add(findings, FINDING_INCOMPLETE,
			     "the stack of thread %" PRIu64 " at %#" PRIx64
			     "%s is not in the core: what only it refers to looks leaked",
			     stacks.thread, stacks.address, name_others(&stacks, others));
	if (storage.count > 0)
		findings_add(
			findings, FINDING_INCOMPLETE,
			"the thread-local storage of thread %" PRIu64 " at %#" PRIx64
			"%s is not in the core, or zeros: what only it, or a stack next to it, refers to looks leaked",
			storage.thread, storage.address, name_others(&storage, others));
}

/* The kernel put these random bytes onto the main stack. */
static void report_main_stack(const struct image *image, struct findings *findings)
{
	uint64_t address = image_auxiliary(image, AT_RANDOM, 0), word;

	if (address != 0 && !image_read_word(image, address, &word))
		findings_add(findings, FINDING_INCOMPLETE,
			     "the main stack at %#" PRIx64
			     " is not in the core: what only it refers to looks leaked",
			     address);
}

/*
 * The mapping of the module's data whose last page the loader wrote to: the rest of the page,
 * behind what the file has, begins as zeros. NULL: the segment is no such data, or lies elsewhere.
 */
static const struct mapping *find_data(const struct image *image, const struct module *module,
				       const Elf64_Phdr *segment)
{
	uint64_t end = module->bias + segment->p_vaddr + segment->p_filesz;
	const struct mapping *mapping;

	if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W) || segment->p_filesz == 0 ||
	    segment->p_memsz <= segment->p_filesz || end % PAGE == 0)
		return NULL;
	mapping = image_find_mapping(image, end);
	if (!mapping || strcmp(mapping->path, module->path) != 0 ||
	    mapping->offset + (end - mapping->start) != segment->p_offset + segment->p_filesz)
		return NULL;
	return mapping;
}

/* True if the file has data where the core has only zeros. */
static bool is_data_zeroed(const struct image *image, const struct module *module,
			   const struct mapping *mapping)
{
	const struct image_file *file = module->file;
	uint64_t size, left;
	const uint8_t *bytes = image_bytes(image, mapping->start, &size);

	if (!file || file->partial || !bytes || mapping->offset > file->size)
		return false;
	size = MIN(size, mapping->end - mapping->start);
	left = file->size - mapping->offset;
	return bytes_are_zero(bytes, size) &&
	       !bytes_are_zero(file->bytes + mapping->offset, MIN(left, size));
}

/* The start of the module's data if they are missing, or 0. */
static uint64_t find_missing_data(const struct image *image, const struct module *module)
{
	struct module_headers headers;

	if (!module_headers_read(image, module->start, &headers))
		return 0;
	for (size_t i = 0; i < headers.count; i++) {
		const struct mapping *mapping = find_data(image, module, &headers.segments[i]);
		const struct region *region = mapping ? image_find(image, mapping->end - 1) : NULL;

		if (mapping && (!region || region->origin != REGION_CORE ||
				is_data_zeroed(image, module, mapping)))
			return mapping->start;
	}
	return 0;
}

static void report_data(const struct program *program, struct findings *findings)
{
	const struct image *image = program->image;
	struct missing data = { 0 };
	char others[OTHERS_SIZE];

	list_for_each(module, program->modules, program->module_count) {
		uint64_t start = find_missing_data(image, module);

		if (start)
			note_missing(&data, module->path, 0, start);
	}
	if (data.count > 0)
		findings_add(
			findings, FINDING_INCOMPLETE,
			"the data of %s at %#" PRIx64
			"%s are not in the core, or zeros: what only they refer to looks leaked",
			data.what, data.address, name_others(&data, others));
}

void program_report_missing(const struct program *program, struct findings *findings)
{
	if (program->thread_count == 0)
		findings_add(
			findings, FINDING_INCOMPLETE,
			"the core has no threads: what only registers refer to looks leaked, and whole stacks count as live");
	report_main_stack(program->image, findings);
	report_threads(program, findings);
	report_pointers(program, findings);
	report_data(program, findings);
}
