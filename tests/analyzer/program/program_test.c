/*
 * A process with a main stack, a library, and stacks of threads:
 *
 *	BLOCK                                   descriptor    BLOCK + SIZE
 *	| guard | ...                           | struct pthread |
 */
#include "analyzer/program/program.h"

#include "tests/analyzer/image/core_builder.h"

#include <sys/time.h>

static const uint64_t LIBRARY = 0x7f0000000000, DATA = 0x7f0000001000, DATA_SIZE = 0x2000,
		      MAIN = 0x7ffc00000000, MAIN_SIZE = 0x8000, BLOCK = 0x7e0000000000,
		      SIZE = 0x20000, GUARD = 0x1000, OWN = 0x7d0000000000, OWN_SIZE = 0x40000,
		      DESCRIPTOR = BLOCK + SIZE - 0x940, LIST = DATA + 0x100;

enum {
	IN_PTHREAD_LIST = 704,
	IN_PTHREAD_TID = 720,
	IN_PTHREAD_CANCEL = 776,
	EXITING = 0x10,
	IN_PTHREAD_JOIN = 1576,
	IN_PTHREAD_BLOCK = 1680,
};

struct process {
	struct core core;
	struct findings findings;
	struct image *image;
	struct program *program;
};

static void process_init(struct process *process)
{
	struct core *core = &process->core;
	Elf64_Ehdr header = { .e_ident = ELFMAG,
			      .e_phoff = sizeof(header),
			      .e_phentsize = sizeof(Elf64_Phdr),
			      .e_phnum = 1 };
	const Elf64_Phdr segment = { .p_type = PT_LOAD, .p_vaddr = 0x1000 };
	uint8_t *bytes;

	*process = (struct process){ 0 };
	core_init(core);
	bytes = core_add(core, LIBRARY, PAGE, RIGHT_READ);
	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), &segment, sizeof(segment));
	core_add(core, DATA, DATA_SIZE, RIGHTS_RW);
	core_add_file(core, LIBRARY, DATA, 0, "/lib/libc.so.6");
	core_add_file(core, DATA, DATA + PAGE, PAGE, "/lib/libc.so.6");
	/* The return address of its thread. */
	memset(core_add(core, MAIN, MAIN_SIZE, RIGHTS_RW), 0x11, MAIN_SIZE);
	core_add_auxiliary(core, AT_RANDOM, MAIN + MAIN_SIZE - 0x100);
	/* No list yet. */
	core_set(core, LIST, LIST);
	core_set(core, LIST + 8, LIST);
}

static void process_deinit(struct process *process)
{
	if (process->program)
		program_destroy(process->program);
	if (process->image)
		image_close(process->image);
	findings_deinit(&process->findings);
	core_deinit(&process->core);
}
DEFINE_DEINIT(process_deinit, struct process)

static void process_open(struct process *process)
{
	core_write_file(&process->core);
	assert_no_error(image_open(process->core.path, &process->findings, &process->image));
	assert_no_error(program_create(process->image, &process->findings, &process->program));
}

static void add_thread(struct process *process, uint32_t id, uint64_t rsp, uint64_t fs_base)
{
	const struct user_regs_struct registers = { .rsp = rsp, .fs_base = fs_base };

	core_add_thread(&process->core, id, &registers);
}

/* The thread's stack from block on, with its descriptor in it. */
static void add_block(struct process *process, uint64_t block, int32_t tid)
{
	struct core *core = &process->core;
	uint64_t descriptor = block + (DESCRIPTOR - BLOCK);

	core_add_part(core, block, GUARD, 0, 0);
	core_add(core, block + GUARD, SIZE - GUARD, RIGHTS_RW);
	core_set(core, descriptor, descriptor);
	core_set(core, descriptor + 8, 0x555500001000); /* dtv */
	core_set(core, descriptor + 16, descriptor);
	core_set(core, descriptor + IN_PTHREAD_TID, (uint32_t)tid);
	core_set(core, descriptor + IN_PTHREAD_CANCEL, tid > 0 ? 0 : EXITING);
	core_set(core, descriptor + IN_PTHREAD_BLOCK, block);
	core_set(core, descriptor + IN_PTHREAD_BLOCK + 8, SIZE);
	core_set(core, descriptor + IN_PTHREAD_BLOCK + 16, GUARD);
}

