#include "analyzer/graph/roots.h"

#include "tests/analyzer/world.h"

#include <sys/syscall.h>

/* The heap has blocks of SIZE bytes; what else there is refers to them. */
static const uint64_t HEAP = 0x555500000000, SIZE = 32, BLOCKS = 8, DATA = 0x7f0000000000,
		      STACK = 0x7ffc00000000, RSP = STACK + 0x1000, LENGTH = 0x2000;

static uint64_t at(allocation_id id)
{
	return HEAP + SIZE * id;
}

static void populate(struct world *world)
{
	world_init(world);
	world_add_blocks(world, BLOCKS, HEAP, SIZE, SIZE);
	core_add(&world->core, DATA, LENGTH, RIGHTS_RW);
	world_add_stack(world, STACK, LENGTH, RSP);
}

static void find_roots(struct world *world)
{
	world_open(world);
	world_find_program(world);
	world_find_roots(world);
}

/* Each kind's targets, as bits by id. */
static void assert_targets(const struct world *world, uint64_t static_ones, uint64_t stacks,
			   uint64_t registers)
{
	const uint64_t expected[] = { static_ones, stacks, registers };

	for (enum root_kind kind = 0; kind <= ROOT_REGISTER; kind++)
		assert_int_equal(root_targets(world->roots, kind)->words[0], expected[kind]);
}

TEST(each_kind_of_root_has_its_targets)
{
	_cleanup_(world_deinit) struct world world;

	populate(&world);
	core_set(&world.core, DATA, at(0));
	core_set(&world.core, DATA + LENGTH - 8, at(1) + SIZE - 1);
	core_set(&world.core, RSP + 8, at(2));
	core_set(&world.core, STACK + LENGTH - 8, at(0));
	world.registers.r12 = at(3) + 5;
	world.registers.rax = at(4) + SIZE; /* one past it: the next */
	find_roots(&world);
	assert_targets(&world, 1 << 0 | 1 << 1, 1 << 2 | 1 << 0, 1 << 3 | 1 << 5);
}

static void note_held(struct world *world, const void *note, size_t size)
{
	core_add_note(&world->core, NOTE_OWNER, NOTE_HELD, note, size);
}

static bool keep_anchor(void *data, const struct anchor *anchor)
{
	*(struct anchor *)data = *anchor;
	return true;
}

TEST(what_the_kernel_holds_is_a_root)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(bitmap_deinit) struct bitmap all = { 0 };
	struct {
		uint64_t sought;
		struct held_value values[5];
	} note = { 1 << HELD_EPOLL,
		   {
			   { at(0), HELD_EPOLL, 5, 7 },
			   { at(3) + 1, HELD_TIMER, 0, 0 },
			   /* Values that heapcore never writes. */
			   { at(1), HELD_KINDS, 0, 0 },
			   { at(1), HELD_UNTOLD, 0, 0 },
			   { at(1), UINT32_MAX, 0, 0 },
		   } };
	struct anchor last;

	populate(&world);
	note_held(&world, &note, sizeof(note));
	find_roots(&world);
	assert_targets(&world, 0, 0, 0);
	assert_int_equal(root_targets(world.roots, ROOT_KERNEL)->words[0], 1 << 0 | 1 << 3);
	assert_no_error(bitmap_init(&all, BLOCKS, &world.account));
	bitmap_fill(&all);
	roots_visit(world.roots, &all, keep_anchor, &last);
	assert_int_equal(last.kind, ROOT_KERNEL);
	assert_int_equal(last.target, 3);
	assert_int_equal(last.address, 0);
	assert_int_equal(last.held, 1);
}

TEST(cut_note_of_the_kernel_does_no_harm)
{
	uint64_t note[] = { UINT64_MAX, at(0), HELD_TIMER };

	for (size_t size = 0; size <= sizeof(note); size++) {
		_cleanup_(world_deinit) struct world world;

		populate(&world);
		note_held(&world, note, size);
		find_roots(&world);
		assert_int_equal(root_targets(world.roots, ROOT_KERNEL)->words[0], 0);
	}
}

TEST(unaligned_word_in_memory_is_no_reference)
{
	_cleanup_(world_deinit) struct world world;
	uint64_t target = at(0);

	populate(&world);
	memcpy(core_at(&world.core, DATA + 12, 8), &target, 8);
	find_roots(&world);
	assert_targets(&world, 0, 0, 0);
}

