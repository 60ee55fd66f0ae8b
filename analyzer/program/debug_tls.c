#include "analyzer/program/debug_modules.h"

#include <elf.h>
#include <string.h>

enum {
	MOST_MODULES = 1 << 16,
	LINK_MAP_SIZE = 2048, /* more than it has in any version */
	CONTROL_BLOCK = 2304, /* struct pthread */
	PAGE = 4096,
	TABLE_ENTRY = 16,
};

void tls_modules_deinit(struct tls_modules *modules)
{
	free(modules->list);
	*modules = (struct tls_modules){ 0 };
}

/* The program header of that type of the module. */
static bool find_header(const struct image *image, const struct module *module,
			uint32_t type, Elf64_Phdr *ret)
{
	Elf64_Ehdr header;

	if (!image_read(image, module->start, &header, sizeof(header)) ||
	    header.e_phentsize != sizeof(*ret))
		return false;
	for (uint64_t i = 0; i < header.e_phnum; i++) {
		if (!image_read(image,
				module->start + header.e_phoff +
					i * sizeof(*ret),
				ret, sizeof(*ret)))
			return false;
		if (ret->p_type == type)
			return true;
	}
	return false;
}

/* The main program's link map: the debugger's structure leads to it. */
static uint64_t first_link_map(struct debug *debug)
{
	uint64_t entry = image_auxiliary(debug->image, AT_ENTRY, 0), debugger,
		 map;
	const struct module *program =
		program_find_module(debug->program, entry);
	Elf64_Phdr header;
	Elf64_Dyn dynamic;

	if (!program ||
	    !find_header(debug->image, program, PT_DYNAMIC, &header))
		return 0;
	for (uint64_t i = 0; i < header.p_memsz / sizeof(dynamic); i++) {
		if (!image_read(debug->image,
				program->bias + header.p_vaddr +
					i * sizeof(dynamic),
				&dynamic, sizeof(dynamic)) ||
		    dynamic.d_tag == DT_NULL)
			break;
		debugger = dynamic.d_un.d_ptr;
		if (dynamic.d_tag == DT_DEBUG &&
		    image_read_u64(debug->image, debugger + 8, &map))
			return map;
	}
	return 0;
}

/*
 * In the link map, { image, image's size, block's size, alignment, offset of
 * the first byte, offset of the block, number } stand in a row.
 */
static bool read_numbers(struct debug *debug, uint64_t map,
			 struct tls_module *module)
{
	uint64_t words[7];

	for (uint64_t i = 0; i < LINK_MAP_SIZE; i += 8) {
		if (!image_read(debug->image, map + i, words, sizeof(words)))
			return false;
		if (words[0] != module->image ||
		    words[1] != module->file_size || words[2] != module->size ||
		    words[6] == 0 || words[6] > MOST_MODULES)
			continue;
		module->number = words[6];
		/* Small negative numbers say that there is none. */
		module->offset = words[5] < UINT32_MAX ? words[5] : 0;
		return true;
	}
	return false;
}

static void number_modules(struct debug *debug)
{
	struct tls_modules *modules = &debug->tls;
	uint64_t map = first_link_map(debug), bias;

	for (size_t i = 0; map && i < MOST_MODULES; i++) {
		if (!image_read_u64(debug->image, map, &bias))
			return;
		for (size_t j = 0; j < modules->count; j++)
			if (modules->list[j].bias == bias &&
			    !modules->list[j].number)
				read_numbers(debug, map, &modules->list[j]);
		if (!image_read_u64(debug->image, map + 24, &map))
			return;
	}
	/* A static program has no link map to be found, and no other module. */
	if (modules->count == 1 && modules->list[0].number == 0)
		modules->list[0].number = 1;
}

static struct tls_modules *find_modules(struct debug *debug)
{
	struct tls_modules *modules = &debug->tls;
	size_t count = program_module_count(debug->program);

	if (modules->made)
		return modules;
	modules->made = true;
	modules->list = calloc(count + 1, sizeof(*modules->list));
	if (!modules->list)
		return modules;
	for (size_t i = 0; i < count; i++) {
		const struct module *module = program_module(debug->program, i);
		Elf64_Phdr header;

		if (!find_header(debug->image, module, PT_TLS, &header) ||
		    header.p_memsz == 0)
			continue;
		modules->list[modules->count++] = (struct tls_module){
			.module = module,
			.bias = module->bias,
			.image = module->bias + header.p_vaddr,
			.file_size = header.p_filesz,
			.size = header.p_memsz,
		};
	}
	number_modules(debug);
	return modules;
}

/* Where the thread has the module's variables; 0: nowhere yet. */
static uint64_t find_block(struct debug *debug, const struct thread *thread,
			   const struct tls_module *module)
{
	uint64_t table, size, block;

	if (module->number > 0 &&
	    image_read_u64(debug->image, thread->thread_pointer + 8, &table) &&
	    image_read_u64(debug->image, table - TABLE_ENTRY, &size) &&
	    module->number <= size &&
	    image_read_u64(debug->image, table + module->number * TABLE_ENTRY,
			   &block) &&
	    block + 1 > PAGE) /* -1: not allocated */
		return block;
	return module->offset ? thread->thread_pointer - module->offset : 0;
}

/* The thread's table, less the entry in front of it, which has its size. */
static bool find_table(struct debug *debug, const struct thread *thread,
		       uint64_t *ret, uint64_t *ret_size)
{
	uint64_t count;

	if (!image_read_u64(debug->image, thread->thread_pointer + 8, ret) ||
	    !image_read_u64(debug->image, *ret - TABLE_ENTRY, &count) ||
	    count > MOST_MODULES)
		return false;
	*ret -= TABLE_ENTRY;
	*ret_size = (count + 2) * TABLE_ENTRY;
	return true;
}

static bool find_in_thread(struct debug *debug, uint32_t number,
			   uint64_t address, struct tls_place *ret)
{
	const struct thread *thread = program_thread(debug->program, number);
	const struct tls_modules *modules = find_modules(debug);
	uint64_t self, table, size;

	if (!image_read_u64(debug->image, thread->thread_pointer, &self) ||
	    self != thread->thread_pointer)
		return false;
	*ret = (struct tls_place){ .thread = number };
	for (size_t i = 0; i < modules->count; i++) {
		const struct tls_module *module = &modules->list[i];
		uint64_t block = find_block(debug, thread, module);

		if (block == 0 || address - block >= module->size)
			continue;
		ret->module = module->module;
		ret->offset = address - block;
		return true;
	}
	ret->in_table = find_table(debug, thread, &table, &size) &&
			address - table < size;
	if (ret->in_table)
		return true;
	ret->offset = address - thread->thread_pointer;
	return ret->offset < CONTROL_BLOCK;
}

bool tls_find(struct debug *debug, uint64_t address, struct tls_place *ret)
{
	for (size_t i = 0; i < program_thread_count(debug->program); i++)
		if (find_in_thread(debug, (uint32_t)i, address, ret))
			return true;
	return false;
}
