/*
 * The symbols of one module.
 *
 * libdwfl has a search, too (dwfl_module_addrinfo()), but goes over all symbols for each address.
 */
#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/base/text.h"
#include "analyzer/program/debug/debug_parts.h"

#include <limits.h>
#include <string.h>

/* The number of lookups without an index. */
enum { BUDGET = 128, MOST_STEPS = 64 };

void symbol_tables_deinit(struct symbol_tables *tables)
{
	for (size_t i = 0; i < tables->count; i++) {
		free(tables->list[i].ordered);
		free(tables->list[i].apart);
		if (tables->list[i].copied)
			free((void *)tables->list[i].symbols);
	}
	*tables = (struct symbol_tables){ 0 };
}

/* The values of symbols in such sections look like low addresses. */
static void find_sections_apart(struct symbol_table *table)
{
	size_t count;

	if (elf_getshdrnum(table->elf, &count) < 0 || count == 0)
		return;
	count = MIN(count, SHN_LORESERVE);
	table->apart = calloc(count, sizeof(*table->apart));
	if (!table->apart)
		return;
	table->section_count = count;
	for (size_t i = 1; i < count; i++) {
		Elf_Scn *section = elf_getscn(table->elf, i);
		GElf_Shdr header;

		table->apart[i] =
			section && gelf_getshdr(section, &header) && !(header.sh_flags & SHF_ALLOC);
	}
}

static void add_table(struct symbol_tables *tables, struct symbol_table table)
{
	enum { MOST = COUNT_OF(tables->list) };

	if (tables->count >= MOST || table.count == 0) {
		if (table.copied)
			free((void *)table.symbols);
		return;
	}
	if (!table.packed)
		find_sections_apart(&table);
	tables->list[tables->count++] = table;
}

/* Have a file's symbols, those of 32 bits copied; without any, the count is 0. */
static void read_symbols(Elf *elf, Elf_Data *data, struct symbol_table *table)
{
	Elf64_Sym *symbols;
	size_t count;

	if (gelf_getclass(elf) == ELFCLASS64) {
		table->symbols = data->d_buf;
		table->count = data->d_size / sizeof(*symbols);
		return;
	}
	count = data->d_size / sizeof(Elf32_Sym);
	symbols = calloc(count, sizeof(*symbols));
	for (size_t i = 0; symbols && i < count && i < INT_MAX; i++)
		gelf_getsym(data, (int)i, &symbols[i]);
	table->symbols = symbols;
	table->count = symbols ? count : 0;
	table->copied = true;
}

/* Add the file's table of that type (SHT_...), if it has one. */
static bool add_section(struct symbol_tables *tables, Elf *elf, uint32_t type)
{
	Elf_Scn *section = NULL;

	if (!elf)
		return false;
	while ((section = elf_nextscn(elf, section)) != NULL) {
		struct symbol_table table = { .elf = elf };
		GElf_Shdr header;
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) || header.sh_type != type)
			continue;
		data = elf_getdata(section, NULL);
		if (!data || !data->d_buf)
			continue;
		read_symbols(elf, data, &table);
		table.strings = header.sh_link;
		add_table(tables, table);
		return tables->count > 0;
	}
	return false;
}

/*
 * The table that is compressed in .gnu_debugdata, together with the dynamic one. Only libdwfl can
 * unpack it; in the copy, names are their numbers there.
 */
static bool add_packed(struct debug_module *module)
{
	Dwfl_Module *dwfl = debug_module_dwfl(module);
	int count = dwfl ? dwfl_module_getsymtab(dwfl) : 0;
	struct symbol_table table = { .packed = true, .copied = true };
	Elf64_Sym *symbols;

	if (count <= 0)
		return false;
	symbols = calloc((size_t)count, sizeof(*symbols));
	if (!symbols)
		return false;
	for (int i = 0; i < count; i++) {
		GElf_Word section = SHN_UNDEF;
		GElf_Addr address;
		GElf_Sym symbol;

		if (!dwfl_module_getsym_info(dwfl, i, &symbol, &address, &section, NULL, NULL))
			continue;
		symbols[i] = symbol;
		symbols[i].st_name = (Elf64_Word)i;
		if (GELF_ST_TYPE(symbol.st_info) != STT_TLS)
			symbols[i].st_value = address - module->module->bias;
	}
	table.symbols = symbols;
	table.count = (size_t)count;
	add_table(&module->symbols, table);
	return true;
}

