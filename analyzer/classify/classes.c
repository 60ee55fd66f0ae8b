#include "analyzer/classify/classes.h"

struct classes {
	const struct image *image;
};

struct error *classes_create(const struct image *image,
			     const struct program *program, struct debug *debug,
			     struct memory_account *account,
			     struct classes **ret)
{
	struct classes *classes = calloc(1, sizeof(*classes));

	if (!classes)
		return &error_no_memory;
	classes->image = image;
	*ret = classes;
	return NULL;
}

void classes_destroy(struct classes *classes)
{
	free(classes);
}

bool classes_is_vtable(struct classes *classes, uint64_t address)
{
	return false;
}

const char *classes_name(struct classes *classes, uint64_t signature)
{
	return NULL;
}

bool classes_is_a(struct classes *classes, uint64_t signature, const char *name)
{
	return false;
}
