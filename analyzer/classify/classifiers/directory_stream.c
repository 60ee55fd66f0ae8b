#include "analyzer/classify/classifier.h"

/*
 * glibc, sysdeps/unix/sysv/linux/dirstream.h:
 *
 *	| descriptor, lock | allocation | size | offset | position | error |
 *	| data, as many bytes as the allocation says ...
 */
enum { HEADER = 48, LEAST_DATA = 32768, MOST_DESCRIPTOR = 1 << 20 };

static void inspect(struct reader *reader, const struct subject *subject)
{
	uint64_t words[4];
	int32_t descriptor, lock;

	memcpy(words, subject->bytes, sizeof(words));
	memcpy(&descriptor, subject->bytes, sizeof(descriptor));
	memcpy(&lock, subject->bytes + 4, sizeof(lock));
	if (descriptor < 0 || descriptor > MOST_DESCRIPTOR || lock < 0 || lock > 2 ||
	    words[1] < LEAST_DATA || words[1] % 4096 || words[2] > words[1] || words[3] > words[2])
		return;
	if (words[1] <= range_size(subject->range) - HEADER &&
	    reader_fits(reader, subject->range, HEADER + words[1]))
		reader_claim(reader, subject->id, 0);
}

const struct classifier classifier_directory_stream = {
	.name = "DirectoryStream",
	.summary = "a DIR, made by opendir()",
	.role = "a DIR of the C library, with its buffer",
	.strength = STRENGTH_BUFFER,
	.inspect = inspect,
	.least_size = HEADER + LEAST_DATA,
};
