/*
 * Which thread-local variable of which thread stands at an address.
 *
 * A thread's control block, at its thread pointer, has the address of its table of blocks (dtv),
 * behind that pointer itself on some machines. The table has, for each module with thread-local
 * variables, where their block is: next to the control block for modules there from the start,
 * below it or, on other machines, above; allocated for others.
 * The numbers of the modules stand in ld.so's link maps, behind the address and the sizes of the
 * initial image, which the program headers tell as well: by these they are found, whatever the
 * version of glibc.
 *
 *	blocks of modules | control block      table
 *	       1 |      0 | self | table --->  | size |  | 1: address | 2: ...
 */
#include "analyzer/base/list.h"
#include "analyzer/base/macros.h"
#include "analyzer/base/sort.h"
#include "analyzer/image/link_map.h"
#include "analyzer/image/mapped_file.h"
#include "analyzer/program/debug/debug_parts.h"

#include <elf.h>
#include <string.h>

enum {
	MOST_MODULES = 1 << 16,
	MOST_RANGES = 1 << 22,
	OWN_RANGES = 2,	      /* control block and table */
	LINK_MAP_SIZE = 2048, /* more than it has in any version */
	CONTROL_BLOCK = 2304, /* struct pthread */
};

/* The thread-local variables of a module. */
struct tls_module {
	const struct module *module;
	uint64_t bias;			 /* the module's */
	uint64_t image, file_size, size; /* of the initial values */
	uint64_t number;		 /* in the tables; 0: not known */
	uint64_t offset;		 /* of a block below the thread pointer, or 0 */
};

struct tls_range {
	uint64_t start, size;
	struct tls_place place; /* of its start */
};

void tls_deinit(struct tls *tls)
{
	free(tls->modules);
	free(tls->ranges);
	*tls = (struct tls){ 0 };
}

/*
 * In the link map, { image, image's size, block's size, alignment, offset of the first byte, offset
 * of the block, number } stand in a row.
 */
