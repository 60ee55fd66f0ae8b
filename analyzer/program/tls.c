#include "analyzer/program/tls.h"

#include "analyzer/base/list.h"
#include "analyzer/base/macros.h"
#include "analyzer/base/sort.h"
#include "analyzer/image/mapped_file.h"
#include "analyzer/program/program_parts.h"

#include <elf.h>

enum {
	MOST_MODULES = 1 << 16,
	LINK_MAP_SIZE = 2048,	/* more than it has in any version */
	CONTROL_BLOCK = 288,	/* words of struct pthread */
	MOST_BETWEEN = 1 << 16, /* blocks next to each other, for alignment, and spare */
};

/*
 * In the link map, { image, image's size, block's size, alignment, offset of the first byte, offset
 * of the block, number } stand in a row.
 */
static void read_number(const struct image *image, uint64_t map, struct tls_module *module)
{
	uint64_t words[7];

	for (uint64_t i = 0; i < LINK_MAP_SIZE; i += image_word_size(image)) {
		if (!image_read_words(image, map + i, words, COUNT_OF(words)))
			return;
		if (words[0] != module->image || words[1] != module->file_size ||
		    words[2] != module->size || words[6] == 0 || words[6] > MOST_MODULES)
			continue;
		module->number = words[6];
		module->row = map + i;
		/* Small negative numbers say that there is none. */
		module->offset = words[5] < UINT32_MAX ? words[5] : 0;
		return;
	}
}

DEFINE_COMPARE(compare_modules, struct tls_module, ASCENDING(bias))

static void number_modules(struct program *program)
{
	const struct loaded_list *loaded = &program->image->loaded;
	struct tls_module *modules = program->tls_modules;
	size_t count = program->tls_module_count;

	SORT(modules, count, compare_modules);
	for (size_t i = 0; i < loaded->count; i++) {
		struct tls_module *module = LIST_LAST(modules, count, bias, loaded->list[i].bias);

		if (module && module->bias == loaded->list[i].bias && !module->number)
			read_number(program->image, loaded->list[i].map, module);
	}
	/* A static program has no link map to be found, and no other module. */
	if (count == 1 && modules[0].number == 0)
		modules[0].number = 1;
}

static struct error *find_modules(struct program *program)
{
	list_for_each(module, program->modules, program->module_count) {
		struct module_headers headers;
		const Elf64_Phdr *segment = NULL;

		if (module_headers_read(program->image, module->start, &headers))
			segment = module_headers_find(&headers, PT_TLS);
		if (!segment || segment->p_memsz == 0)
			continue;
		TRY(LIST_APPEND(program->tls_modules, program->tls_module_count,
				(struct tls_module){
					.module = module,
					.bias = module->bias,
					.image = module->bias + segment->p_vaddr,
					.file_size = segment->p_filesz,
					.size = segment->p_memsz,
				}));
	}
	number_modules(program);
	return NULL;
}

bool thread_has_control_block(const struct program *program, const struct thread *thread)
{
	uint64_t self;

	if (!program->image->arch->pthread.self)
		return thread->pointer_source != POINTER_UNKNOWN;
	return image_read_word(program->image, thread->thread_pointer, &self) &&
	       self == thread->thread_pointer;
}

/* At the end of a stack, others' memory may follow at once. */
struct memory_range thread_control_block(const struct program *program, const struct thread *thread)
{
	uint64_t start = thread_descriptor(program, thread->thread_pointer), end;
	const struct stack *stack = program_find_stack(program, start);

	if (program->pthread_pointer)
		end = start + program->pthread_pointer + program->image->arch->pthread.variables;
	else
		end = start + CONTROL_BLOCK * image_word_size(program->image);
	if (stack && end > stack->end)
		end = stack->end;
	return (struct memory_range){ start, end };
}

/* Bytes of an entry of a table: two words. */
static unsigned int entry_size(const struct image *image)
{
	return 2 * image_word_size(image);
}

/* Read the address of the thread's table, and how many entries it has. */
static bool read_table(const struct program *program, const struct thread *thread, uint64_t *ret,
		       uint64_t *ret_count)
{
	const struct image *image = program->image;
	uint64_t place = thread->thread_pointer + (uint64_t)image->arch->pthread.dtv;

	return image_read_word(image, place, ret) &&
	       image_read_word(image, *ret - entry_size(image), ret_count);
}

bool thread_table(const struct program *program, const struct thread *thread,
		  struct memory_range *ret)
{
	uint64_t table, count;

	if (!read_table(program, thread, &table, &count) || count > MOST_MODULES)
		return false;
	ret->start = table - entry_size(program->image);
	ret->end = ret->start + (count + 2) * entry_size(program->image);
	return true;
}

/* The module's block next to the thread's control block. */
static uint64_t static_block(const struct program *program, const struct thread *thread,
			     const struct tls_module *module)
{
	return program->image->arch->pthread.pointer ? thread->thread_pointer + module->offset
						     : thread->thread_pointer - module->offset;
}

uint64_t thread_variables(const struct program *program, const struct thread *thread,
			  const struct tls_module *module)
{
	const struct image *image = program->image;
	uint64_t table, count, block;

	if (module->number > 0 && read_table(program, thread, &table, &count) &&
	    module->number <= count &&
	    image_read_word(image, table + module->number * entry_size(image), &block) &&
	    block + 1 > PAGE) /* -1: not allocated */
		return block;
	if (!module->offset)
		return 0;
	return static_block(program, thread, module);
}

struct memory_range thread_static_memory(const struct program *program, const struct thread *thread)
{
	struct memory_range range = thread_control_block(program, thread);
	uint64_t pointer = thread->thread_pointer, most = MOST_BETWEEN;

	list_for_each(module, program->tls_modules, program->tls_module_count)
		if (module->size <= UINT32_MAX)
			most += module->size;
	/* Others are elsewhere, where there is room for them. */
	list_for_each(module, program->tls_modules, program->tls_module_count) {
		uint64_t block = module->offset ? static_block(program, thread, module)
						: thread_variables(program, thread, module);

		if (!program->pthread_pointer) {
			if (block < range.start && pointer - block <= most)
				range.start = block;
		} else if (block >= pointer && block - pointer <= most &&
			   block + module->size > range.end) {
			range.end = block + module->size;
		}
	}
	return range;
}

static struct error *add_range(struct program *program, struct memory_range range)
{
	/* With words of 4 bytes, or after damage, the end may be below the start. */
	if (range.start >= range.end)
		return NULL;
	return LIST_APPEND(program->thread_memory, program->thread_memory_count, range);
}

struct error *program_find_thread_memory(struct program *program)
{
	TRY(find_modules(program));
	list_for_each(thread, program->threads, program->thread_count) {
		struct memory_range table;

		if (!thread_has_control_block(program, thread))
			continue;
		TRY(add_range(program, thread_static_memory(program, thread)));
		if (thread_table(program, thread, &table))
			TRY(add_range(program, table));
	}
	list_for_each(stack, program->stacks, program->stack_count) {
		if (stack_has_ended(stack))
			TRY(add_range(program,
				      (struct memory_range){ stack->live, stack->live_end }));
	}
	program->thread_memory_count =
		memory_ranges_join(program->thread_memory, program->thread_memory_count);
	return NULL;
}
