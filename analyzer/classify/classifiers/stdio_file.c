#include "analyzer/classify/classifier.h"

/*
 * glibc, libio/bits/types/struct_FILE.h: the upper half of the flags is a magic number, and the
 * table of methods stands behind the FILE.
 */
enum { MAGIC = 0xfbad, METHODS = 0xd8 };

static void inspect(struct reader *reader, const struct subject *subject)
{
	uint64_t methods;
	uint32_t flags;

	memcpy(&flags, subject->bytes, sizeof(flags));
	memcpy(&methods, subject->bytes + METHODS, sizeof(methods));
	if (flags >> 16 == MAGIC && reader_in_module(reader, methods))
		reader_claim(reader, subject->id, 0);
}

const struct classifier classifier_stdio_file = {
	.name = "StdioFile",
	.summary = "a FILE, made by fopen() or the like",
	.role = "a FILE of the C library",
	.strength = STRENGTH_MARKED,
	.inspect = inspect,
	.least_size = METHODS + sizeof(uint64_t),
};