/* Put the descriptor into the list of stacks, behind the head. */
static void link_block(struct process *process, uint64_t block)
{
	struct core *core = &process->core;
	uint64_t link = block + (DESCRIPTOR - BLOCK) + IN_PTHREAD_LIST;
	uint64_t next = core_get(core, LIST);

	core_set(core, link, next);
	core_set(core, link + 8, LIST);
	core_set(core, next + 8, link);
	core_set(core, LIST, link);
}

static void assert_stack(const struct process *process, uint64_t address, enum stack_kind kind,
			 uint64_t live, uint64_t live_end)
{
	const struct stack *stack = program_find_stack(process->program, address);

	assert_non_null(stack);
	assert_int_equal(stack->kind, kind);
	assert_int_equal(stack->live, live);
	assert_int_equal(stack->live_end, live_end);
}

TEST(threads_are_those_of_the_dump_in_its_order)
{
	_cleanup_(process_deinit) struct process process;
	const struct thread *thread;

	process_init(&process);
	add_thread(&process, 12, MAIN + 0x4000, 0x1000);
	add_thread(&process, 11, 0x2222, 0x3333);
	process_open(&process);
	assert_int_equal(process.program->thread_count, 2);
	thread = &process.program->threads[0];
	assert_int_equal(thread->id, 12);
	assert_int_equal(thread->stack_pointer, MAIN + 0x4000);
	assert_int_equal(thread->thread_pointer, 0x1000);
	assert_int_equal(thread->stack, 0);
	thread = &process.program->threads[1];
	assert_int_equal(thread->id, 11);
	assert_int_equal(thread->state->thread_pointer, 0x3333);
	assert_int_equal(thread->stack, NO_STACK);
}

TEST(memory_that_a_thread_cannot_be_without_is_missed)
{
	_cleanup_(process_deinit) struct process process;

	process_init(&process);
	core_set(&process.core, DATA + 0x100, DATA + 0x100);
	add_thread(&process, 10, MAIN + 0x4000, DATA + 0x100);
	add_thread(&process, 11, MAIN + 0x4000, DATA + PAGE);
	add_thread(&process, 12, MAIN + 0x4000, UINT64_C(0x7d0000000000));
	add_thread(&process, 13, MAIN + 0x4000, 0x30);
	process_open(&process);
	assert_null(find_finding(&process.findings, "thread 10"));
	assert_finding(&process.findings, FINDING_INCOMPLETE,
		       "the thread-local storage of thread 11");
	assert_finding(&process.findings, FINDING_INCOMPLETE, "(and 1 more) is not in the core");
	assert_finding(&process.findings, FINDING_NOTE,
		       "thread 13 in the core, 0x30, cannot be right");
}

TEST(thread_pointer_is_found_without_its_register)
{
	_cleanup_(process_deinit) struct process process;

	process_init(&process);
	add_block(&process, BLOCK, 12);
	core_set(&process.core, BLOCK + 0x4008, LIBRARY);
	add_thread(&process, 12, BLOCK + 0x4000, 0x201);
	process_open(&process);
	assert_int_equal(process.program->threads[0].thread_pointer, DESCRIPTOR);
	assert_int_equal(process.program->threads[0].pointer_source, POINTER_FOUND);
	assert_int_equal(process.findings.weighed[FINDING_INCOMPLETE], 0);
}

/* A thread of Go without C has a pointer to a word of its own there. */
TEST(thread_without_a_control_block_misses_none)
{
	_cleanup_(process_deinit) struct process process;

	process_init(&process);
	core_set(&process.core, DATA + 0x1f8, MAIN);
	add_thread(&process, 10, MAIN + 0x4000, DATA + 0x200);
	process_open(&process);
	assert_null(find_finding(&process.findings, "thread-local storage"));
}

TEST(dump_without_threads_is_incomplete)
{
	_cleanup_(process_deinit) struct process process;

	process_init(&process);
	process_open(&process);
	assert_int_equal(process.program->thread_count, 0);
	assert_finding(&process.findings, FINDING_INCOMPLETE, "the core has no threads");
	assert_stack(&process, MAIN, STACK_MAIN, MAIN, MAIN + MAIN_SIZE);
}

