#include "analyzer/runtimes/crystal/functions.h"

#include "analyzer/base/sort.h"
#include "analyzer/program/debug/cursor.h"

#include <elf.h>
#include <string.h>

enum {
	MOST_HEADERS = 64,
	MOST_FUNCTIONS = 1 << 24,
	/* Linux Standard Base, "DWARF extensions": what all linkers write. */
	TABLE_VERSION = 1,
	TABLE_HEADER = 12,
	COUNT_ENCODING = 0x03, /* 4 bytes */
	TABLE_ENCODING = 0x3b, /* 4 signed bytes, from the table's start */
	FRAME_ENCODING = 0x1b, /* 4 signed bytes, from where they stand */
	MOST_SECTIONS = 1 << 12,
};

/* Where the program header of that type leads, of the module in memory. */
static uint64_t find_segment(const struct image *image, const struct module *module, uint32_t type,
			     uint64_t *ret_size)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;

	if (!image_read(image, module->start, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(segment))
		return 0;
	for (unsigned int i = 0; i < header.e_phnum && i < MOST_HEADERS; i++) {
		if (!image_read(image, module->start + header.e_phoff + i * sizeof(segment),
				&segment, sizeof(segment)))
			return 0;
		if (segment.p_type != type)
			continue;
		*ret_size = segment.p_memsz;
		return module->bias + segment.p_vaddr;
	}
	return 0;
}

/* How many entries the table at address has; 0: it is of another kind. */
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

static uint64_t end_of_code(const struct image *image, uint64_t address)
{
	const struct region *region = image_find(image, address);

	return region && (region->rights & RIGHT_EXECUTE) ? region->end : 0;
}

static struct error *add_function(struct function_list *list, const struct image *image,
				  uint64_t start)
{
	uint64_t end = end_of_code(image, start);
	struct error *error;

	if (!end)
		return NULL;
	error = memory_reserve(&list->memory, (list->count + 1) * sizeof(struct memory_range));
	if (!error)
		((struct memory_range *)list->memory.bytes)[list->count++] =
			(struct memory_range){ start, end };
	return error;
}

static struct error *read_table(struct function_list *list, const struct image *image,
				const struct module *module)
{
	uint64_t size = 0;
	uint64_t table = find_segment(image, module, PT_GNU_EH_FRAME, &size);
	uint32_t count = table ? count_entries(image, table, size) : 0;
	struct error *error = NULL;
	uint32_t offset;

	for (uint32_t i = 0; !error && i < count; i++) {
		if (!image_read_u32(image, table + TABLE_HEADER + 8 * i, &offset))
			break;
		error = add_function(list, image, table + (uint64_t)(int64_t)(int32_t)offset);
	}
	return error;
}

/* A static program has no such table: its section of frames, in its file. */
static bool find_section(const struct module *module, Elf64_Shdr *ret)
{
	const struct image_file *file = module->file;
	Elf64_Ehdr header;
	Elf64_Shdr names;

	if (!file || file->size < sizeof(header))
		return false;
	memcpy(&header, file->bytes, sizeof(header));
	if (header.e_shentsize != sizeof(*ret) || header.e_shstrndx >= header.e_shnum ||
	    header.e_shnum > MOST_SECTIONS || header.e_shoff > file->size ||
	    file->size - header.e_shoff < header.e_shnum * sizeof(*ret))
		return false;
	memcpy(&names, file->bytes + header.e_shoff + header.e_shstrndx * sizeof(names),
	       sizeof(names));
	if (names.sh_offset > file->size || names.sh_size > file->size - names.sh_offset)
		return false;
	for (unsigned int i = 0; i < header.e_shnum; i++) {
		static const char wanted[] = ".eh_frame";

		memcpy(ret, file->bytes + header.e_shoff + i * sizeof(*ret), sizeof(*ret));
		if (ret->sh_type == SHT_PROGBITS && names.sh_size > sizeof(wanted) &&
		    ret->sh_name < names.sh_size - sizeof(wanted) &&
		    memcmp(file->bytes + names.sh_offset + ret->sh_name, wanted, sizeof(wanted)) ==
			    0)
			return ret->sh_offset <= file->size &&
			       ret->sh_size <= file->size - ret->sh_offset;
	}
	return false;
}

/* How the common entry that frames refer to says that they tell addresses. */
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
		/* The personality's address follows. */
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
	struct error *error = NULL;
	Elf64_Shdr section;
	const uint8_t *start;
	struct cursor cursor;

	if (!find_section(module, &section))
		return NULL;
	start = module->file->bytes + section.sh_offset;
	cursor = (struct cursor){ start, start + section.sh_size };
	while (!error && cursor_left(&cursor) >= 12) {
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
		error = add_function(list, image, address);
	}
	return error;
}

DEFINE_COMPARE(compare_functions, struct memory_range, ASCENDING(start))

/* In order, each up to the next. */
static void tidy(struct function_list *list)
{
	struct memory_range *functions = list->memory.bytes;
	size_t kept = 0;

	SORT(functions, list->count, compare_functions);
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
	struct error *error;

	*list = (struct function_list){ .memory.account = account };
	error = read_table(list, image, module);
	if (!error && list->count == 0)
		error = read_frames(list, image, module);
	if (error)
		return error;
	tidy(list);
	return NULL;
}

void function_list_deinit(struct function_list *list)
{
	memory_release(&list->memory);
}

const struct memory_range *function_at(const struct function_list *list, size_t number)
{
	return (const struct memory_range *)list->memory.bytes + number;
}