TEST(what_the_loader_keeps_of_its_cache_is_no_reference)
{
	static const uint64_t LOADER = 0x7f1000000000, MAPPED = 0x7f2000000010;
	_cleanup_(world_deinit) struct world world;

	world_init(&world);
	core_add(&world.core, DATA, LENGTH, RIGHTS_RW);
	core_add_module(&world.core, LOADER, LENGTH, "/lib64/ld-linux-x86-64.so.2");
	core_add_auxiliary(&world.core, AT_BASE, LOADER);
	core_note_files(&world.core);
	world_add_blocks(&world, 4, MAPPED, 4 * PAGE, 4 * PAGE - 16);
	core_set(&world.core, LOADER + PAGE, MAPPED - 16 + 2 * PAGE);
	/* The loader's actual references, and others'. */
	core_set(&world.core, LOADER + PAGE + 8, MAPPED + 4 * PAGE);
	core_set(&world.core, DATA, MAPPED + 8 * PAGE - 16 + 2 * PAGE);
	find_roots(&world);
	assert_targets(&world, 1 << 1 | 1 << 2, 0, 0);
}

TEST(dead_stack_is_no_root_but_its_red_zone_is)
{
	_cleanup_(world_deinit) struct world world;

	populate(&world);
	core_set(&world.core, STACK, at(0));
	core_set(&world.core, RSP - RED_ZONE - 8, at(1));
	core_set(&world.core, RSP - RED_ZONE, at(2));
	core_set(&world.core, RSP - 8, at(3));
	find_roots(&world);
	assert_targets(&world, 0, 1 << 2 | 1 << 3, 0);
}

TEST(what_an_allocator_claims_is_no_root)
{
	_cleanup_(world_deinit) struct world world;

	populate(&world);
	assert_no_error(block_sink_claim(world.sink, DATA + 0x100, DATA + 0x200));
	core_set(&world.core, DATA + 0xf8, at(0));
	core_set(&world.core, DATA + 0x100, at(1));
	core_set(&world.core, DATA + 0x1f8, at(2));
	core_set(&world.core, DATA + 0x200, at(3));
	/* Nor is the heap. */
	core_set(&world.core, at(4), at(5));
	find_roots(&world);
	assert_targets(&world, 1 << 0 | 1 << 3, 0, 0);
}

/* Neighbours of a heap's region in the same mapping are the program's own. */
TEST(mapping_is_a_root_around_the_heap_in_it)
{
	_cleanup_(world_deinit) struct world world;
	const uint64_t mapping = DATA + 0x100000;

	populate(&world);
	core_add(&world.core, mapping, LENGTH, RIGHTS_RW);
	assert_no_error(block_sink_region(world.sink, mapping + 0x800, mapping + 0x900, 0));
	world_add_block(&world, (struct block){ mapping + 0x810, 0xf0, BLOCK_USED });
	core_set(&world.core, mapping, at(0));
	core_set(&world.core, mapping + 0x7f8, at(1));
	core_set(&world.core, mapping + 0x808, at(2));
	core_set(&world.core, mapping + 0x900, at(3));
	find_roots(&world);
	assert_targets(&world, 1 << 0 | 1 << 1 | 1 << 3, 0, 0);
}

TEST(only_memory_that_was_written_is_a_root)
{
	const uint64_t relocated = DATA + 0x100000, code = DATA + 0x200000,
		       hidden = DATA + 0x300000, made = DATA + 0x400000;
	_cleanup_(world_deinit) struct world world;
	struct core *core = &world.core;

	populate(&world);
	core_add(core, relocated, 0x1000, RIGHT_READ);
	core_add(core, code, 0x1000, RIGHT_READ | RIGHT_EXECUTE);
	core_add_file(core, code, code + 0x1000, 0x1000, "/lib/libm.so.6");
	core_add(core, hidden, 0x1000, 0);
	/* From no file, so made by the program; its operands are unaligned. */
	core_add(core, made, 0x1000, RIGHT_READ | RIGHT_EXECUTE);
	core_set(core, relocated, at(0));
	core_set(core, code, at(1));
	core_set(core, hidden, at(2));
	core_set(core, made + 5, at(3));
	find_roots(&world);
	assert_targets(&world, 1 << 0 | 1 << 2 | 1 << 3, 0, 0);
}

