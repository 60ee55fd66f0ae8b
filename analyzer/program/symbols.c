#include "analyzer/program/symbols.h"

#include <gelf.h>
#include <string.h>

/* A symbol while it is visited. */
struct entry {
	Elf *elf;
	size_t names; /* the section that has them */
	GElf_Sym symbol;
};

static const char *name_of(const struct entry *entry)
{
	const char *name = elf_strptr(entry->elf, entry->names, entry->symbol.st_name);

	return name ? name : "";
}

typedef bool (*entry_visitor)(void *data, const struct entry *entry);

static bool visit_table(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, entry_visitor visit,
			void *data)
{
	struct entry entry = { elf, header->sh_link };
	Elf_Data *bytes = elf_getdata(section, NULL);
	size_t count = header->sh_entsize && bytes ? bytes->d_size / header->sh_entsize : 0;

	for (size_t i = 1; i < count; i++) {
		if (!gelf_getsym(bytes, (int)i, &entry.symbol))
			break;
		if (!visit(data, &entry))
			return false;
	}
	return true;
}

/* Call visit for each symbol of the module's file, until it returns false. */
static void visit_symbols(const struct module *module, entry_visitor visit, void *data)
{
	const struct image_file *file = module->file;
	Elf_Scn *section = NULL;
	Elf *elf;

	if (!file || elf_version(EV_CURRENT) == EV_NONE)
		return;
	/* Opened for reading, it is not written to: the mapping is read-only.
	 */
	elf = elf_memory((char *)(uintptr_t)file->bytes, file->size);
	while (elf && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;

		if (gelf_getshdr(section, &header) &&
		    (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM) &&
		    !visit_table(elf, section, &header, visit, data))
			break;
	}
	elf_end(elf);
}

static uint64_t match(const char *name, const char *const names[])
{
	for (unsigned int i = 0; names[i]; i++)
		if (strcmp(name, names[i]) == 0)
			return UINT64_C(1) << i;
	return 0;
}

/* Which of these functions there are. */
struct search {
	const char *const *names;
	bool defined;
	bool anywhere;
	uint64_t value; /* an address in the file, unless anywhere */
	uint64_t found;
};

static bool search_entry(void *data, const struct entry *entry)
{
	struct search *search = data;
	const GElf_Sym *symbol = &entry->symbol;

	if ((symbol->st_shndx != SHN_UNDEF) == search->defined &&
	    GELF_ST_TYPE(symbol->st_info) == STT_FUNC &&
	    (search->anywhere || search->value - symbol->st_value < symbol->st_size))
		search->found |= match(name_of(entry), search->names);
	return true;
}

uint64_t module_defines(const struct module *module, const char *const names[])
{
	struct search search = { names, .defined = true, .anywhere = true };

	visit_symbols(module, search_entry, &search);
	return search.found;
}

uint64_t module_needs(const struct module *module, const char *const names[])
{
	struct search search = { names, .defined = false, .anywhere = true };

	visit_symbols(module, search_entry, &search);
	return search.found;
}

uint64_t module_functions_at(const struct module *module, uint64_t address,
			     const char *const names[])
{
	struct search search = { names, .defined = true, .value = address - module->bias };

	visit_symbols(module, search_entry, &search);
	return search.found;
}

struct find {
	const char *name;
	unsigned int type;
	bool found;
	uint64_t value;
};

static bool find_entry(void *data, const struct entry *entry)
{
	struct find *find = data;

	if (entry->symbol.st_shndx == SHN_UNDEF ||
	    GELF_ST_TYPE(entry->symbol.st_info) != find->type ||
	    strcmp(name_of(entry), find->name) != 0)
		return true;
	find->value = entry->symbol.st_value;
	find->found = true;
	return false;
}

static bool find(const struct module *module, unsigned int type, const char *name,
		 uint64_t *ret_address)
{
	struct find find = { name, type };

	visit_symbols(module, find_entry, &find);
	if (find.found)
		*ret_address = module->bias + find.value;
	return find.found;
}

bool module_find_variable(const struct module *module, const char *name, uint64_t *ret_address)
{
	return find(module, STT_OBJECT, name, ret_address);
}

bool module_find_function(const struct module *module, const char *name, uint64_t *ret_address)
{
	return find(module, STT_FUNC, name, ret_address);
}