TEST(main_stack_is_alive_from_its_red_zone_on)
{
	_cleanup_(process_deinit) struct process process;

	process_init(&process);
	add_thread(&process, 11, 0x1234, 0);
	add_thread(&process, 12, MAIN + 0x4000, 0);
	process_open(&process);
	assert_int_equal(process.program->stack_count, 1);
	assert_stack(&process, MAIN, STACK_MAIN, MAIN + 0x4000 - RED_ZONE, MAIN + MAIN_SIZE);
	assert_int_equal(process.program->stacks[0].thread, 1);
	assert_null(program_find_stack(process.program, MAIN + MAIN_SIZE));
}

TEST(red_zone_may_begin_below_the_stack)
{
	_cleanup_(process_deinit) struct process process;

	process_init(&process);
	add_thread(&process, 11, MAIN + RED_ZONE - 8, 0);
	process_open(&process);
	assert_stack(&process, MAIN, STACK_MAIN, MAIN, MAIN + MAIN_SIZE);
}

/* It may return to any of it, from a signal stack or a coroutine's. */
TEST(stack_that_its_thread_has_left_is_alive)
{
	_cleanup_(process_deinit) struct process process;

	process_init(&process);
	add_block(&process, BLOCK, 12);
	add_thread(&process, 11, DATA + 0x500, 0);
	add_thread(&process, 12, DATA + 0x800, DESCRIPTOR);
	process_open(&process);
	assert_stack(&process, MAIN, STACK_MAIN, MAIN, MAIN + MAIN_SIZE);
	assert_stack(&process, BLOCK, STACK_THREAD, BLOCK, BLOCK + SIZE);
}

TEST(descriptor_tells_where_a_thread_s_stack_is)
{
	_cleanup_(process_deinit) struct process process;
	const struct stack *stack;

	process_init(&process);
	add_block(&process, BLOCK, 12);
	add_thread(&process, 11, MAIN + 0x4000, 0);
	add_thread(&process, 12, BLOCK + 0x10000, DESCRIPTOR);
	process_open(&process);
	assert_int_equal(process.program->stack_count, 2);
	assert_stack(&process, BLOCK, STACK_THREAD, BLOCK + 0x10000 - RED_ZONE, BLOCK + SIZE);
	stack = &process.program->stacks[0];
	assert_int_equal(stack->start, BLOCK);
	assert_int_equal(stack->end, BLOCK + SIZE);
	assert_int_equal(stack->thread, 1);
	assert_int_equal(process.program->threads[1].stack, 0);
	assert_int_equal(process.program->threads[0].stack, 1);
}

/* A thread pointer that leads to anything else tells nothing. */
TEST(memory_without_a_descriptor_is_no_stack)
{
	_cleanup_(process_deinit) struct process process;

	process_init(&process);
	add_block(&process, BLOCK, 12);
	core_set(&process.core, DESCRIPTOR + 16, 0);
	add_thread(&process, 12, BLOCK + 0x10000, DESCRIPTOR);
	add_thread(&process, 13, BLOCK + 0x10000, BLOCK + SIZE - 8);
	process_open(&process);
	assert_null(program_find_stack(process.program, BLOCK + 0x10000));
}

/* Control blocks of running and ended threads, which no allocator may take as its own. */
TEST(control_blocks_of_threads_are_their_memory)
{
	static const uint64_t ended = BLOCK + 2 * SIZE, distance = DESCRIPTOR - BLOCK;
	_cleanup_(process_deinit) struct process process;
	const struct memory_range *memory;

	process_init(&process);
	add_block(&process, BLOCK, 12);
	add_block(&process, ended, -1);
	link_block(&process, ended);
	add_thread(&process, 12, BLOCK + 0x4000, DESCRIPTOR);
	process_open(&process);
	memory = process.program->thread_memory;
	assert_int_equal(process.program->thread_memory_count, 2);
	assert_int_equal(memory[0].start, DESCRIPTOR);
	assert_true(memory[0].end > DESCRIPTOR + 0x200);
	assert_int_equal(memory[1].start, ended + distance);
}

