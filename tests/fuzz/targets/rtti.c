/*
 * Run-time type information made of anything: the input is read-only memory, in which every word
 * may be a vtable.
 */
#include "tests/fuzz/memory.h"
#include "tests/fuzz/target.h"

#include "analyzer/classify/rtti.h"

static const uint64_t START = 0x10000;

static bool count_base(void *data, uint64_t base)
{
	unsigned int *bases = data;

	return ++*bases > 100000;
}

static void look(const struct image *image, size_t size)
{
	struct budget budget = { UINT64_MAX };

	for (uint64_t i = 0; i < size; i += 8) {
		uint64_t type = rtti_type(image, START + i, &budget);
		unsigned int bases = 0;

		free(rtti_name(image, START + i, &budget));
		if (type)
			free(rtti_name(image, type, &budget));
		if (rtti_find_base(image, START + i, count_base, &bases, &budget))
			abort(); /* far more than there is room for */
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct memory_part part = { START, RIGHT_READ, bytes, size };
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(image_close) struct image *image = memory_open(&part, 1, &findings);

	look(image, size);
	return 0;
}
