#include "analyzer/classify/patterns.h"

struct patterns {
	const struct allocation_index *index;
};

struct error *patterns_create(const struct image *image,
			      const struct program *program,
			      const struct allocation_index *index,
			      const struct roots *roots, struct debug *debug,
			      struct memory_account *account,
			      struct progress *progress, struct patterns **ret)
{
	struct patterns *patterns = calloc(1, sizeof(*patterns));

	if (!patterns)
		return &error_no_memory;
	patterns->index = index;
	*ret = patterns;
	return NULL;
}

void patterns_destroy(struct patterns *patterns)
{
	free(patterns);
}

pattern_number patterns_of(const struct patterns *patterns, allocation_id id)
{
	return NO_PATTERN;
}

const char *pattern_name(pattern_number number)
{
	return NULL;
}

pattern_number pattern_find(const char *name)
{
	return NO_PATTERN;
}