TEST(free_block_is_no_target)
{
	_cleanup_(world_deinit) struct world world;

	populate(&world);
	block_sink_restate(world.sink, at(0), BLOCK_FREE);
	block_sink_restate(world.sink, at(1), BLOCK_CACHED);
	core_set(&world.core, DATA, at(0));
	core_set(&world.core, RSP, at(1));
	world.registers.rbx = at(1);
	find_roots(&world);
	assert_targets(&world, 0, 0, 0);
}

/* As `heapcore run` holds a program. */
TEST(registers_of_a_thread_that_ends_are_no_roots)
{
	_cleanup_(world_deinit) struct world world;

	populate(&world);
	world.registers.orig_rax = SYS_exit_group;
	world.registers.rbx = at(1);
	core_set(&world.core, RSP, at(2));
	find_roots(&world);
	assert_targets(&world, 0, 1 << 2, 0);
}

/* Offsets of xmm registers in the state, and of the upper parts of others. */
enum { XMM = 160, YMM = 576, ZMM_INTEL = 1152, ZMM_AMD = 896 };

/* Put value at that byte of vector register number, whose parts are torn. */
static void set_vector(struct world *world, size_t zmm, size_t number, size_t byte, uint64_t value)
{
	for (size_t i = byte; i < byte + sizeof(value); i++, value >>= 8)
		world->vectors[i < 16	? XMM + 16 * number + i
			       : i < 32 ? YMM + 16 * number + i - 16
					: zmm + 32 * number + i - 32] = (uint8_t)value;
}

TEST(vector_register_holds_references_at_any_byte)
{
	_cleanup_(world_deinit) struct world world;

	populate(&world);
	world.vectors_size = 832;
	set_vector(&world, 0, 0, 0, at(0));
	set_vector(&world, 0, 3, 5, at(1));
	set_vector(&world, 0, 15, 24, at(2));
	/* Across the halves of a ymm register. */
	set_vector(&world, 0, 5, 13, at(3));
	find_roots(&world);
	assert_targets(&world, 0, 0, 0xf);
}

TEST(what_is_beside_vector_registers_is_no_reference)
{
	enum { CONTROL = 16, RESERVED = 464, HEADER = 512 };
	_cleanup_(world_deinit) struct world world;
	const uint64_t target = at(0);

	populate(&world);
	world.vectors_size = 832;
	memcpy(world.vectors + CONTROL, &target, sizeof(target));
	memcpy(world.vectors + RESERVED, &target, sizeof(target));
	memcpy(world.vectors + HEADER, &target, sizeof(target));
	set_vector(&world, 0, 15, 8, at(1));
	find_roots(&world);
	assert_targets(&world, 0, 0, 1 << 1);
}

TEST(wide_vector_register_is_torn_in_three)
{
	static const struct {
		size_t size, zmm;
	} processors[] = { { 2696, ZMM_INTEL }, { 2440, ZMM_AMD } };

	for (size_t i = 0; i < 2; i++) {
		_cleanup_(world_deinit) struct world world;

		populate(&world);
		world.vectors_size = processors[i].size;
		set_vector(&world, processors[i].zmm, 2, 9, at(0));
		set_vector(&world, processors[i].zmm, 7, 29, at(1));
		set_vector(&world, processors[i].zmm, 15, 56, at(2));
		find_roots(&world);
		assert_targets(&world, 0, 0, 7);
	}
}

/* A thread that made a system call; where, the bytes before tell. */
static void wait_in(struct world *world, const char *path, uint8_t last)
{
	const uint64_t code = DATA + 0x100000, call = code + 0x800;
	const uint8_t bytes[] = { 0x0f, last };

	world_add_elf(world, code, 0x1000);
	core_add_file(&world->core, code, code + 0x1000, 0, path);
	memcpy(core_at(&world->core, call - 2, 2), bytes, 2);
	world->registers.rip = call;
	world->registers.orig_rax = SYS_poll;
	world->registers.rsi = at(2);
	world->vectors_size = 832;
	set_vector(world, 0, 0, 0, at(1));
}

