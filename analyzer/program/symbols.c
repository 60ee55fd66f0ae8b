#include "analyzer/program/symbols.h"

#include <gelf.h>
#include <string.h>

/* The symbols of that type and name that a module defines, or takes from others. */
struct search {
	const char *const *names;
	unsigned int type; /* STT_... */
	bool defined;
	bool first;	/* end with the first one found */
	bool anywhere;	/* else only those that cover value */
	uint64_t value; /* of the last one found; an address in the file */
	uint64_t found; /* a bit for each name */
};

static bool matches(const struct search *search, const GElf_Sym *symbol)
{
	return (symbol->st_shndx != SHN_UNDEF) == search->defined &&
	       GELF_ST_TYPE(symbol->st_info) == search->type &&
	       (search->anywhere || search->value - symbol->st_value < symbol->st_size);
}

/* Returns whether to go on. */
static bool search_table(struct search *search, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *bytes = elf_getdata(section, NULL);
	size_t count = header->sh_entsize && bytes ? bytes->d_size / header->sh_entsize : 0;
	GElf_Sym symbol;

	for (size_t i = 1; i < count && gelf_getsym(bytes, (int)i, &symbol); i++) {
		const char *name;

		if (!matches(search, &symbol))
			continue;
		name = elf_strptr(elf, header->sh_link, symbol.st_name);
		for (unsigned int j = 0; name && search->names[j]; j++) {
			if (strcmp(name, search->names[j]) != 0)
				continue;
			search->found |= UINT64_C(1) << j;
			if (search->first) {
				search->value = symbol.st_value;
				return false;
			}
		}
	}
	return true;
}

static uint64_t search_file(const struct module *module, struct search *search)
{
	const struct image_file *file = module->file;
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	Elf *elf;

	if (!file || elf_version(EV_CURRENT) == EV_NONE)
		return 0;
	/* Opened for reading, it is not written to: the mapping is read-only. */
	elf = elf_memory((char *)(uintptr_t)file->bytes, file->size);
	while (elf && (section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) &&
		    (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM) &&
		    !search_table(search, elf, section, &header))
			break;
	elf_end(elf);
	return search->found;
}

uint64_t module_defines(const struct module *module, const char *const names[])
{
	struct search search = { names, STT_FUNC, .defined = true, .anywhere = true };

	return search_file(module, &search);
}

uint64_t module_needs(const struct module *module, const char *const names[])
{
	struct search search = { names, STT_FUNC, .anywhere = true };

	return search_file(module, &search);
}

uint64_t module_functions_at(const struct module *module, uint64_t address,
			     const char *const names[])
{
	struct search search = { names, STT_FUNC, true, .value = address - module->bias };

	return search_file(module, &search);
}

static bool find(const struct module *module, unsigned int type, const char *name,
		 uint64_t *ret_address)
{
	struct search search = { (const char *const[]){ name, NULL }, type, true, true, true };

	if (!search_file(module, &search))
		return false;
	*ret_address = module->bias + search.value;
	return true;
}

bool module_find_variable(const struct module *module, const char *name, uint64_t *ret_address)
{
	return find(module, STT_OBJECT, name, ret_address);
}

bool module_find_function(const struct module *module, const char *name, uint64_t *ret_address)
{
	return find(module, STT_FUNC, name, ret_address);
}
