/*
 * Machine code of any kind, read for the objects it makes.
 */
#include "tests/fuzz/memory.h"
#include "tests/fuzz/target.h"

#include "analyzer/runtimes/crystal/code.h"

static const uint64_t CODE = 0x400000, DATA = 0x600000;

static bool allocates(const void *data, uint64_t function)
{
	return function % 4 == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct memory_part parts[] = {
		{ CODE, RIGHT_READ | RIGHT_EXECUTE, bytes, size },
		{ DATA, RIGHT_READ, bytes, size },
	};
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(image_close) struct image *image = memory_open(parts, 2, &findings);
	_cleanup_(code_reader_destroy) struct code_reader *reader = NULL;
	const struct made_object *made;

	/* NULL: there is no disassembler */
	if (code_reader_create(image, allocates, NULL, &reader) || !reader)
		return 0;
	if (code_find_objects(reader, CODE, CODE + size, &made) > MOST_MADE)
		abort();
	return 0;
}