TEST(vectors_are_dead_in_a_system_call_of_glibc)
{
	static const struct {
		const char *path;
		uint8_t last;
		long long call;
		bool dead;
	} cases[] = {
		{ "/lib/libc.so.6", 0x05, SYS_poll, true },
		{ "/lib/libc-2.31.so", 0x05, SYS_poll, true },
		{ "/lib/libpthread-2.31.so", 0x05, SYS_futex, true },
		/* Another instruction; no call; a program's own. */
		{ "/lib/libc.so.6", 0x0b, SYS_poll, false },
		{ "/lib/libc.so.6", 0x05, -1, false },
		{ "/usr/bin/server", 0x05, SYS_poll, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		_cleanup_(world_deinit) struct world world;

		populate(&world);
		wait_in(&world, cases[i].path, cases[i].last);
		world.registers.orig_rax = (unsigned long long)cases[i].call;
		find_roots(&world);
		assert_targets(&world, 0, 0, 1 << 2 | (cases[i].dead ? 0 : 1 << 1));
	}
}

struct visited {
	struct anchor anchors[8];
	size_t count, most;
};

static bool visit(void *data, const struct anchor *anchor)
{
	struct visited *visited = data;

	visited->anchors[visited->count++] = *anchor;
	return visited->count < visited->most;
}

TEST(anchors_are_visited_by_kind_and_address)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(bitmap_deinit) struct bitmap targets = { 0 };
	struct visited visited = { .most = 8 };
	const struct anchor *anchors = visited.anchors;

	populate(&world);
	block_sink_restate(world.sink, at(1), BLOCK_FREE);
	core_set(&world.core, DATA + 0x10, at(0));
	core_set(&world.core, DATA + 0x20, at(2));
	core_set(&world.core, DATA + 0x30, at(1));
	core_set(&world.core, RSP, at(0));
	world.registers.rdi = at(0);
	find_roots(&world);
	assert_no_error(bitmap_init(&targets, BLOCKS, &world.account));
	bitmap_set(&targets, 0);
	bitmap_set(&targets, 1);
	roots_visit(world.roots, &targets, visit, &visited);
	assert_int_equal(visited.count, 4);
	assert_int_equal(anchors[0].kind, ROOT_STATIC);
	assert_int_equal(anchors[0].address, DATA + 0x10);
	assert_int_equal(anchors[0].target, 0);
	assert_int_equal(anchors[0].thread, NO_THREAD);
	assert_int_equal(anchors[1].address, DATA + 0x30);
	assert_int_equal(anchors[1].target, 1);
	assert_int_equal(anchors[2].kind, ROOT_STACK);
	assert_int_equal(anchors[2].address, RSP);
	assert_int_equal(anchors[2].thread, 0);
	assert_int_equal(anchors[3].kind, ROOT_REGISTER);
	assert_string_equal(anchors[3].register_name, "rdi");
	assert_int_equal(anchors[3].address, 0);
	visited = (struct visited){ .most = 2 };
	roots_visit(world.roots, &targets, visit, &visited);
	assert_int_equal(visited.count, 2);
}

TEST(ranges_are_by_address_and_leave_the_dead_out)
{
	_cleanup_(world_deinit) struct world world;
	struct root_range range;

	populate(&world);
	assert_no_error(block_sink_claim(world.sink, DATA + 0x100, DATA + 0x200));
	find_roots(&world);
	assert_int_equal(root_range_count(world.roots), 3);
	range = root_range(world.roots, 0);
	assert_int_equal(range.start, DATA);
	assert_int_equal(range.end, DATA + 0x100);
	assert_int_equal(range.kind, ROOT_STATIC);
	range = root_range(world.roots, 1);
	assert_int_equal(range.start, DATA + 0x200);
	assert_int_equal(range.end, DATA + LENGTH);
	range = root_range(world.roots, 2);
	assert_int_equal(range.start, RSP - RED_ZONE);
	assert_int_equal(range.end, STACK + LENGTH);
	assert_int_equal(range.kind, ROOT_STACK);
	assert_int_equal(range.thread, 0);
}

TEST(interrupt_ends_the_scan)
{
	_cleanup_(world_deinit) struct world world;
	struct roots *roots;

	populate(&world);
	find_roots(&world);
	world.progress.interrupted = true;
	assert_error(roots_create(&(struct roots_input){ .image = world.image,
							 .program = world.program,
							 .index = world.index,
							 .account = &world.account,
							 .progress = &world.progress },
				  &roots),
		     ERROR_INTERRUPTED, "interrupted");
}