TEST(of_a_joined_thread_only_its_tls_table_is_alive)
{
	_cleanup_(process_deinit) struct process process;

	process_init(&process);
	add_thread(&process, 11, MAIN + 0x4000, 0);
	add_block(&process, BLOCK, -1);
	link_block(&process, BLOCK);
	process_open(&process);
	assert_stack(&process, BLOCK, STACK_FINISHED, DESCRIPTOR, DESCRIPTOR + 16);
	assert_int_equal(program_find_stack(process.program, BLOCK)->thread, NO_THREAD);
}

/* In glibc 2.43, of which the thread's number is the same as before. */
TEST(thread_whose_descriptor_was_freed_is_over)
{
	_cleanup_(process_deinit) struct process process;

	process_init(&process);
	add_thread(&process, 11, MAIN + 0x4000, 0);
	add_block(&process, BLOCK, 0);
	core_set(&process.core, DESCRIPTOR + IN_PTHREAD_CANCEL, EXITING | 0x20);
	link_block(&process, BLOCK);
	process_open(&process);
	assert_stack(&process, BLOCK, STACK_FINISHED, DESCRIPTOR, DESCRIPTOR + 16);
}

TEST(thread_that_can_be_joined_keeps_its_descriptor)
{
	_cleanup_(process_deinit) struct process process;

	process_init(&process);
	add_thread(&process, 11, MAIN + 0x4000, 0);
	add_block(&process, BLOCK, 0);
	link_block(&process, BLOCK);
	process_open(&process);
	assert_stack(&process, BLOCK, STACK_UNJOINED, DESCRIPTOR, BLOCK + SIZE);
}

TEST(detached_thread_that_has_ended_is_over)
{
	_cleanup_(process_deinit) struct process process;

	process_init(&process);
	add_thread(&process, 11, MAIN + 0x4000, 0);
	add_block(&process, BLOCK, 0);
	core_set(&process.core, DESCRIPTOR + IN_PTHREAD_JOIN, DESCRIPTOR);
	link_block(&process, BLOCK);
	process_open(&process);
	assert_stack(&process, BLOCK, STACK_FINISHED, DESCRIPTOR, DESCRIPTOR + 16);
}

/* The kernel clears the number a moment later than the thread's last instruction. */
TEST(thread_that_has_ended_is_over_though_it_has_its_number)
{
	const uint64_t running = BLOCK + 0x100000;
	_cleanup_(process_deinit) struct process process;

	process_init(&process);
	add_thread(&process, 11, MAIN + 0x4000, DATA + 0x400);
	add_block(&process, BLOCK, 12);
	core_set(&process.core, DESCRIPTOR + IN_PTHREAD_CANCEL, EXITING | 0x20);
	add_block(&process, running, 13);
	core_set(&process.core, running + (DESCRIPTOR - BLOCK) + IN_PTHREAD_CANCEL, 0);
	link_block(&process, BLOCK);
	link_block(&process, running);
	process_open(&process);
	assert_stack(&process, BLOCK, STACK_FINISHED, DESCRIPTOR, DESCRIPTOR + 16);
	assert_null(program_find_stack(process.program, running));
}

TEST(running_threads_on_the_list_are_not_finished)
{
	const uint64_t second = BLOCK + 0x100000, third = BLOCK + 0x200000;
	_cleanup_(process_deinit) struct process process;

	process_init(&process);
	add_thread(&process, 11, MAIN + 0x4000, 0);
	add_thread(&process, 12, second + 0x10000, second + (DESCRIPTOR - BLOCK));
	add_block(&process, BLOCK, -1);
	add_block(&process, second, 12);
	add_block(&process, third, 0);
	link_block(&process, BLOCK);
	link_block(&process, second);
	link_block(&process, third);
	process_open(&process);
	assert_int_equal(process.program->stack_count, 4);
	assert_stack(&process, BLOCK, STACK_FINISHED, DESCRIPTOR, DESCRIPTOR + 16);
	assert_stack(&process, second, STACK_THREAD, second + 0x10000 - RED_ZONE, second + SIZE);
	assert_stack(&process, third, STACK_UNJOINED, third + (DESCRIPTOR - BLOCK), third + SIZE);
}

