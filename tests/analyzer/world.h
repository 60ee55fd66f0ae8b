/*
 * A little world: a process whose memory is made up word by word, with the blocks that an allocator
 * would report, and what the analyzer makes of it.
 *
 *	world_init(&world);
 *	world_add_blocks(&world, &heap, 4);
 *	core_set(&world.core, ...);	what is in memory
 *	world_open(&world);		from here on, nothing is added
 *	world_find_graph(&world);	and whatever else is needed
 *
 * world_deinit() destroys what there is, in reverse order, and checks that no memory stays
 * accounted for; so what is built on top goes first.
 */
#pragma once

#include "analyzer/graph/graph.h"
#include "analyzer/graph/roots.h"

#include "tests/analyzer/drawing.h"
#include "tests/analyzer/image/core_builder.h"

struct world {
	struct core core;
	/* The only thread's registers; there is no thread while rsp is 0. */
	struct user_regs_struct registers;
	uint8_t vectors[2696];
	size_t vectors_size; /* 0: they are not in the core */
	struct findings findings;
	struct memory_account account;
	struct progress progress;
	struct block_sink *sink;
	allocation_id count; /* of the blocks by world_add_block() */
	/* NULL until they are asked for. */
	struct image *image;
	struct allocation_index *index;
	struct program *program;
	struct roots *roots;
	struct graph *graph, *incoming;
};

static inline void world_init(struct world *world)
{
	*world = (struct world){ .count = 0 };
	core_init(&world->core);
	assert_no_error(block_sink_create(&world->account, &world->sink));
}

static inline void world_deinit(struct world *world)
{
	if (world->incoming)
		graph_destroy(world->incoming);
	if (world->graph)
		graph_destroy(world->graph);
	if (world->roots)
		roots_destroy(world->roots);
	if (world->program)
		program_destroy(world->program);
	if (world->index)
		allocation_index_destroy(world->index);
	if (world->image)
		image_close(world->image);
	block_sink_destroy(world->sink);
	findings_deinit(&world->findings);
	core_deinit(&world->core);
	assert_int_equal(world->account.used, 0);
}
DEFINE_DEINIT(world_deinit, struct world)

/* Memory for blocks, at [start, start + size). */
static inline void world_add_heap(struct world *world, uint64_t start, uint64_t size)
{
	core_add(&world->core, start, size, RIGHTS_RW);
	assert_no_error(block_sink_region(world->sink, start, start + size, 0));
}

/* In the heap added last, behind its other blocks. */
static inline allocation_id world_add_block(struct world *world, struct block block)
{
	assert_no_error(block_sink_add(world->sink, block));
	return world->count++;
}

/* A heap of count used blocks of size bytes each, one every stride bytes. */
static inline void world_add_blocks(struct world *world, size_t count, uint64_t start,
				    uint64_t stride, uint64_t size)
{
	world_add_heap(world, start, stride * count);
	for (size_t i = 0; i < count; i++)
		world_add_block(world, (struct block){ start + stride * i, size, BLOCK_USED });
}

/* Words of blocks that are there, one every stride bytes, refer to starts of others as drawn. */
static inline void world_refer(struct world *world, const struct drawing *drawing, uint64_t start,
			       uint64_t stride)
{
	for (size_t i = 0; i < drawing->edge_count; i++)
		core_set(&world->core,
			 start + stride * drawing->edges[i].from + 8 * drawing->words[i],
			 start + stride * drawing->edges[i].to);
}

/* A heap as drawn (see drawing.h), of blocks of size bytes, one every stride bytes. */
static inline void world_draw(struct world *world, const char *text, uint64_t start,
			      uint64_t stride, uint64_t size)
{
	struct drawing drawing = draw(text);

	world_add_heap(world, start, stride * drawing.count);
	for (size_t i = 0; i < drawing.count; i++)
		world_add_block(world,
				(struct block){ start + stride * i, size,
						drawing.is_free[i] ? BLOCK_FREE : BLOCK_USED });
	world_refer(world, &drawing, start, stride);
}

/* The main stack is at [start, start + size), in use from rsp on. */
static inline void world_add_stack(struct world *world, uint64_t start, uint64_t size, uint64_t rsp)
{
	core_add(&world->core, start, size, RIGHTS_RW);
	core_add_auxiliary(&world->core, AT_RANDOM, start + size - 0x100);
	world->registers.rsp = rsp;
}

/* The first header of a module's file, with a single segment at its start. */
static inline void world_add_elf(struct world *world, uint64_t start, uint64_t size)
{
	const Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_phoff = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
	};
	const Elf64_Phdr segment = { .p_type = PT_LOAD, .p_filesz = size, .p_memsz = size };
	uint8_t *bytes = core_add(&world->core, start, size, RIGHT_READ);

	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), &segment, sizeof(segment));
}

/* Write the core, open it as an image, and index the blocks. */
static inline void world_open(struct world *world)
{
	struct core *core = &world->core;

	if (world->registers.rsp)
		core_add_thread(core, 11, &world->registers);
	if (world->vectors_size)
		core_add_vectors(core, world->vectors, world->vectors_size);
	core_write_file(core);
	assert_no_error(image_open(core->path, &world->findings, &world->image));
	assert_no_error(allocation_index_create(world->sink, &world->index));
}

static inline void world_find_program(struct world *world)
{
	assert_no_error(program_create(world->image, &world->findings, &world->program));
}

/* The program is found before. */
static inline void world_find_roots(struct world *world)
{
	const struct roots_input input = {
		.image = world->image,
		.program = world->program,
		.index = world->index,
		.account = &world->account,
		.progress = &world->progress,
	};

	assert_no_error(roots_create(&input, &world->roots));
}

static inline void world_find_graph(struct world *world)
{
	assert_no_error(graph_create(world->image, world->index, NULL, &world->account,
				     &world->progress, &world->graph));
}

/* The graph is found before. */
static inline void world_find_incoming(struct world *world)
{
	assert_no_error(
		graph_transpose(world->graph, &world->account, &world->progress, &world->incoming));
}
