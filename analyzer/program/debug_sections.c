#include "analyzer/program/debug_sections.h"

/* Old compressed sections are called .zdebug_... */
static bool is_called(const char *name, const char *wanted)
{
	if (strncmp(name, ".zdebug_", 8) == 0)
		return strcmp(name + 8, wanted + strlen(".debug_")) == 0;
	return strcmp(name, wanted) == 0;
}

struct cursor debug_section(Dwarf *dwarf, const char *wanted)
{
	struct cursor none = { NULL, NULL };
	Elf *elf = dwarf_getelf(dwarf);
	Elf_Scn *section = NULL;
	size_t names;

	if (!elf || elf_getshdrstrndx(elf, &names) < 0)
		return none;
	while ((section = elf_nextscn(elf, section)) != NULL) {
		Elf64_Shdr *header = elf64_getshdr(section);
		const char *name =
			header ? elf_strptr(elf, names, header->sh_name) : NULL;
		Elf_Data *data;

		if (!name || !is_called(name, wanted))
			continue;
		data = header->sh_type == SHT_NOBITS
			       ? NULL
			       : elf_rawdata(section, NULL);
		if (!data || !data->d_buf)
			return none;
		return (struct cursor){
			data->d_buf, (const uint8_t *)data->d_buf + data->d_size
		};
	}
	return none;
}