/* In the child of a fork, which has one of the threads and all stacks. */
TEST(stack_of_a_thread_that_never_ended_is_alive)
{
	_cleanup_(process_deinit) struct process process;

	process_init(&process);
	add_thread(&process, 11, MAIN + 0x4000, 0);
	add_block(&process, BLOCK, 0);
	core_set(&process.core, DESCRIPTOR + IN_PTHREAD_CANCEL, 2);
	link_block(&process, BLOCK);
	process_open(&process);
	assert_stack(&process, BLOCK, STACK_VANISHED, BLOCK, BLOCK + SIZE);
}

/* As gdb before 15 writes it where it cannot read it. */
TEST(stack_that_is_all_zeros_was_not_read)
{
	_cleanup_(process_deinit) struct process process;

	process_init(&process);
	add_thread(&process, 11, MAIN + 0x4000, 0);
	add_block(&process, BLOCK, 12);
	add_thread(&process, 12, DATA + DATA_SIZE - 0x100, DESCRIPTOR);
	process_open(&process);
	assert_finding(&process.findings, FINDING_INCOMPLETE,
		       "the stack of thread 12 is all zeros in the core");
	assert_null(find_finding(&process.findings, "thread 11"));
}

TEST(stack_may_hold_a_large_array_of_zeros)
{
	_cleanup_(process_deinit) struct process process;

	process_init(&process);
	core_add(&process.core, OWN, OWN_SIZE, RIGHTS_RW);
	core_set(&process.core, OWN + OWN_SIZE - 8, 0x1234);
	add_thread(&process, 11, OWN + 0x100, 0);
	add_block(&process, BLOCK, 12);
	add_thread(&process, 12, BLOCK + GUARD + 0x100, DESCRIPTOR);
	process_open(&process);
	assert_null(find_finding(&process.findings, "thread 11"));
	assert_null(find_finding(&process.findings, "thread 12"));
}

/* glibc's stacks may be one mapping: what is above the block is another's. */
TEST(stack_without_a_thread_control_block_was_not_read)
{
	_cleanup_(process_deinit) struct process process;

	process_init(&process);
	core_add(&process.core, OWN, OWN_SIZE, RIGHTS_RW);
	core_set(&process.core, OWN + OWN_SIZE - 8, 0x1234);
	add_thread(&process, 11, OWN + 0x100, OWN + OWN_SIZE - 0x1000);
	process_open(&process);
	assert_finding(&process.findings, FINDING_INCOMPLETE,
		       "the stack of thread 11 is all zeros in the core");
}

/* Memory that the damage hides stays ordinary memory, all of it a root. */
TEST(broken_list_of_stacks_ends_where_it_is_broken)
{
	const uint64_t second = BLOCK + 0x100000;
	_cleanup_(process_deinit) struct process process;

	process_init(&process);
	add_thread(&process, 11, MAIN + 0x4000, 0);
	add_block(&process, BLOCK, -1);
	add_block(&process, second, -1);
	link_block(&process, BLOCK);
	link_block(&process, second);
	core_set(&process.core, DESCRIPTOR + IN_PTHREAD_LIST + 8, 0x1000);
	process_open(&process);
	assert_non_null(program_find_stack(process.program, second));
	assert_null(program_find_stack(process.program, BLOCK));
}

/* A list that each of its members could be the head of. */
TEST(hostile_list_of_stacks_is_not_walked_from_each)
{
	enum { COUNT = 4000, STRIDE = 768 };
	/* In processor time, which does not depend on other load. */
	static const struct itimerval limit = { .it_value.tv_sec = 5 }, none;
	const uint64_t data = DATA + DATA_SIZE;
	_cleanup_(process_deinit) struct process process;
	struct core *core = &process.core;

	process_init(&process);
	core_add(core, data, (COUNT + 4) * STRIDE, RIGHTS_RW);
	core->files[1].end = data + COUNT * STRIDE;
	for (uint64_t i = 0; i < COUNT; i++) {
		uint64_t descriptor = data + i * STRIDE;
		uint64_t next = data + (i + 1) % COUNT * STRIDE;

		core_set(core, descriptor, descriptor);
		core_set(core, descriptor + 16, descriptor);
		core_set(core, descriptor + IN_PTHREAD_LIST, next + IN_PTHREAD_LIST);
		core_set(core, next + IN_PTHREAD_LIST + 8, descriptor + IN_PTHREAD_LIST);
		core_set(core, descriptor + IN_PTHREAD_TID + 8, descriptor - 0x4000);
		core_set(core, descriptor + IN_PTHREAD_TID + 16, 0x8000);
	}
	setitimer(ITIMER_PROF, &limit, NULL);
	process_open(&process);
	setitimer(ITIMER_PROF, &none, NULL);
	assert_true(process.program->stack_count <= COUNT + 1);
}