static bool read_numbers(struct debug *debug, uint64_t map, struct tls_module *module)
{
	uint64_t words[7];

	for (uint64_t i = 0; i < LINK_MAP_SIZE; i += image_word_size(debug->image)) {
		if (!image_read_words(debug->image, map + i, words, COUNT_OF(words)))
			return false;
		if (words[0] != module->image || words[1] != module->file_size ||
		    words[2] != module->size || words[6] == 0 || words[6] > MOST_MODULES)
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
	struct tls *tls = &debug->tls;
	const struct loaded_list *loaded = &debug->image->loaded;

	for (size_t i = 0; i < loaded->count; i++)
		for (size_t j = 0; j < tls->module_count; j++)
			if (tls->modules[j].bias == loaded->list[i].bias && !tls->modules[j].number)
				read_numbers(debug, loaded->list[i].map, &tls->modules[j]);
	/* A static program has no link map to be found, and no other module. */
	if (tls->module_count == 1 && tls->modules[0].number == 0)
		tls->modules[0].number = 1;
}

static void find_modules(struct debug *debug)
{
	size_t count = debug->program->module_count;
	struct tls *tls = &debug->tls;

	tls->modules = calloc(count + 1, sizeof(*tls->modules));
	if (!tls->modules)
		return;
	list_for_each(module, debug->program->modules, count) {
		struct module_headers headers;
		const Elf64_Phdr *segment = NULL;

		if (module_headers_read(debug->image, module->start, &headers))
			segment = module_headers_find(&headers, PT_TLS);
		if (!segment || segment->p_memsz == 0)
			continue;
		tls->modules[tls->module_count++] = (struct tls_module){
			.module = module,
			.bias = module->bias,
			.image = module->bias + segment->p_vaddr,
			.file_size = segment->p_filesz,
			.size = segment->p_memsz,
		};
	}
	number_modules(debug);
}

/* Bytes of an entry of a table: two words. */
static unsigned int entry_size(const struct image *image)
{
	return 2 * image_word_size(image);
}

/* Where the thread's control block has the address of its table. */
static uint64_t thread_table(const struct image *image, const struct thread *thread)
{
	return thread->thread_pointer + (uint64_t)image->arch->pthread.dtv;
}

/* Where the thread has the module's variables; 0: nowhere yet. */
static uint64_t find_block(struct debug *debug, const struct thread *thread,
			   const struct tls_module *module)
{
	uint64_t table, size, block;

	if (module->number > 0 &&
	    image_read_word(debug->image, thread_table(debug->image, thread), &table) &&
	    image_read_word(debug->image, table - entry_size(debug->image), &size) &&
	    module->number <= size &&
	    image_read_word(debug->image, table + module->number * entry_size(debug->image),
			    &block) &&
	    block + 1 > PAGE) /* -1: not allocated */
		return block;
	if (!module->offset)
		return 0;
	return debug->image->arch->pthread.pointer ? thread->thread_pointer + module->offset
						   : thread->thread_pointer - module->offset;
}

/* The thread's table, less the entry in front of it, which has its size. */
static bool find_table(struct debug *debug, const struct thread *thread, uint64_t *ret,
		       uint64_t *ret_size)
{
	uint64_t count;

	if (!image_read_word(debug->image, thread_table(debug->image, thread), ret) ||
	    !image_read_word(debug->image, *ret - entry_size(debug->image), &count) ||
	    count > MOST_MODULES)
		return false;
	*ret -= entry_size(debug->image);
	*ret_size = (count + 2) * entry_size(debug->image);
	return true;
}

/* struct pthread and the thread control block, which may be one. */
static uint64_t control_block_size(const struct program *program)
{
	return program->pthread_pointer
		       ? program->pthread_pointer + program->image->arch->pthread.variables
		       : CONTROL_BLOCK;
}

static void add_range(struct tls *tls, uint64_t start, uint64_t size, struct tls_place place)
{
	tls->ranges[tls->range_count++] = (struct tls_range){ start, size, place };
}

static bool has_control_block(const struct debug *debug, const struct thread *thread)
{
	uint64_t self;

	if (!debug->image->arch->pthread.self)
		return thread->pointer_source != POINTER_UNKNOWN;
	return image_read_word(debug->image, thread->thread_pointer, &self) &&
	       self == thread->thread_pointer;
}

/* At most module_count + OWN_RANGES of them. */
static void add_thread(struct debug *debug, uint32_t number)
{
	const struct thread *thread = &debug->program->threads[number];
	struct tls_place place = { .thread = number };
	struct tls *tls = &debug->tls;
	uint64_t table, size;

	if (!has_control_block(debug, thread))
		return;
	add_range(tls, thread_descriptor(debug->program, thread->thread_pointer),
		  control_block_size(debug->program), place);
	place.in_table = true;
	if (find_table(debug, thread, &table, &size))
		add_range(tls, table, size, place);
	place.in_table = false;
	list_for_each(module, tls->modules, tls->module_count) {
		uint64_t block = find_block(debug, thread, module);

		place.module = module->module;
		if (block)
			add_range(tls, block, module->size, place);
	}
}

DEFINE_COMPARE(compare_ranges, struct tls_range, ASCENDING(start))

static const struct tls *find_ranges(struct debug *debug)
{
	size_t threads = debug->program->thread_count, most;
	struct tls *tls = &debug->tls;

	if (tls->made)
		return tls;
	tls->made = true;
	find_modules(debug);
	if (threads == 0 ||
	    __builtin_mul_overflow(threads, tls->module_count + OWN_RANGES, &most) ||
	    most > MOST_RANGES)
		return tls;
	tls->ranges = calloc(most, sizeof(*tls->ranges));
	if (!tls->ranges)
		return tls;
	for (size_t i = 0; i < threads; i++)
		add_thread(debug, (uint32_t)i);
	SORT(tls->ranges, tls->range_count, compare_ranges);
	return tls;
}

bool tls_find(struct debug *debug, uint64_t address, struct tls_place *ret)
{
	const struct tls *tls = find_ranges(debug);
	size_t low = LIST_ABOVE(tls->ranges, tls->range_count, start, address);

	if (low == 0 || address - tls->ranges[low - 1].start >= tls->ranges[low - 1].size)
		return false;
	*ret = tls->ranges[low - 1].place;
	ret->offset = address - tls->ranges[low - 1].start;
	return true;
}

bool debug_static_tls(struct debug *debug, uint32_t number, uint64_t *ret_start, uint64_t *ret_end)
{
	enum { MOST_BETWEEN = 1 << 16 }; /* for alignment, and spare */
	const struct thread *thread = &debug->program->threads[number];
	uint64_t pointer = thread->thread_pointer, most = MOST_BETWEEN;
	const struct tls *tls = find_ranges(debug);

	if (!has_control_block(debug, thread))
		return false;
	*ret_start = thread_descriptor(debug->program, pointer);
	*ret_end = *ret_start + control_block_size(debug->program);
	for (size_t i = 0; i < tls->module_count; i++)
		if (tls->modules[i].size <= UINT32_MAX)
			most += tls->modules[i].size;
	/* Others are elsewhere, where there is room for them. */
	for (size_t i = 0; i < tls->module_count; i++) {
		uint64_t block = find_block(debug, thread, &tls->modules[i]);

		if (!debug->program->pthread_pointer) {
			if (block < *ret_start && pointer - block <= most)
				*ret_start = block;
		} else if (block >= pointer && block - pointer <= most &&
			   block + tls->modules[i].size > *ret_end) {
			*ret_end = block + tls->modules[i].size;
		}
	}
	return true;
}

bool tls_address(struct debug *debug, uint32_t thread, const struct module *module, uint64_t offset,
		 uint64_t *ret)
{
	const struct tls *tls = find_ranges(debug);

	list_for_each(range, tls->ranges, tls->range_count) {
		if (range->place.thread != thread || range->place.module != module ||
		    offset >= range->size)
			continue;
		*ret = range->start + offset;
		return true;
	}
	return false;
}

bool tls_visit(struct debug *debug, const struct module *module, uint64_t offset,
	       bool (*visit)(void *data, uint64_t address), void *data)
{
	const struct tls *tls = find_ranges(debug);

	list_for_each(range, tls->ranges, tls->range_count) {
		if (range->place.module == module && offset < range->size &&
		    !visit(data, range->start + offset))
			return false;
	}
	return true;
}
