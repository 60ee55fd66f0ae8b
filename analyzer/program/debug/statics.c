/*
 * Finding the variable at an address of static memory, or at an offset in the thread-local
 * variables of a module.
 *
 * DWARF has no index for that. But where a variable is stands in .debug_info as a few bytes, of
 * known form: their number, DW_OP_addr, the address, which is a word of the process. One pass over
 * the section for that form finds all candidates, and keeps 8 bytes of each; only the entry around
 * the right one is then read. Where compilers write DW_OP_addrx, the number of the address in
 * .debug_addr, that is looked for in the one unit to which the number belongs.
 */
#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/program/debug/debug_parts.h"

#include <dwarf.h>
#include <sys/mman.h>

enum {
	PIECE = 4 << 20, /* of the section, at a time */
	MOST_HITS = 1 << 20,
	MOST_LEVELS = 64,
	MOST_THREAD_LOCAL = 1 << 24, /* bytes of a module */
};

enum { FORM_BYTES = 2 };

/* The first bytes of where a variable is, and how many of the number behind them there are. */
struct form {
	uint8_t bytes[FORM_BYTES];
	unsigned int width;
};

void static_index_deinit(struct static_index *index)
{
	free(index->hits);
	*index = (struct static_index){ 0 };
}

/* The addresses of writable data: no variable elsewhere is searched for. */
static bool find_data(Elf *elf, uint64_t *ret_start, uint64_t *ret_end)
{
	uint64_t start = UINT64_MAX, end = 0;
	size_t count;

	if (!elf || elf_getphdrnum(elf, &count) < 0)
		return false;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr header;

		if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_LOAD ||
		    !(header.p_flags & PF_W))
			continue;
		if (header.p_vaddr < start)
			start = header.p_vaddr;
		if (header.p_vaddr + header.p_memsz > end)
			end = header.p_vaddr + header.p_memsz;
	}
	*ret_start = start;
	*ret_end = end;
	return start < end && end - start <= UINT32_MAX;
}

static bool add_hit(struct static_index *index, struct static_hit hit)
{
	if (!LIST_GROW(index->hits, index->count))
		return false;
	index->hits[index->count++] = hit;
	return index->count < MOST_HITS;
}

/*
 * The next place of the two bytes from start on, or NULL. A block is first tested as a whole,
 * which compilers turn into a few instructions: memmem() takes five times as long.
 */
static const uint8_t *find_form(const uint8_t *start, const uint8_t *end, const uint8_t form[2])
{
	enum { BLOCK = 64 };
	uint8_t first = form[0], second = form[1];

	while (end - start >= BLOCK) {
		uint8_t any = 0;

		for (size_t i = 0; i < BLOCK; i++)
			any |= (uint8_t)((start[i] == first) & (start[i + 1] == second));
		if (any)
			break;
		start += BLOCK;
	}
	return memmem(start, (size_t)(end - start) + 1, form, 2);
}

/*
 * Look for the form, and a number behind it that the index is of, in the bytes from start on; those
 * behind end are there.
 */
static bool scan(struct static_index *index, struct form form, const uint8_t *section,
		 const uint8_t *start, const uint8_t *end)
{
	uint64_t address;

	while (start < end) {
		const uint8_t *found = find_form(start, end, form.bytes);

		if (!found)
			return true;
		address = load_word(found + FORM_BYTES, form.width);
		if (address - index->start < index->end - index->start &&
		    !add_hit(index, (struct static_hit){ (uint32_t)(address - index->start),
							 (uint32_t)(found - section) }))
			return false;
		start = found + 1;
	}
	return true;
}

/* Release pages of the file that were only passed over. */
static void forget(Dwarf *dwarf, const uint8_t *start, const uint8_t *end)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first, last;
	size_t size;
	const uint8_t *file = (const uint8_t *)elf_rawfile(dwarf_getelf(dwarf), &size);

	if (!file || start < file || end > file + size)
		return;
	first = ((uintptr_t)start + page - 1) & ~(page - 1);
	last = (uintptr_t)end & ~(page - 1);
	if (first < last)
		madvise((void *)first, last - first, MADV_DONTNEED);
}

DEFINE_COMPARE(compare_hits, struct static_hit, ASCENDING(address), ASCENDING(offset))

static void fill_index(struct static_index *index, struct form form, Dwarf *dwarf)
{
	struct cursor section = debug_section(dwarf, ".debug_info");
	size_t size = cursor_left(&section);
	const size_t whole = FORM_BYTES + form.width;

	if (size < whole || size > UINT32_MAX)
		return;
	size -= whole - 1;
	for (size_t i = 0; i < size; i += PIECE) {
		const uint8_t *start = section.at + i;
		const uint8_t *end = start + (size - i < PIECE ? size - i : PIECE);

		if (!scan(index, form, section.at, start, end))
			break;
		forget(dwarf, start, end);
	}
	SORT(index->hits, index->count, compare_hits);
}

static bool unit_around(Dwarf *dwarf, uint64_t offset, Dwarf_Die *ret)
{
	Dwarf_Off start = 0, next;
	size_t header;

	while (dwarf_next_unit(dwarf, start, &next, &header, NULL, NULL, NULL, NULL, NULL, NULL) ==
	       0) {
		if (next > offset)
			return dwarf_offdie(dwarf, start + header, ret);
		start = next;
	}
	return false;
}

