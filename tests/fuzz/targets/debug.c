/*
 * A program whose file is damaged, with the right build-id still: symbols, call frames, lines,
 * variables and types, from plain and packed sections.
 */
#include "tests/fuzz/core_target.h"

#include "analyzer/base/cleanup.h"
#include "cli/prompt/execute.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* Where the program was when the core was made. */
static const char *const FOLDERS[] = { "tmp", "tmp/heapcore-fuzz", NULL };
static const char PROGRAM[] = "tmp/heapcore-fuzz/program";

static struct edited_file programs[2];
static char root[] = "/tmp/heapcore-fuzz.XXXXXX";
static char path[sizeof(root) + sizeof(PROGRAM)];

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

/* Words of sections with debug information, and the headers of all. */
static void find_places(struct edited_file *file)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)file->bytes;
	const Elf64_Shdr *sections = (const Elf64_Shdr *)(file->bytes + header->e_shoff);
	const char *names = (const char *)file->bytes + sections[header->e_shstrndx].sh_offset;

	file->headers = sizeof(*header) + header->e_phnum * sizeof(Elf64_Phdr);
	for (size_t i = 0; i < header->e_shnum; i++) {
		const Elf64_Shdr *section = &sections[i];
		const char *name = names + section->sh_name;

		for (size_t k = 0; k < sizeof(*section); k += 8)
			places_add(&file->chunks, header->e_shoff + i * sizeof(*section) + k);
		if (section->sh_type == SHT_NOBITS)
			continue;
		for (size_t k = 0; k < section->sh_size; k++)
			if (strncmp(name, ".debug", 6) == 0)
				places_add(&file->words, section->sh_offset + k);
			else if (strncmp(name, ".eh", 3) == 0)
				places_add(&file->first, section->sh_offset + k);
			else if (strstr(name, "sym") || strstr(name, "dyn"))
				places_add(&file->pointers, section->sh_offset + k);
	}
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
	core_target_settle();
	edited_file_open(&programs[0], "program");
	edited_file_open(&programs[1], "program-packed");
	find_places(&programs[0]);
	find_places(&programs[1]);
	if (!mkdtemp(root))
		abort();
	for (int i = 0; FOLDERS[i]; i++) {
		snprintf(path, sizeof(path), "%s/%s", root, FOLDERS[i]);
		mkdir(path, 0700);
	}
	snprintf(path, sizeof(path), "%s/%s", root, PROGRAM);
	atexit(remove_root);
	return 0;
}

/* The edited program becomes the one that the core's machine had. */
static void put_in_place(const struct edited_file *file)
{
	_cleanup_(close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	_cleanup_(free) uint8_t *bytes = malloc(file->size);
	ssize_t size = bytes ? pread(file->fd, bytes, file->size, 0) : -1;

	if (fd < 0 || size < 0 || write(fd, bytes, (size_t)size) != size)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const char *const lines[] = {
		"backtrace",	   "describe threads",	       "explain used",	"summarize used",
		"describe stacks", "list used --annotate *.*", "gate --likely", "describe used",
	};
	enum { COUNT = sizeof(lines) / sizeof(*lines) };
	struct edited_file *file;
	const char *asked[3] = { NULL };

	if (size < CORE_TARGET_HEAD)
		return 0;
	file = &programs[bytes[0] % 2];
	asked[0] = lines[bytes[1] % COUNT];
	asked[1] = lines[bytes[2] % COUNT];
	edits_make(file, bytes + CORE_TARGET_HEAD, size - CORE_TARGET_HEAD);
	put_in_place(file);
	core_target_ask_in(FUZZ_FILES "/program.core", root, asked);
	edits_undo(file);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned int seed)
{
	return edits_mutate(bytes, size, most, CORE_TARGET_HEAD, seed);
}
