#include "analyzer/runtimes/crystal/functions.h"

#include "analyzer/image/mapped_file.h"
#include "analyzer/program/debug/files.h"
#include "analyzer/runtimes/crystal/code.h"

#include <string.h>

enum {
	MOST_FUNCTIONS = 1 << 24,
	/* Linux Standard Base, "DWARF extensions": what all linkers write. */
	TABLE_VERSION = 1,
	TABLE_HEADER = 12,
	COUNT_ENCODING = 0x03, /* 4 bytes */
	TABLE_ENCODING = 0x3b, /* 4 signed bytes, from the table's start */
	FRAME_ENCODING = 0x1b, /* 4 signed bytes, from where they stand */
};

/* The table .eh_frame_hdr, by the program headers of the module in memory; 0: none. */
static uint64_t find_table(const struct image *image, const struct module *module,
			   uint64_t *ret_size)
{
	struct module_headers headers;
	const Elf64_Phdr *segment = NULL;

	if (module_headers_read(image, module->start, &headers))
		segment = module_headers_find(&headers, PT_GNU_EH_FRAME);
	if (!segment)
		return 0;
	*ret_size = segment->p_memsz;
	return module->bias + segment->p_vaddr;
}

/* The count of entries of the table at address; 0: it is of another kind. */
static uint32_t count_entries(const struct image *image, uint64_t table, uint64_t size)
{
	uint8_t header[TABLE_HEADER];
	uint32_t count;

	if (size < sizeof(header) || !image_read(image, table, header, sizeof(header)) ||
	    header[0] != TABLE_VERSION || header[2] != COUNT_ENCODING ||
	    header[3] != TABLE_ENCODING)
		return 0;
	memcpy(&count, header + 8, sizeof(count));
	if (count > (size - sizeof(header)) / 8)
		count = (uint32_t)((size - sizeof(header)) / 8);
	return count < MOST_FUNCTIONS ? count : MOST_FUNCTIONS;
}

static struct error *add_function(struct function_list *list, const struct image *image,
				  uint64_t start)
{
	const struct region *region = image_find(image, start);

	if (!region || !(region->rights & RIGHT_EXECUTE))
		return NULL;
	return array_append(list, (struct memory_range){ start, region->end });
}

static struct error *read_table(struct function_list *list, const struct image *image,
				const struct module *module)
{
	uint64_t size = 0;
	uint64_t table = find_table(image, module, &size);
	uint32_t count = table ? count_entries(image, table, size) : 0;
	uint32_t offset;

	for (uint32_t i = 0; i < count; i++) {
		if (!image_read_u32(image, table + TABLE_HEADER + 8 * i, &offset))
			break;
		TRY(add_function(list, image, table + (uint64_t)(int64_t)(int32_t)offset));
	}
	return NULL;
}

/* A static program has no such table, but a section of frames in its file. */
static bool find_section(const struct module *module, GElf_Shdr *ret)
{
	const struct image_file *file = module->file;
	Elf *elf;
	bool found;

	if (!file)
		return false;
	elf = elf_memory((char *)(uintptr_t)file->bytes, file->size);
	found = debug_section_find(elf, ".eh_frame", ret) && ret->sh_type == SHT_PROGBITS &&
		ret->sh_offset <= file->size && ret->sh_size <= file->size - ret->sh_offset;
	elf_end(elf);
	return found;
}

/* How frames encode addresses, by the common entry that they refer to. */
static uint8_t read_encoding(struct cursor cursor)
{
	const char *letters;
	uint8_t version;

	cursor_skip(&cursor, 8); /* length and mark */
	version = (uint8_t)cursor_number(&cursor, 1);
	letters = cursor_text(&cursor);
	if (!letters || *letters != 'z')
		return 0;
	cursor_unsigned(&cursor); /* alignment of code, of data, */
	cursor_signed(&cursor);
	if (version == 1) /* register, size of what follows */
		cursor_skip(&cursor, 1);
	else
		cursor_unsigned(&cursor);
	cursor_unsigned(&cursor);
	for (letters++; *letters; letters++) {
		uint8_t encoding = (uint8_t)cursor_number(&cursor, 1);

		if (*letters == 'R')
			return encoding;
		/* The address of the personality routine follows. */
		if (*letters == 'P')
			cursor_skip(&cursor, (encoding & 7) == 3 ? 4 : 8);
		else if (*letters != 'L')
			return 0;
	}
	return 0;
}

static struct error *read_frames(struct function_list *list, const struct image *image,
				 const struct module *module)
{
	GElf_Shdr section;
	const uint8_t *start;
	struct cursor cursor;

	if (!find_section(module, &section))
		return NULL;
	start = module->file->bytes + section.sh_offset;
	cursor = (struct cursor){ start, start + section.sh_size };
	while (cursor_left(&cursor) >= 12) {
		struct cursor entry = cursor, common = { start, cursor.end };
		uint64_t length = cursor_number(&entry, 4);
		uint64_t place = (uint64_t)(entry.at - start);
		uint64_t back = cursor_number(&entry, 4), address;

		if (length < 8 || length >= UINT32_MAX)
			break;
		cursor_skip(&cursor, 4 + length);
		if (back == 0 || back > place || list->count >= MOST_FUNCTIONS)
			continue;
		cursor_skip(&common, place - back);
		if (read_encoding(common) != FRAME_ENCODING)
			continue;
		address = module->bias + section.sh_addr + (uint64_t)(entry.at - start);
		address += (uint64_t)(int64_t)(int32_t)cursor_number(&entry, 4);
		TRY(add_function(list, image, address));
	}
	return NULL;
}

DEFINE_COMPARE(compare_functions, struct memory_range, ASCENDING(start))

