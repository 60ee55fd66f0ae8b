#include "analyzer/capture/teardown.h"

#include "analyzer/base/text.h"
#include "analyzer/capture/machine.h"
#include "analyzer/capture/process.h"

#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* Find the dynamic symbol, which may be of another file: then its value is 0. */
static bool find_symbol(Elf *elf, const char *name, GElf_Sym *ret)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		Elf_Data *data;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNSYM)
			continue;
		data = elf_getdata(section, NULL);
		for (int i = 1; data && gelf_getsym(data, i, ret); i++) {
			const char *found = elf_strptr(elf, header.sh_link, ret->st_name);

			if (found && strcmp(found, name) == 0)
				return true;
		}
	}
	return false;
}

/* The difference between addresses in memory and in the file, if its first page is at start. */
static uint64_t find_bias(Elf *elf, uint64_t start)
{
	size_t count = 0;
	GElf_Phdr header;

	elf_getphdrnum(elf, &count);
	for (size_t i = 0; i < count; i++)
		if (gelf_getphdr(elf, (int)i, &header) && header.p_type == PT_LOAD &&
		    header.p_offset == 0)
			return start - header.p_vaddr;
	return start;
}

/* The symbol of the file, with its address in the process if the file's first page is at start. */
static bool find_in_file(const char *path, const char *name, uint64_t start,
			 struct teardown_place *ret)
{
	_cleanup_(close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	Elf *elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);
	GElf_Sym symbol;
	bool found = elf && find_symbol(elf, name, &symbol);

	if (found && symbol.st_value) {
		ret->start = find_bias(elf, start) + symbol.st_value;
		ret->end = ret->start + symbol.st_size;
	}
	elf_end(elf);
	return found;
}

/* A line of /proc/PID/maps: the first page of a file. */
static bool parse_first_page(const char *line, uint64_t *ret_start, const char **ret_path)
{
	uint64_t offset;
	int length = 0;

	if (sscanf(line, "%" SCNx64 "-%*x %*s %" SCNx64 " %*s %*u %n", ret_start, &offset,
		   &length) < 2)
		return false;
	*ret_path = line + length;
	return offset == 0 && **ret_path == '/';
}

static void look_for(pid_t process, const struct teardown *teardown, struct teardown_place *ret)
{
	_cleanup_(free) char *maps = process_text(process, "maps");
	char path[64], *rest = maps, *line;
	struct teardown_place program;

	snprintf(path, sizeof(path), "/proc/%d/exe", process);
	if (!find_in_file(path, teardown->program, 0, &program))
		return;
	while (!ret->end && rest && (line = strsep(&rest, "\n"))) {
		_cleanup_(free) char *there = NULL;
		const char *name;
		uint64_t start;

		if (!parse_first_page(line, &start, &name))
			continue;
		there = format_text("/proc/%d/root%s", process, name);
		if (there)
			find_in_file(there, teardown->function, start, ret);
	}
}

/* True if one of the thread's innermost calls returns to the function. */
static bool is_within(pid_t thread, const struct teardown_place *place)
{
	uint64_t first, stack, words[128];
	ssize_t size;

	if (!machine_read_call(thread, &first, &stack))
		return false;
	size = process_peek(thread, stack, words, sizeof(words));
	for (ssize_t i = 0; i < size / (ssize_t)sizeof(*words); i++)
		if ((words[i] & machine.code_bits) - place->start < place->end - place->start)
			return true;
	return false;
}

bool teardown_begins(pid_t process, pid_t thread, const struct teardown *teardowns,
		     struct teardown_place *place)
{
	if (!place->looked_for) {
		place->looked_for = true;
		elf_version(EV_CURRENT);
		for (; teardowns && teardowns->function && !place->end; teardowns++)
			look_for(process, teardowns, place);
	}
	return place->end && is_within(thread, place);
}
