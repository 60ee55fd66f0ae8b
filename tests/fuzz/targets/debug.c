/*
 * A program whose file is damaged, with the right build-id still: symbols, call frames, lines,
 * variables and types, from plain and packed sections.
 */
#include "tests/fuzz/core_target.h"
#include "tests/fuzz/edited_program.h"

#include <elf.h>
#include <string.h>

static struct edited_file programs[2];

static void add_place(struct edited_file *file, const char *section, uint64_t place)
{
	if (strncmp(section, ".debug", 6) == 0)
		places_add(&file->words, place);
	else if (strncmp(section, ".eh", 3) == 0)
		places_add(&file->first, place);
	else if (strstr(section, "sym") || strstr(section, "dyn"))
		places_add(&file->pointers, place);
}

/* Words of sections with debug information, and the headers of all. */
static void find_places(struct edited_file *file)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)file->bytes;

	for (size_t i = 0; i < header->e_shnum * sizeof(Elf64_Shdr); i += 8)
		places_add(&file->chunks, header->e_shoff + i);
	edited_program_places(file, add_place);
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
	edited_program_init("program");
	edited_file_open(&programs[0], "program");
	edited_file_open(&programs[1], "program-packed");
	find_places(&programs[0]);
	find_places(&programs[1]);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const char *const lines[] = {
		"backtrace",	   "describe threads",	       "explain used",	"summarize used",
		"describe stacks", "list used --annotate *.*", "gate --likely", "describe used",
	};
	enum { COUNT = sizeof(lines) / sizeof(*lines) };
	const char *asked[3] = { NULL };

	if (size < CORE_TARGET_HEAD)
		return 0;
	asked[0] = lines[bytes[1] % COUNT];
	asked[1] = lines[bytes[2] % COUNT];
	edited_program_ask(&programs[bytes[0] % 2], bytes + CORE_TARGET_HEAD,
			   size - CORE_TARGET_HEAD, FUZZ_FILES "/program.core", asked);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned int seed)
{
	return edits_mutate(bytes, size, most, CORE_TARGET_HEAD, seed);
}