static struct symbol_tables *open_tables(struct debug_module *module)
{
	struct symbol_tables *tables = &module->symbols;
	GElf_Shdr packed;
	Elf *main;

	if (tables->opened)
		return tables;
	tables->opened = true;
	main = debug_module_main(module);
	tables->whole = add_section(tables, main, SHT_SYMTAB) ||
			add_section(tables, debug_module_separate(module), SHT_SYMTAB);
	if (tables->whole ||
	    (debug_section_find(main, ".gnu_debugdata", &packed) && add_packed(module)))
		return tables;
	add_section(tables, main, SHT_DYNSYM);
	return tables;
}

bool symbol_tables_are_whole(struct debug_module *module)
{
	return open_tables(module)->whole;
}

static const char *name_of(struct debug_module *module, const struct symbol_table *table,
			   uint32_t number)
{
	uint32_t name = table->symbols[number].st_name;
	GElf_Addr address;
	GElf_Sym symbol;

	if (table->packed)
		return dwfl_module_getsym_info(module->dwfl, (int)name, &symbol, &address, NULL,
					       NULL, NULL);
	return elf_strptr(table->elf, table->strings, name);
}

static bool names_address(const struct symbol_table *table, const Elf64_Sym *symbol)
{
	unsigned int type = ELF64_ST_TYPE(symbol->st_info);

	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS || symbol->st_name == 0)
		return false;
	if (symbol->st_shndx < table->section_count && table->apart[symbol->st_shndx])
		return false;
	return type == STT_NOTYPE || type == STT_OBJECT || type == STT_FUNC ||
	       type == STT_GNU_IFUNC;
}

static const uint32_t NO_SYMBOL = UINT32_MAX;

struct search {
	struct debug_module *module;
	const struct symbol_table *table;
	uint64_t value;
	uint32_t covering; /* NO_SYMBOL, or the best that covers value */
	uint32_t sizeless; /* NO_SYMBOL, or the nearest without a size */
	uint64_t nearest;  /* the value of the nearest of all */
};

/* Rank names for one address by how useful they are to a reader; more is better. */
static int worth_of(const struct search *search, uint32_t number)
{
	const Elf64_Sym *symbol = &search->table->symbols[number];
	const char *name = name_of(search->module, search->table, number);
	int worth = ELF64_ST_BIND(symbol->st_info) == STB_LOCAL ? 0 : 100;

	if (!name)
		return -1;
	/* Mangled names begin with one; two are for the implementation. */
	if (name[0] == '_' && name[1] != 'Z')
		worth -= name[1] == '_' ? 20 : 10;
	return worth - (int)(strnlen(name, 9));
}

static bool is_better(const struct search *search, uint32_t number, uint32_t other)
{
	const Elf64_Sym *symbols = search->table->symbols;

	if (other == NO_SYMBOL)
		return true;
	if (symbols[number].st_value != symbols[other].st_value)
		return symbols[number].st_value > symbols[other].st_value;
	return worth_of(search, number) > worth_of(search, other);
}

/* Most are passed by two comparisons: this runs for every symbol there is. */
static inline void consider(struct search *search, uint32_t number)
{
	const Elf64_Sym *symbol = &search->table->symbols[number];
	uint64_t distance = search->value - symbol->st_value;

	if (symbol->st_value > search->value ||
	    (distance >= symbol->st_size && symbol->st_size > 0 &&
	     symbol->st_value <= search->nearest) ||
	    !names_address(search->table, symbol))
		return;
	if (symbol->st_value > search->nearest)
		search->nearest = symbol->st_value;
	if (symbol->st_size == 0) {
		if (is_better(search, number, search->sizeless))
			search->sizeless = number;
	} else if (distance < symbol->st_size && is_better(search, number, search->covering)) {
		search->covering = number;
	}
}

