/*
 * nginx's pools: a request, a connection and the configuration have one each, which is freed as a
 * whole. A pool is a chain of blocks of one size, and what did not fit in them. core/ngx_palloc.h
 * of nginx 1.10 to 1.28, and of those that are made of it:
 *
 *	block | last | end | next block | failed |
 *	pool  | of the first block: | largest part | current block | buffers | large | cleanup | log
 *| large | next | allocation |
 *
 * A request and a configuration are the first part of their pools, and a connection's log is one
 * of its own.
 */
#include "analyzer/heap/cycle.h"
#include "analyzer/runtimes/pools.h"

enum {
	SLACK = 32,		 /* bytes that malloc adds */
	LARGEST = (4 << 10) - 1, /* part of a pool, however large its blocks are */
	REQUEST = 0x50545448,	 /* "HTTP" */
};

struct pool {
	uint64_t last, end, next, failed, largest, current, buffers, large, cleanup, log;
	uint64_t first[2]; /* words of its first part */
};

enum { HEADER = offsetof(struct pool, first) };

/* True if the words begin a block of a pool that fills the allocation, and has such a header. */
static bool is_block(const struct object_space *space, allocation_id id, const struct pool *block,
		     uint64_t header)
{
	uint64_t start = allocation_start(space->index, id);
	uint64_t size = allocation_size(space->index, id);

	return size >= sizeof(*block) && size - (block->end - start) < SLACK &&
	       block->last - start >= header && block->last <= block->end;
}

static bool is_pool(const struct object_space *space, allocation_id id, const void *header)
{
	const struct pool *pool = header;
	uint64_t room = pool->end - allocation_start(space->index, id) - HEADER;

	return is_block(space, id, pool, HEADER) && pool->largest == MIN(room, LARGEST) &&
	       allocation_used_at(space->index, pool->current) != NO_ALLOCATION;
}

static const char *name_pool(const struct object_space *space, allocation_id id,
			     const struct pool *pool)
{
	uint64_t start = allocation_start(space->index, id);

	if ((uint32_t)pool->first[0] == REQUEST)
		return "nginx pools of requests";
	if (pool->first[1] == start)
		return "nginx pool of the configuration";
	return pool->log - start < pool->end - start ? "nginx pools of connections" : "nginx pools";
}

static struct error *add_object(struct object_space *space, allocation_id id, uint32_t class)
{
	return id == NO_ALLOCATION || object_class_of(space, id)
		       ? NULL
		       : object_classes_set(&space->classes, id, class);
}

/* Add what was too large for the blocks. */
static struct error *add_large(struct object_space *space, uint64_t large, uint32_t class)
{
	struct cycle_search search = { .mark = large, .power = 1 };
	uint64_t words[2];

	while (large && budget_take(&space->steps) &&
	       image_read(space->image, large, words, sizeof(words))) {
		if (words[1])
			TRY(add_object(space, allocation_used_at(space->index, words[1]), class));
		large = words[0];
		if (cycle_closes(&search, large))
			return NULL;
	}
	return NULL;
}

static struct error *add_pool(struct object_space *space, allocation_id id, const void *header,
			      const void *data)
{
	struct pool pool = *(const struct pool *)header;
	uint64_t size = pool.end - allocation_start(space->index, id);
	uint32_t class;

	TRY(object_classes_name(&space->classes, &space->texts, name_pool(space, id, &pool),
				&class));
	TRY(add_large(space, pool.large, class));
	while (!object_class_of(space, id) && budget_take(&space->steps)) {
		TRY(add_object(space, id, class));
		id = allocation_used_at(space->index, pool.next);
		if (id == NO_ALLOCATION ||
		    !image_read(space->image, pool.next, &pool, sizeof(pool)) ||
		    !is_block(space, id, &pool, offsetof(struct pool, largest)) ||
		    pool.end - allocation_start(space->index, id) != size)
			return NULL;
	}
	return NULL;
}

static const struct pool_kind kind = { 0, sizeof(struct pool), is_pool, add_pool };

static struct error *find_objects(struct object_space *space, struct debug *debug)
{
	return pools_find(space, &kind);
}

static struct error *visit_numbers(struct object_space *space, allocation_id id, const void *header,
				   const void *data)
{
	const struct structure_visitor *visitor = data;
	const struct pool *pool = header;
	uint64_t start = allocation_start(space->index, id);

	if ((uint32_t)pool->first[0] == REQUEST)
		TRY(visitor->number(visitor->data, start + HEADER, sizeof(uint32_t)));
	return visitor->number(visitor->data, start, HEADER);
}

static struct error *visit_structure(struct object_space *space,
				     const struct structure_visitor *visitor)
{
	return pools_visit(space, &kind, visit_numbers, visitor);
}

const struct runtime runtime_nginx = {
	.name = "nginx",
	.modules = "nginx$|openresty$|angie$|=ngx_cycle",
	.find_objects = find_objects,
	.visit_structure = visit_structure,
	.is_certain = true,
	.has_regions = true,
};
