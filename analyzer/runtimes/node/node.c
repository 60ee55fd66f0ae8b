#include "analyzer/runtimes/node/node.h"

static uint64_t measure(const struct image *image, uint64_t address)
{
	struct v8_chunk chunk;

	return v8_read_chunk(image, address, &chunk) ? chunk.size : 0;
}

static const char *use(const struct image *image, uint64_t address)
{
	static const char *const uses[V8_SPACES] = {
		[V8_NEW] = "V8's heap: new objects",	 [V8_OLD] = "V8's heap: old objects",
		[V8_LARGE] = "V8's heap: large objects", [V8_CODE] = "V8's heap: code",
		[V8_READ_ONLY] = "V8's heap: read-only",
	};
	struct v8_chunk chunk;

	return v8_read_chunk(image, address, &chunk) ? uses[chunk.space] : "V8's heap";
}

/* A chunk of new objects does not count its allocations: all of it is in use. */
static bool fill(const struct image *image, uint64_t address, uint64_t *ret_used,
		 uint64_t *ret_room)
{
	struct v8_chunk chunk;

	if (!v8_read_chunk(image, address, &chunk) || chunk.space == V8_NEW)
		return false;
	*ret_used = chunk.allocated;
	*ret_room = chunk.end - chunk.start;
	return true;
}

static const struct object_pages pages = {
	.name = "V8's heap",
	.alignment = { V8_CHUNK_ALIGNMENT },
	.measure = measure,
	.use = use,
	.fill = fill,
	.is_certain = true,
};

const struct runtime runtime_node = {
	.name = "node",
	.modules = "libnode.so|node$|nodejs$|=node_module_register",
	.space_size = sizeof(struct node),
	.pages = &pages,
	.leaks_note =
		"Node.js is loaded: V8's objects are not counted as allocations, and hold what they refer to until V8 frees them",
	FILL_SLOTS(NODE_SLOTS),
	.calls = &(const struct runtime_calls){ FILL_SLOTS(NODE_CALL_SLOTS) },
	.links = &(const struct runtime_links){ FILL_SLOTS(NODE_LINK_SLOTS), .steps = node_steps },
};