/* The innermost entry around the offset, which is within its attributes. */
static bool entry_around(Dwarf *dwarf, uint64_t offset, Dwarf_Die *ret)
{
	Dwarf_Die entry, child, next;

	if (!unit_around(dwarf, offset, &entry))
		return false;
	for (size_t i = 0; i < MOST_LEVELS; i++) {
		if (dwarf_child(&entry, &child) != 0 || dwarf_dieoffset(&child) > offset)
			break;
		while (dwarf_siblingof(&child, &next) == 0 && dwarf_dieoffset(&next) <= offset)
			child = next;
		entry = child;
	}
	*ret = entry;
	return true;
}

/* True if the location consists of that operation alone. */
static bool is_variable_at(Dwarf_Die *entry, uint8_t atom, uint64_t number)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *operations;
	size_t count;

	return dwarf_tag(entry) == DW_TAG_variable &&
	       dwarf_attr(entry, DW_AT_location, &attribute) &&
	       dwarf_getlocation(&attribute, &operations, &count) == 0 &&
	       count == (atom == DW_OP_addr || atom == DW_OP_addrx ? 1 : 2) &&
	       operations[0].atom == atom && operations[0].number == number;
}

static bool find_hit(const struct static_index *index, Dwarf *dwarf, uint8_t atom, uint64_t address,
		     Dwarf_Die *ret)
{
	uint64_t wanted = address - index->start;
	size_t i = wanted ? LIST_ABOVE(index->hits, index->count, address, wanted - 1) : 0;

	for (; i < index->count && index->hits[i].address == wanted; i++)
		if (entry_around(dwarf, index->hits[i].offset, ret) &&
		    is_variable_at(ret, atom, address))
			return true;
	return false;
}

/* The unit whose part of .debug_addr begins last at or below the offset. */
static bool unit_of_address(Dwarf *dwarf, uint64_t offset, Dwarf_Die *ret_unit, uint64_t *ret_base)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;
	bool found = false;

	*ret_base = 0;
	while (dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0) {
		Dwarf_Attribute attribute;
		Dwarf_Word base;

		if (!dwarf_attr(&die, DW_AT_addr_base, &attribute) ||
		    dwarf_formudata(&attribute, &base) != 0 || base > offset || base < *ret_base)
			continue;
		*ret_unit = die;
		*ret_base = base;
		found = true;
	}
	return found;
}

/* The variable of the unit whose address has that number. */
static bool find_numbered(Dwarf *dwarf, Dwarf_Die *unit, uint64_t number, Dwarf_Die *ret)
{
	struct cursor section = debug_section(dwarf, ".debug_info"), bytes;
	uint64_t start = dwarf_dieoffset(unit), rest = number;
	uint8_t form[12] = { 0, DW_OP_addrx };
	size_t size = 2, length, width;

	do {
		form[size++] = (uint8_t)((rest & 0x7f) | (rest > 0x7f) << 7);
		rest >>= 7;
	} while (rest);
	form[0] = (uint8_t)(size - 1);
	bytes = section;
	cursor_skip(&bytes, start - dwarf_cuoffset(unit));
	length = cursor_length(&bytes, &width);
	if (length < cursor_left(&bytes))
		bytes.end = bytes.at + length;
	while ((bytes.at = memmem(bytes.at, cursor_left(&bytes), form, size))) {
		if (entry_around(dwarf, (uint64_t)(bytes.at - section.at), ret) &&
		    is_variable_at(ret, DW_OP_addrx, number))
			return true;
		bytes.at++;
	}
	return false;
}

static bool find_by_number(Dwarf *dwarf, uint64_t address, unsigned int width, Dwarf_Die *ret)
{
	struct cursor section = debug_section(dwarf, ".debug_addr");
	const uint8_t *found = section.at;
	Dwarf_Die unit;
	uint64_t base = 0;

	while (found && found < section.end &&
	       (found = memmem(found, (size_t)(section.end - found), &address, width))) {
		uint64_t offset = (uint64_t)(found - section.at);

		if (unit_of_address(dwarf, offset, &unit, &base) && (offset - base) % width == 0 &&
		    find_numbered(dwarf, &unit, (offset - base) / width, ret))
			return true;
		found++;
	}
	return false;
}

bool static_variable_find(struct debug_module *module, uint64_t address, Dwarf_Die *ret)
{
	const unsigned int width = image_word_size(module->debug->image);
	const struct form form = { { (uint8_t)(1 + width), DW_OP_addr }, width };
	struct static_index *index = &module->static_variables;
	uint64_t bias;
	Dwarf *dwarf = debug_module_dwarf(module, &bias);

	if (!dwarf)
		return false;
	if (!index->made) {
		index->made = true;
		if (find_data(debug_module_main(module), &index->start, &index->end))
			fill_index(index, form, dwarf);
	}
	return find_hit(index, dwarf, DW_OP_addr, address, ret) ||
	       find_by_number(dwarf, address, width, ret);
}

bool thread_local_variable_find(struct debug_module *module, uint64_t offset, Dwarf_Die *ret)
{
	const unsigned int width = image_word_size(module->debug->image);
	const uint8_t atom = width == sizeof(uint32_t) ? DW_OP_const4u : DW_OP_const8u;
	const struct form form = { { (uint8_t)(2 + width), atom }, width };
	struct static_index *index = &module->thread_local_variables;
	uint64_t bias;
	Dwarf *dwarf = debug_module_dwarf(module, &bias);

	if (!dwarf)
		return false;
	if (!index->made) {
		index->made = true;
		index->end = MOST_THREAD_LOCAL;
		fill_index(index, form, dwarf);
	}
	return find_hit(index, dwarf, atom, offset, ret);
}
