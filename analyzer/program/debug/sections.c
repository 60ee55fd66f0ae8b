#include "analyzer/program/debug/sections.h"

/* Old compressed sections are called .zdebug_... */
static bool is_called(const char *name, const char *wanted)
{
	if (strncmp(name, ".zdebug_", 8) == 0)
		return strcmp(name + 8, wanted + strlen(".debug_")) == 0;
	return strcmp(name, wanted) == 0;
}

Elf_Scn *debug_section_find(Elf *elf, const char *wanted, GElf_Shdr *ret)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (!elf || elf_getshdrstrndx(elf, &names) < 0)
		return NULL;
	while ((section = elf_nextscn(elf, section)) != NULL) {
		const char *name =
			gelf_getshdr(section, ret) ? elf_strptr(elf, names, ret->sh_name) : NULL;

		if (name && is_called(name, wanted))
			break;
	}
	return section;
}

struct cursor debug_section(Dwarf *dwarf, const char *wanted)
{
	GElf_Shdr header;
	Elf_Scn *section = debug_section_find(dwarf_getelf(dwarf), wanted, &header);
	Elf_Data *data =
		section && header.sh_type != SHT_NOBITS ? elf_rawdata(section, NULL) : NULL;

	if (!data || !data->d_buf)
		return (struct cursor){ NULL, NULL };
	return (struct cursor){ data->d_buf, (const uint8_t *)data->d_buf + data->d_size };
}
