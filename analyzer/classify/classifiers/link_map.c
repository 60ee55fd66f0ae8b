#include "analyzer/classify/classifier.h"
#include "analyzer/classify/loader.h"

static void inspect(struct reader *reader, const struct subject *subject)
{
	if (is_link_map(reader, subject->range, subject->bytes, subject->size))
		reader_claim(reader, subject->id, 0);
}

const struct classifier classifier_link_map = {
	.name = "LinkMap",
	.summary = "what the loader knows of a library loaded later",
	.role = "a link map of the loader",
	.strength = STRENGTH_MARKED,
	.inspect = inspect,
	.least_size = LINK_MAP_LEAST_SIZE,
};
