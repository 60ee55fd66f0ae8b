#include "tests/fuzz/edited_program.h"

#include "analyzer/base/cleanup.h"
#include "tests/fuzz/core_target.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const FOLDERS[] = { "tmp", "tmp/heapcore-fuzz", NULL };

static char root[] = "/tmp/heapcore-fuzz.XXXXXX";
static char path[sizeof(root) + 64];

static void remove_root(void)
{
	unlink(path);
	for (int i = 1; i >= 0; i--) {
		char folder[sizeof(path)];

		snprintf(folder, sizeof(folder), "%s/%s", root, FOLDERS[i]);
		rmdir(folder);
	}
	rmdir(root);
}

void edited_program_init(const char *name)
{
	core_target_settle();
	if (!mkdtemp(root))
		abort();
	for (int i = 0; FOLDERS[i]; i++) {
		snprintf(path, sizeof(path), "%s/%s", root, FOLDERS[i]);
		mkdir(path, 0700);
	}
	snprintf(path, sizeof(path), "%s/%s/%s", root, FOLDERS[1], name);
	atexit(remove_root);
}

void edited_program_places(struct edited_file *file,
			   void (*add)(struct edited_file *file, const char *section,
				       uint64_t place))
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)file->bytes;
	const Elf64_Shdr *sections = (const Elf64_Shdr *)(file->bytes + header->e_shoff);
	const char *names = (const char *)file->bytes + sections[header->e_shstrndx].sh_offset;

	file->headers = sizeof(*header) + header->e_phnum * sizeof(Elf64_Phdr);
	for (size_t i = 0; i < header->e_shnum; i++)
		for (size_t k = 0; sections[i].sh_type != SHT_NOBITS && k < sections[i].sh_size;
		     k++)
			add(file, names + sections[i].sh_name, sections[i].sh_offset + k);
}

static void put_in_place(const struct edited_file *file)
{
	_cleanup_(close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	_cleanup_(free) uint8_t *bytes = malloc(file->size);
	ssize_t size = bytes ? pread(file->fd, bytes, file->size, 0) : -1;

	if (fd < 0 || size < 0 || write(fd, bytes, (size_t)size) != size)
		abort();
}

void edited_program_ask(struct edited_file *file, const uint8_t *edits, size_t size,
			const char *core, const char *const *lines)
{
	edits_make(file, edits, size);
	put_in_place(file);
	core_target_ask_in(core, root, lines);
	edits_undo(file);
}
