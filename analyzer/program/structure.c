#include "analyzer/program/structure.h"

#include "analyzer/image/mapped_file.h"
#include "analyzer/program/program_parts.h"
#include "analyzer/program/tls.h"

#include <elf.h>

enum {
	DEBUG_WORDS = 5, /* of struct r_debug */
	ROW_WORDS = 7,	 /* of a link map, about thread-local variables */
};

struct visitor {
	const struct program *program;
	program_range_visitor *visit;
	void *data;
};

/* A text with its end. One that does not end in its region is left out. */
static struct error *visit_text(const struct visitor *visitor, uint64_t address)
{
	uint64_t size;
	const uint8_t *text = address ? image_bytes(visitor->program->image, address, &size) : NULL;
	const uint8_t *end = text ? memchr(text, 0, size) : NULL;

	return end ? visitor->visit(visitor->data, address, (uint64_t)(end - text) + 1) : NULL;
}

static struct error *visit_loaded(const struct visitor *visitor)
{
	const struct image *image = visitor->program->image;
	unsigned int word = image_word_size(image);

	TRY(visit_text(visitor, image_auxiliary(image, AT_EXECFN, 0)));
	list_for_each(loaded, image->loaded.list, image->loaded.count) {
		TRY(visitor->visit(visitor->data, loaded->debug, (uint64_t)DEBUG_WORDS * word));
		TRY(visit_text(visitor, loaded->name));
	}
	return NULL;
}

/* Modules that are not at hand as files are read from memory: what the linker wrote. */
static struct error *visit_modules(const struct visitor *visitor)
{
	const struct program *program = visitor->program;

	list_for_each(module, program->modules, program->module_count) {
		struct module_headers headers;

		if (!module_headers_read(program->image, module->start, &headers))
			continue;
		for (size_t i = 0; i < headers.count; i++) {
			const Elf64_Phdr *segment = &headers.segments[i];

			if (segment->p_type == PT_DYNAMIC || segment->p_type == PT_NOTE)
				TRY(visitor->visit(visitor->data, headers.bias + segment->p_vaddr,
						   segment->p_memsz));
		}
	}
	list_for_each(module, program->tls_modules, program->tls_module_count) {
		if (module->row)
			TRY(visitor->visit(visitor->data, module->row,
					   (uint64_t)ROW_WORDS * image_word_size(program->image)));
	}
	return NULL;
}

/* The numbers in a struct pthread: no variable of the program, nor what it stored per thread. */
static struct error *visit_descriptor(const struct visitor *visitor, uint64_t address)
{
	const struct image *image = visitor->program->image;
	const struct arch *arch = image->arch;
	unsigned int word = arch_word_size(arch);
	struct descriptor descriptor;

	TRY(visitor->visit(visitor->data, address + arch->pthread.tid, word));
	/* With or without the field that arch.h says may be missing. */
	TRY(visitor->visit(visitor->data, address + arch->pthread.cancel, word));
	if (arch->pthread.robust)
		TRY(visitor->visit(visitor->data, address + arch->pthread.robust, word));
	if (!descriptor_read(image, address, &descriptor))
		return NULL;
	/* The stack begins with a guard, whose address counts for none. */
	return visitor->visit(visitor->data, descriptor.block, 3 * (uint64_t)word);
}

/*
 * A table has addresses, counts and -1. Its size is what another word says: what is no such number
 * is not the loader's.
 */
static struct error *visit_table(const struct visitor *visitor, struct memory_range table)
{
	const struct image *image = visitor->program->image;
	unsigned int word = image_word_size(image);
	uint64_t value;

	for (uint64_t i = table.start; i < table.end; i += word) {
		if (image_read_word(image, i, &value) && value + 1 <= UINT32_MAX)
			TRY(visitor->visit(visitor->data, i, word));
	}
	return NULL;
}

static struct error *visit_threads(const struct visitor *visitor)
{
	const struct program *program = visitor->program;

	list_for_each(thread, program->threads, program->thread_count) {
		struct memory_range table;

		if (!thread_has_control_block(program, thread))
			continue;
		TRY(visit_descriptor(visitor, thread_descriptor(program, thread->thread_pointer)));
		if (thread_table(program, thread, &table))
			TRY(visit_table(visitor, table));
	}
	list_for_each(stack, program->stacks, program->stack_count) {
		if (stack->descriptor)
			TRY(visit_descriptor(visitor, stack->descriptor));
	}
	return NULL;
}

struct error *program_visit_structure(const struct program *program, program_range_visitor *visit,
				      void *data)
{
	const struct visitor visitor = { program, visit, data };

	TRY(visit_loaded(&visitor));
	TRY(visit_modules(&visitor));
	return visit_threads(&visitor);
}