/* Without a loader, the lists are in the program's own data, of any size. */
TEST(list_of_stacks_is_found_behind_a_table)
{
	enum { COUNT = 5000 };
	const uint64_t table = DATA + DATA_SIZE, head = table + 8 * COUNT,
		       link = DESCRIPTOR + IN_PTHREAD_LIST;
	_cleanup_(process_deinit) struct process process;
	struct core *core = &process.core;

	process_init(&process);
	core_add(core, table, 0x10000, RIGHTS_RW);
	core->files[1].end = table + 0x10000;
	for (uint64_t i = 0; i < COUNT; i++)
		core_set(core, table + 8 * i, MAIN);
	add_block(&process, BLOCK, -1);
	core_set(core, head, link);
	core_set(core, head + 8, link);
	core_set(core, link, head);
	core_set(core, link + 8, head);
	process_open(&process);
	assert_stack(&process, BLOCK, STACK_FINISHED, DESCRIPTOR, DESCRIPTOR + 16);
}

TEST(module_is_from_its_header_to_its_last_mapping)
{
	_cleanup_(process_deinit) struct process process;
	const struct module *module;

	process_init(&process);
	process_open(&process);
	assert_int_equal(process.program->module_count, 1);
	module = program_find_module(process.program, DATA + 8);
	assert_non_null(module);
	assert_string_equal(module->path, "/lib/libc.so.6");
	assert_int_equal(module->start, LIBRARY);
	assert_int_equal(module->end, DATA + PAGE);
	assert_int_equal(module->bias, LIBRARY - 0x1000);
	assert_null(program_find_module(process.program, DATA + PAGE));
	assert_null(program_find_module(process.program, LIBRARY - 1));
}

/* As Node.js maps its own code once more, to be near to what it compiles. */
TEST(module_ends_where_its_headers_say_it_does)
{
	const uint64_t again = DATA + 0x1000000;
	_cleanup_(process_deinit) struct process process;

	process_init(&process);
	core_add(&process.core, DATA + 0x10000, PAGE, RIGHTS_RW);
	core_add(&process.core, again, PAGE, RIGHT_READ);
	core_add_file(&process.core, again, again + PAGE, PAGE, "/lib/libc.so.6");
	process_open(&process);
	assert_int_equal(process.program->module_count, 1);
	assert_int_equal(process.program->modules[0].end, DATA + PAGE);
	assert_null(program_find_module(process.program, DATA + 0x10000));
	assert_null(program_find_module(process.program, again));
}

/* True if the library has its constants if a page with these rights is absent. */
static bool has_constants_without(unsigned int rights)
{
	const Elf64_Phdr segment = {
		.p_type = PT_LOAD,
		.p_vaddr = 0x1000,
		.p_memsz = DATA + DATA_SIZE + PAGE - LIBRARY,
	};
	_cleanup_(process_deinit) struct process process;
	const struct module *module;

	process_init(&process);
	memcpy(core_at(&process.core, LIBRARY + sizeof(Elf64_Ehdr), sizeof(segment)), &segment,
	       sizeof(segment));
	core_add_file(&process.core, DATA + PAGE, DATA + DATA_SIZE + PAGE, 2 * PAGE,
		      "/lib/libc.so.6");
	core_add_part(&process.core, DATA + DATA_SIZE, PAGE, 0, rights);
	process_open(&process);
	module = &process.program->modules[0];
	assert_int_equal(module->end, DATA + DATA_SIZE + PAGE);
	return module_has_constants(process.image, module);
}

/* The kernel leaves them out of the core. */
TEST(variables_that_nothing_touched_are_no_constants)
{
	assert_true(has_constants_without(RIGHTS_RW));
	assert_false(has_constants_without(RIGHT_READ));
}
