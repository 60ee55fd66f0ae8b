#include "analyzer/program/symbols.h"

#include <gelf.h>
#include <string.h>

static uint64_t match(const char *name, const char *const names[])
{
	for (unsigned int i = 0; names[i]; i++)
		if (strcmp(name, names[i]) == 0)
			return UINT64_C(1) << i;
	return 0;
}

/* Look through the symbol table in a section. */
static uint64_t search_table(Elf *elf, Elf_Scn *section,
			     const GElf_Shdr *header, const char *const names[],
			     bool defined)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t count = header->sh_entsize && data
			       ? data->d_size / header->sh_entsize
			       : 0;
	uint64_t found = 0;

	for (size_t i = 1; i < count; i++) {
		GElf_Sym symbol;
		const char *name;

		if (!gelf_getsym(data, (int)i, &symbol))
			break;
		if ((symbol.st_shndx != SHN_UNDEF) != defined ||
		    GELF_ST_TYPE(symbol.st_info) != STT_FUNC)
			continue;
		name = elf_strptr(elf, header->sh_link, symbol.st_name);
		if (name)
			found |= match(name, names);
	}
	return found;
}

static uint64_t search(const struct module *module, const char *const names[],
		       bool defined)
{
	const struct image_file *file = module->file;
	Elf_Scn *section = NULL;
	uint64_t found = 0;
	Elf *elf;

	if (!file || elf_version(EV_CURRENT) == EV_NONE)
		return 0;
	/* Opened for reading, it is not written to: the mapping is read-only.
	 */
	elf = elf_memory((char *)(uintptr_t)file->bytes, file->size);
	while (elf && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;

		if (gelf_getshdr(section, &header) &&
		    (header.sh_type == SHT_SYMTAB ||
		     header.sh_type == SHT_DYNSYM))
			found |= search_table(elf, section, &header, names,
					      defined);
	}
	elf_end(elf);
	return found;
}

uint64_t module_defines(const struct module *module, const char *const names[])
{
	return search(module, names, true);
}

uint64_t module_needs(const struct module *module, const char *const names[])
{
	return search(module, names, false);
}

static bool find_in_table(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
			  unsigned int type, const char *name,
			  uint64_t *ret_value)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t count = header->sh_entsize && data
			       ? data->d_size / header->sh_entsize
			       : 0;

	for (size_t i = 1; i < count; i++) {
		GElf_Sym symbol;
		const char *called;

		if (!gelf_getsym(data, (int)i, &symbol))
			break;
		if (symbol.st_shndx == SHN_UNDEF ||
		    GELF_ST_TYPE(symbol.st_info) != type)
			continue;
		called = elf_strptr(elf, header->sh_link, symbol.st_name);
		if (!called || strcmp(called, name) != 0)
			continue;
		*ret_value = symbol.st_value;
		return true;
	}
	return false;
}

static bool find(const struct module *module, unsigned int type,
		 const char *name, uint64_t *ret_address)
{
	const struct image_file *file = module->file;
	Elf_Scn *section = NULL;
	bool found = false;
	uint64_t value;
	Elf *elf;

	if (!file || elf_version(EV_CURRENT) == EV_NONE)
		return false;
	elf = elf_memory((char *)(uintptr_t)file->bytes, file->size);
	while (elf && !found && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;

		if (gelf_getshdr(section, &header) &&
		    (header.sh_type == SHT_SYMTAB ||
		     header.sh_type == SHT_DYNSYM))
			found = find_in_table(elf, section, &header, type, name,
					      &value);
	}
	elf_end(elf);
	if (found)
		*ret_address = module->bias + value;
	return found;
}

bool module_find_variable(const struct module *module, const char *name,
			  uint64_t *ret_address)
{
	return find(module, STT_OBJECT, name, ret_address);
}

bool module_find_function(const struct module *module, const char *name,
			  uint64_t *ret_address)
{
	return find(module, STT_FUNC, name, ret_address);
}
