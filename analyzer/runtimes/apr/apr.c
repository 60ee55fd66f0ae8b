/*
 * Pools of Apache's portable runtime, which httpd and Subversion use: each is freed as a whole,
 * with those below it. Their nodes are allocations, of malloc or of APR's own allocator
 * (allocators/apr.c, which has the layouts). Pools have the tags that the program gave them; others
 * that of a pool above.
 */
#include "analyzer/runtimes/pools.h"

enum {
	WORD = 8,
	NODE_HEADER = 5 * WORD,
	END = 4,	  /* word of a node */
	SLACK = 32,	  /* bytes that malloc adds */
	MOST_DEPTH = 100, /* of pools above, to one with a tag */
	TAG_SIZE = 48,
};

struct pool {
	uint64_t parent, child, sibling, reference, cleanups, free_cleanups, allocator,
		subprocesses, abort, data, tag, current, first;
};

/* The used allocation that a node begins, and is all of; or NO_ALLOCATION. */
static allocation_id find_node(const struct object_space *space, uint64_t address,
			       uint64_t *ret_next)
{
	allocation_id id = allocation_used_at(space->index, address);
	uint64_t words[END + 1];

	if (id == NO_ALLOCATION || !image_read(space->image, address, words, sizeof(words)) ||
	    allocation_size(space->index, id) - (words[END] - address) >= SLACK)
		return NO_ALLOCATION;
	*ret_next = words[0];
	return id;
}

/* Read a tag: printable text; false: there is none. */
static bool read_tag(const struct image *image, uint64_t address, char ret[static TAG_SIZE])
{
	size_t length = 0;

	while (address && length < TAG_SIZE - 1 &&
	       image_read(image, address + length, &ret[length], 1) && ret[length] > ' ' &&
	       ret[length] <= '~')
		length++;
	ret[length] = '\0';
	return length > 0;
}

/* Write the name of the class of pools like that. */
static void name_class(const struct object_space *space, struct pool pool, char *ret, size_t size)
{
	char tag[TAG_SIZE];
	bool is_own = true;

	for (size_t i = 0; i < MOST_DEPTH; i++) {
		if (read_tag(space->image, pool.tag, tag)) {
			snprintf(ret, size, is_own ? "apr pool %s" : "apr pools below %s", tag);
			return;
		}
		if (!image_read(space->image, pool.parent, &pool, sizeof(pool)))
			break;
		is_own = false;
	}
	snprintf(ret, size, "apr pools without tags");
}

static struct error *add_pool(struct object_space *space, allocation_id first, const void *pool,
			      const void *data)
{
	const uint64_t start = allocation_start(space->index, first);
	char name[TAG_SIZE + 32];
	uint64_t at = start;
	uint32_t class;

	name_class(space, *(const struct pool *)pool, name, sizeof(name));
	TRY(object_classes_name(&space->classes, &space->texts, name, &class));
	do {
		allocation_id id = find_node(space, at, &at);

		if (id == NO_ALLOCATION || object_class_of(space, id))
			return NULL;
		TRY(object_classes_set(&space->classes, id, class));
	} while (at != start && budget_take(&space->steps));
	return NULL;
}

static bool is_pool(const struct object_space *space, allocation_id id, const void *header)
{
	const struct pool *pool = header;
	uint64_t start = allocation_start(space->index, id), next;

	return pool->first == start && find_node(space, start, &next) != NO_ALLOCATION &&
	       find_node(space, pool->current, &next) != NO_ALLOCATION;
}

static const struct pool_kind kind = { NODE_HEADER, sizeof(struct pool), is_pool, add_pool };

static struct error *find_objects(struct object_space *space, struct debug *debug)
{
	return pools_find(space, &kind);
}

static struct error *visit_tag(struct object_space *space, allocation_id id, const void *header,
			       const void *data)
{
	const struct structure_visitor *visitor = data;
	const struct pool *pool = header;
	char tag[TAG_SIZE];

	return read_tag(space->image, pool->tag, tag)
		       ? visitor->name(visitor->data, pool->tag, strlen(tag) + 1)
		       : NULL;
}

static struct error *visit_structure(struct object_space *space,
				     const struct structure_visitor *visitor)
{
	return pools_visit(space, &kind, visit_tag, visitor);
}

const struct runtime runtime_apr = {
	.name = "apr",
	.modules = "libapr-1.|=apr_pool_create_ex",
	.find_objects = find_objects,
	.visit_structure = visit_structure,
	.is_certain = true,
	.has_regions = true,
};
