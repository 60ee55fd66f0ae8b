#include "analyzer/program/debug.h"

struct debug {
	const struct image *image;
	const struct program *program;
};

struct error *debug_create(const struct image *image,
			   const struct program *program,
			   const struct debug_options *options,
			   struct findings *findings, struct debug **ret)
{
	struct debug *debug = calloc(1, sizeof(*debug));

	if (!debug)
		return &error_no_memory;
	debug->image = image;
	debug->program = program;
	*ret = debug;
	return NULL;
}

void debug_destroy(struct debug *debug)
{
	free(debug);
}

bool debug_symbol(struct debug *debug, uint64_t address, struct symbol *ret)
{
	return false;
}