static int compare_values(const void *a, const void *b, void *data)
{
	const Elf64_Sym *symbols = data;
	uint64_t left = symbols[*(const uint32_t *)a].st_value;
	uint64_t right = symbols[*(const uint32_t *)b].st_value;

	return left < right ? -1 : left > right;
}

static void order_table(struct symbol_table *table)
{
	uint32_t *ordered = malloc(table->count * sizeof(*ordered));
	size_t count = 0;

	if (!ordered)
		return;
	for (size_t i = 0; i < table->count; i++)
		if (names_address(table, &table->symbols[i]))
			ordered[count++] = (uint32_t)i;
	qsort_r(ordered, count, sizeof(*ordered), compare_values, (void *)table->symbols);
	table->ordered = ordered;
	table->ordered_count = count;
}

/* Symbols that cover each other are rare, and near each other then. */
static void search_ordered(struct search *search)
{
	const struct symbol_table *table = search->table;
	size_t behind = BISECT(i, 0, table->ordered_count,
			       table->symbols[table->ordered[i]].st_value <= search->value);

	for (size_t i = 0; i < MOST_STEPS && i < behind; i++)
		consider(search, table->ordered[behind - 1 - i]);
}

/* True if both are in the same segment of the file. */
static bool is_in_segment(Elf *elf, uint64_t value, uint64_t other)
{
	GElf_Phdr segment;
	size_t count;

	if (elf_getphdrnum(elf, &count) < 0)
		return false;
	for (size_t i = 0; i < count; i++)
		if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_LOAD &&
		    value - segment.p_vaddr < segment.p_memsz)
			return other - segment.p_vaddr < segment.p_memsz;
	return false;
}

/*
 * A symbol without a size reaches to the next, but not out of its section; or of its segment, where
 * the dump has symbols, but not the table of sections.
 */
static bool reaches(const struct search *search)
{
	const Elf64_Sym *symbol = &search->table->symbols[search->sizeless];
	const struct image_file *file = search->module->module->file;
	Elf_Scn *section;
	GElf_Shdr header;

	if (symbol->st_value < search->nearest || search->table->packed)
		return false;
	if (file && file->partial)
		return is_in_segment(search->table->elf, symbol->st_value, search->value);
	section = elf_getscn(search->table->elf, symbol->st_shndx);
	return section && gelf_getshdr(section, &header) &&
	       search->value - header.sh_addr < header.sh_size;
}

static enum symbol_kind kind_of(unsigned int type)
{
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return SYMBOL_FUNCTION;
	return type == STT_OBJECT ? SYMBOL_DATA : SYMBOL_OTHER;
}

static bool take_symbol(const struct search *search, uint32_t number, struct symbol *ret)
{
	const Elf64_Sym *symbol = &search->table->symbols[number];
	const char *name = name_of(search->module, search->table, number);
	unsigned int type = ELF64_ST_TYPE(symbol->st_info);

	if (!name || !*name)
		return false;
	*ret = (struct symbol){
		.name = name,
		.raw = name,
		.kind = kind_of(type),
		.start = symbol->st_value + (type == STT_TLS ? 0 : search->module->module->bias),
		.size = symbol->st_size,
		.module = search->module->module,
	};
	return true;
}

