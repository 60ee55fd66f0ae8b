/*
 * A C program whose types, variables and their places are damaged, in DWARF 4 and 5: which type
 * each allocation is of, by all ways to ask for it.
 */
#include "tests/fuzz/core_target.h"
#include "tests/fuzz/edited_program.h"

#include <string.h>

static struct edited_file programs[2];

/* Entries, their forms, where variables are, and names: each alike often. */
static void add_place(struct edited_file *file, const char *section, uint64_t place)
{
	if (strcmp(section, ".debug_info") == 0)
		places_add(&file->words, place);
	else if (strcmp(section, ".debug_abbrev") == 0)
		places_add(&file->first, place);
	else if (strncmp(section, ".debug_loc", 10) == 0)
		places_add(&file->pointers, place);
	else if (strncmp(section, ".debug_", 7) == 0)
		places_add(&file->chunks, place);
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
	edited_program_init("typed");
	edited_file_open(&programs[0], "typed-4");
	edited_file_open(&programs[1], "typed-5");
	edited_program_places(&programs[0], add_place);
	edited_program_places(&programs[1], add_place);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const char *const lines[] = {
		"list used order",
		"count used \"struct customer[]\"",
		"describe used",
		"list used customer",
		"explain shop.customers[3].orders->next",
		"dump *shop.customers->orders 8",
		"describe &(*shop.customers).orders",
		"list incoming shop.customers",
	};
	enum { COUNT = sizeof(lines) / sizeof(*lines) };
	const char *asked[3] = { "summarize used" };

	if (size < CORE_TARGET_HEAD)
		return 0;
	asked[1] = lines[bytes[1] % COUNT];
	edited_program_ask(&programs[bytes[0] % 2], bytes + CORE_TARGET_HEAD,
			   size - CORE_TARGET_HEAD, FUZZ_FILES "/typed.core", asked);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned int seed)
{
	return edits_mutate(bytes, size, most, CORE_TARGET_HEAD, seed);
}