/* Sort them, and end each at the next. */
static void tidy(struct function_list *list)
{
	struct memory_range *functions = list->items;
	size_t kept = 0;

	array_sort(list, compare_functions);
	for (size_t i = 0; i < list->count; i++) {
		struct memory_range *before = kept ? &functions[kept - 1] : NULL;

		if (before && before->start == functions[i].start)
			continue;
		if (before && before->end > functions[i].start)
			before->end = functions[i].start;
		functions[kept++] = functions[i];
	}
	list->count = kept;
}

struct error *function_list_init(struct function_list *list, const struct image *image,
				 const struct module *module, struct memory_account *account)
{
	*list = (struct function_list){ .memory.account = account };
	TRY(read_table(list, image, module));
	if (list->count == 0)
		TRY(read_frames(list, image, module));
	tidy(list);
	return NULL;
}

enum { JUMP_SIZE = 6 }; /* of jmp *place(%rip) */

/* The kind of maker that a function of that name is. */
static unsigned int maker_called(const char *name)
{
	static const struct {
		const char *name;
		unsigned int maker;
	} known[] = {
		{ "GC_malloc", MAKER_SCANNED },
		{ "GC_malloc_atomic", MAKER_ATOMIC },
		{ "__crystal_malloc", MAKER_SCANNED | MAKER_PLAIN },
		{ "__crystal_malloc64", MAKER_SCANNED | MAKER_PLAIN },
		{ "__crystal_malloc_atomic", MAKER_ATOMIC | MAKER_PLAIN },
		{ "__crystal_malloc_atomic64", MAKER_ATOMIC | MAKER_PLAIN },
	};

	for (size_t i = 0; i < COUNT_OF(known); i++)
		if (strcmp(name, known[i].name) == 0)
			return known[i].maker;
	return MAKER_NONE;
}

static void remember(struct makers *makers, uint64_t address, unsigned int maker)
{
	struct error *error;

	if (address_map_find(&makers->known, address) != NOT_IN_MAP)
		return;
	makers->found |= maker != MAKER_NONE;
	error = address_map_add(&makers->known, address, maker);
	if (error)
		error_destroy(error);
}

static bool take_symbol(void *data, const struct symbol *symbol)
{
	unsigned int maker = maker_called(symbol->name);

	if (maker != MAKER_NONE)
		remember(data, symbol->start, maker);
	return true;
}

void makers_init(struct makers *makers, const struct image *image, struct debug *debug,
		 const struct module *module, struct memory_account *account)
{
	*makers = (struct makers){ .image = image, .debug = debug };
	makers->known.memory.account = account;
	debug_visit_symbols(debug, module, take_symbol, makers);
}

void makers_deinit(struct makers *makers)
{
	table_release(&makers->known);
}

/* The target of the linkage table's entry at address, or 0. */
static uint64_t follow_entry(const struct image *image, uint64_t address)
{
	static const uint8_t landing[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint8_t code[16];
	const uint8_t *at = code;
	int32_t displacement;
	uint64_t place, target;

	if (!image_read(image, address, code, sizeof(code)))
		return 0;
	if (memcmp(at, landing, sizeof(landing)) == 0)
		at += sizeof(landing);
	if (*at == 0xf2) /* bnd */
		at++;
	if (at[0] != 0xff || at[1] != 0x25)
		return 0;
	memcpy(&displacement, at + 2, sizeof(displacement));
	place = address + (uint64_t)(at - code) + JUMP_SIZE + (uint64_t)(int64_t)displacement;
	return image_read_u64(image, place, &target) ? target : 0;
}

unsigned int maker_at(struct makers *makers, uint64_t address)
{
	uint32_t known = address_map_find(&makers->known, address);
	unsigned int maker = MAKER_NONE;
	struct symbol symbol;
	uint64_t target;

	if (known != NOT_IN_MAP)
		return known;
	target = follow_entry(makers->image, address);
	if (target && debug_symbol(makers->debug, target, &symbol) && symbol.start == target)
		maker = maker_called(symbol.name);
	remember(makers, address, maker);
	return maker;
}

/* Two are accepted, if each makes objects in so many places. */
enum { MAKERS = 2, LEAST = 8, MOST_GUESSES = 4096 };

/* A function into whose results numbers are stored, and how often. */
struct guess {
	uint64_t function;
	size_t count;
};

static void count_guess(struct guess *guesses, size_t *count, uint64_t function)
{
	for (size_t i = 0; i < *count; i++)
		if (guesses[i].function == function) {
			guesses[i].count++;
			return;
		}
	if (*count < MOST_GUESSES)
		guesses[(*count)++] = (struct guess){ function, 1 };
}

static bool is_anything(const void *data, uint64_t function)
{
	return true;
}

DEFINE_COMPARE(compare_guesses, struct guess, DESCENDING(count))

struct error *makers_guess(struct makers *makers, const struct function_list *list)
{
	_cleanup_(code_reader_destroy) struct code_reader *reader = NULL;
	_cleanup_(free) struct guess *guesses = calloc(MOST_GUESSES, sizeof(*guesses));
	size_t count = 0;

	TRY_MEMORY(guesses);
	TRY(code_reader_create(makers->image, is_anything, NULL, &reader));
	for (size_t i = 0; i < list->count; i++) {
		const struct made_object *made;
		size_t found =
			code_find_objects(reader, list->items[i].start, list->items[i].end, &made);

		for (size_t j = 0; j < found; j++)
			if (made[j].store && made_object_has_type(&made[j]))
				count_guess(guesses, &count, made[j].maker);
	}
	SORT(guesses, count, compare_guesses);
	for (size_t i = 0; i < count && i < MAKERS; i++)
		if (guesses[i].count >= LEAST)
			remember(makers, guesses[i].function, MAKER_GUESSED);
	return NULL;
}