static bool search_tables(struct debug_module *module, uint64_t value, struct symbol *ret)
{
	struct symbol_tables *tables = open_tables(module);

	tables->lookups++;
	list_for_each(table, tables->list, tables->count) {
		struct search search = { module, table, value, NO_SYMBOL, NO_SYMBOL, 0 };

		if (!table->ordered && tables->lookups > BUDGET)
			order_table(table);
		if (table->ordered)
			search_ordered(&search);
		else
			for (size_t j = 1; j < table->count; j++)
				consider(&search, (uint32_t)j);
		if (search.covering != NO_SYMBOL)
			return take_symbol(&search, search.covering, ret);
		if (search.sizeless != NO_SYMBOL && reaches(&search))
			return take_symbol(&search, search.sizeless, ret);
	}
	return false;
}

/* Callers often ask for the same address several times in a row. */
bool symbol_tables_find(struct debug_module *module, uint64_t address, struct symbol *ret)
{
	struct symbol_tables *tables = &module->symbols;

	if (!tables->opened || address != tables->last_address) {
		tables->last = (struct symbol){ .name = NULL };
		search_tables(module, address - module->module->bias, &tables->last);
		tables->last_address = address;
	}
	*ret = tables->last;
	return ret->name != NULL;
}

void symbol_tables_visit(struct debug_module *module,
			 bool (*visit)(void *data, const struct symbol *symbol), void *data)
{
	struct symbol_tables *tables = open_tables(module);

	for (size_t i = 0; i < tables->count; i++) {
		struct search search = { module, &tables->list[i] };

		for (size_t j = 1; j < search.table->count; j++) {
			struct symbol found;

			if (names_address(search.table, &search.table->symbols[j]) &&
			    take_symbol(&search, (uint32_t)j, &found) && !visit(data, &found))
				return;
		}
	}
}

static const char *next_part(const char *symbol)
{
	const char *dot = strchr(symbol, '.');

	return dot ? dot + 1 : NULL;
}

/*
 * True if the symbol may be a static variable of a function: "count.1234" by GCC, "serve.count" by
 * Clang. A mangled name has each part's length in front of it.
 */
static bool may_be_called(const char *symbol, const char *name, const char *mangled)
{
	size_t length = strlen(name);

	for (const char *part = symbol; part; part = next_part(part))
		if (strncmp(part, name, length) == 0 && (!part[length] || part[length] == '.'))
			return true;
	/* Vtables and the like are called after classes. */
	if (symbol[0] != '_' || (symbol[1] != 'Z' && symbol[1] != 'R') || symbol[2] == 'T')
		return false;
	symbol = strstr(symbol, mangled);
	return symbol && strchr("EBI.", symbol[strlen(mangled)]);
}

bool symbol_tables_may_have(struct debug_module *module, const char *name)
{
	struct symbol_tables *tables = open_tables(module);
	_cleanup_(free) char *mangled = format_text("%zu%s", strlen(name), name);

	list_for_each(table, tables->list, tables->count) {
		for (size_t i = 1; mangled && i < table->count; i++) {
			const Elf64_Sym *symbol = &table->symbols[i];
			unsigned int type = ELF64_ST_TYPE(symbol->st_info);
			const char *called;

			if (symbol->st_shndx == SHN_UNDEF ||
			    (type != STT_OBJECT && type != STT_TLS && type != STT_NOTYPE))
				continue;
			called = name_of(module, table, (uint32_t)i);
			if (called && may_be_called(called, name, mangled))
				return true;
		}
	}
	return false;
}

bool symbol_tables_find_thread_local(struct debug_module *module, uint64_t offset,
				     struct symbol *ret)
{
	struct symbol_tables *tables = open_tables(module);

	for (size_t i = 0; i < tables->count; i++) {
		struct search search = { module, &tables->list[i] };

		for (size_t j = 1; j < search.table->count; j++) {
			const Elf64_Sym *symbol = &search.table->symbols[j];

			if (ELF64_ST_TYPE(symbol->st_info) == STT_TLS &&
			    symbol->st_shndx != SHN_UNDEF &&
			    offset - symbol->st_value < symbol->st_size)
				return take_symbol(&search, (uint32_t)j, ret);
		}
	}
	return false;
}
