/*
 * x86_64's table against the headers of this machine; and a toy processor, to show that the
 * contract is sufficient: its registers are in another order and elsewhere in the note, its thread
 * pointer is in a note of its own, and struct pthread lies below that.
 *
 *	BLOCK               stack pointer      struct pthread   thread pointer
 *	| dead | red zone | frames           | ...            | dtv, 0, variables
 */
#include "analyzer/program/program.h"

#include "tests/analyzer/image/core_builder.h"

#include <stddef.h>
#include <sys/syscall.h>

enum {
	TOY_MACHINE = 0x1234,
	TOY_POINTER_NOTE = 0x777,
	TOY_PTHREAD_SIZE = 1024,
	TOY_RED_ZONE = 512,
	TOY_EXIT = 3,
};

static const struct arch_register toy_registers[] = {
	{ "call", NOT_A_REGISTER },
	{ "place", NOT_A_REGISTER },
	{ "link", 0, true },
	{ "stack", 2, true },
	{ "data", 1 },
};

static const struct arch_call toy_calls[] = { { TOY_EXIT, SYSTEM_CALL_EXIT } };

static const struct arch toy = {
	.name = "toy",
	.machine = TOY_MACHINE,
	.class = ELFCLASS64,
	.loader = "ld-toy.so",
	.status = { .size = 64, .signal = 4, .thread = 0, .registers = 24 },
	.registers = toy_registers,
	.register_count = sizeof(toy_registers) / sizeof(*toy_registers),
	.system_call = 0,
	.instruction = 1,
	.stack_pointer = 3,
	.thread_pointer = NOT_A_REGISTER,
	.thread_pointer_note = TOY_POINTER_NOTE,
	.unwound_count = 3,
	.unwound_return = 0,
	.red_zone = TOY_RED_ZONE,
	.address_bits = 40,
	.signal_stack_size = 4096,
	.calls = toy_calls,
	.call_count = 1,
	.call_codes = { { 0x77 } },
	.call_code_count = 1,
	.call_code_size = 1,
	.pthread = { .pointer = TOY_PTHREAD_SIZE,
		     .variables = 16,
		     .list = 192,
		     .tid = 208,
		     .cancel = 264 },
};

static const struct arch *const toys[] = { &toy, NULL };

static const uint64_t MAIN = 0x1000000, MAIN_SIZE = 0x8000, BLOCK = 0x2000000, SIZE = 0x10000,
		      POINTER = BLOCK + SIZE - 0x100, TABLE = BLOCK + SIZE - 0x40;

static void add_toy_thread(struct core *core, uint32_t id, uint64_t call, uint64_t stack_pointer,
			   uint64_t thread_pointer)
{
	struct {
		uint32_t id, signal;
		uint64_t other[2], registers[5];
	} status = { id, 11, { 0 }, { call, 0x4000, 0x4444, stack_pointer, 0x5555 } };

	core_add_note(core, "CORE", NT_PRSTATUS, &status, sizeof(status));
	core_add_note(core, "LINUX", TOY_POINTER_NOTE, &thread_pointer, sizeof(thread_pointer));
}

static void make_toy_core(struct core *core)
{
	uint64_t pthread = POINTER - TOY_PTHREAD_SIZE;

	core_init(core);
	core->header.e_machine = TOY_MACHINE;
	core_add(core, MAIN, MAIN_SIZE, RIGHTS_RW);
	core_add_auxiliary(core, AT_RANDOM, MAIN + MAIN_SIZE - 0x100);
	core_add(core, BLOCK, SIZE, RIGHTS_RW);
	core_set(core, pthread + toy.pthread.tid, 12);
	core_set(core, pthread + 400, BLOCK);
	core_set(core, pthread + 408, SIZE);
	core_set(core, POINTER, TABLE);
	core_set(core, TABLE - 16, 1);
	core_set(core, TABLE + 16, POINTER + 16);
	add_toy_thread(core, 11, UINT64_MAX, MAIN + 0x4000, 0);
	add_toy_thread(core, 12, TOY_EXIT, BLOCK + 0x3000, POINTER);
	core_write_file(core);
}

TEST(toy_threads_have_their_registers_and_stacks)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;
	_cleanup_(program_destroy) struct program *program = NULL;
	const struct thread *thread;
	const struct stack *stack;

	make_toy_core(&core);
	assert_no_error(image_open_with(core.path, &(struct image_options){ .architectures = toys },
					&findings, &image));
	assert_ptr_equal(image->arch, &toy);
	assert_no_error(program_create(image, &findings, &program));
	assert_int_equal(program->thread_count, 2);
	assert_int_equal(program->stack_count, 2);
	thread = &program->threads[0];
	assert_int_equal(thread->id, 11);
	assert_int_equal(thread->state->signal, 11);
	assert_int_equal(thread->instruction, 0x4000);
	assert_int_equal(thread->registers[4], 0x5555);
	assert_int_equal(thread->system_call, SYSTEM_CALL_NONE);
	assert_int_equal(thread->stack_pointer, MAIN + 0x4000);
	stack = &program->stacks[thread->stack];
	assert_int_equal(stack->kind, STACK_MAIN);
	assert_int_equal(stack->live, MAIN + 0x4000 - TOY_RED_ZONE);
	thread = &program->threads[1];
	assert_int_equal(thread->system_call, SYSTEM_CALL_EXIT);
	assert_int_equal(thread->thread_pointer, POINTER);
	assert_int_equal(thread->pointer_source, POINTER_TOLD);
	stack = &program->stacks[thread->stack];
	assert_int_equal(stack->kind, STACK_THREAD);
	assert_int_equal(stack->start, BLOCK);
	assert_int_equal(stack->end, BLOCK + SIZE);
	assert_int_equal(stack->live, BLOCK + 0x3000 - TOY_RED_ZONE);
}

/* The architecture of that machine. */
static const struct arch *find_arch(unsigned int machine)
{
	for (size_t i = 0; architectures[i]; i++)
		if (architectures[i]->machine == machine)
			return architectures[i];
	fail_msg("nothing describes machine %u", machine);
	return NULL;
}

enum { SVC_0 = 0xd4000001 };

/* As the kernel and qemu have it: its registers, and a note of its thread pointer if it needs one.
 */
static void add_thread(struct core *core, const struct arch *arch, uint32_t id, uint64_t place,
		       uint64_t call, uint64_t thread_pointer)
{
	uint64_t registers[MOST_REGISTERS] = { 0 };
	uint8_t status[512] = { 0 };
	uint16_t signal = 6;

	registers[arch->instruction] = place;
	registers[arch->stack_pointer] = BLOCK + 0x3000;
	registers[arch->system_call] = call;
	if (arch->thread_pointer != NOT_A_REGISTER && thread_pointer)
		registers[arch->thread_pointer] = thread_pointer + arch->thread_pointer_bias;
	memcpy(status + arch->status.signal, &signal, sizeof(signal));
	memcpy(status + arch->status.thread, &id, sizeof(id));
	memcpy(status + arch->status.registers, registers, arch->register_count * sizeof(uint64_t));
	core_add_note(core, "CORE", NT_PRSTATUS, status, arch->status.size);
	if (arch->thread_pointer == NOT_A_REGISTER)
		core_add_note(core, "LINUX", arch->thread_pointer_note, &thread_pointer,
			      sizeof(thread_pointer));
}

/*
 * A thread that is to call again stands at the instruction that calls, another one that waits
 * behind it.
 */
static void check_threads(unsigned int machine, uint32_t instruction, uint64_t exit_group,
			  uint16_t distance)
{
	static const uint64_t CODE = 0x400000;
	const uint64_t pthread = POINTER - distance;
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;
	_cleanup_(program_destroy) struct program *program = NULL;
	const struct arch *arch = find_arch(machine);
	static const enum system_call calls[] = { SYSTEM_CALL_EXIT, SYSTEM_CALL_EXIT,
						  SYSTEM_CALL_NONE };

	core_init(&core);
	core.header.e_machine = (Elf64_Half)machine;
	core_add(&core, CODE, PAGE, RIGHT_READ | RIGHT_EXECUTE);
	core_set(&core, CODE + 16, instruction);
	core_add(&core, BLOCK, SIZE, RIGHTS_RW);
	core_set(&core, POINTER + (uint64_t)arch->pthread.dtv, TABLE);
	core_set(&core, TABLE - 16, 1);
	core_set(&core, TABLE + 16, POINTER + arch->pthread.variables);
	core_set(&core, pthread + arch->pthread.tid, 12);
	core_set(&core, pthread + arch->pthread.list, MAIN);
	core_set(&core, pthread + 400, BLOCK);
	core_set(&core, pthread + 408, SIZE);
	core_add(&core, MAIN, MAIN_SIZE, RIGHTS_RW);
	core_set(&core, MAIN + 8, pthread + arch->pthread.list);
	add_thread(&core, arch, 11, CODE + 16, exit_group, 0);
	add_thread(&core, arch, 12, CODE + 20, exit_group, POINTER);
	add_thread(&core, arch, 13, CODE + 24, exit_group, 0);
	core_write_file(&core);
	assert_no_error(image_open(core.path, &findings, &image));
	assert_ptr_equal(image->arch, arch);
	assert_no_error(program_create(image, &findings, &program));
	assert_int_equal(program->thread_count, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(program->threads[i].system_call, calls[i]);
	assert_int_equal(program->threads[1].pointer_source, POINTER_TOLD);
	assert_int_equal(program->threads[1].thread_pointer, POINTER);
	assert_int_equal(program->pthread_pointer, distance);
	assert_int_equal(program->stack_count, 1);
	assert_int_equal(program->stacks[0].start, BLOCK);
	assert_int_equal(program->stacks[0].live, BLOCK + 0x3000 - arch->red_zone);
}

TEST(threads_of_aarch64_have_their_calls_and_pointers)
{
	check_threads(EM_AARCH64, SVC_0, 94, 1824);
}

TEST(threads_of_riscv64_have_their_calls_and_pointers)
{
	check_threads(EM_RISCV, 0x73, 94, 1872);
}

TEST(threads_of_ppc64le_have_their_calls_and_pointers)
{
	check_threads(EM_PPC64, 0x44000002, 234, 1984);
	check_threads(EM_PPC64, 0x44000001, 234, 1984);
}

enum { AUTDA_X0_X1 = 0xdac11820 };

/* The bits that are no part of a pointer to data, and to code, of a core with such notes and code.
 */
static void check_signatures(const uint64_t masks[2], uint32_t instruction, bool has_code,
			     uint64_t data, uint64_t code)
{
	static const uint64_t CODE = 0x400000, STACK = UINT64_C(0xfffffffdf000);
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;
	_cleanup_(program_destroy) struct program *program = NULL;

	core_init(&core);
	core.header.e_machine = EM_AARCH64;
	if (has_code) {
		core_add(&core, CODE, PAGE, RIGHT_READ | RIGHT_EXECUTE);
		core_set(&core, CODE + 16, instruction);
	} else {
		core_add_part(&core, CODE, PAGE, 0, RIGHT_READ | RIGHT_EXECUTE);
	}
	core_add(&core, STACK, PAGE, RIGHTS_RW);
	add_thread(&core, find_arch(EM_AARCH64), 11, CODE + 16, 0, 0);
	if (masks)
		core_add_note(&core, "LINUX", NT_ARM_PAC_MASK, masks, 2 * sizeof(*masks));
	core_write_file(&core);
	assert_no_error(image_open(core.path, &findings, &image));
	assert_no_error(program_create(image, &findings, &program));
	assert_int_equal(program->ignored_bits, data);
	assert_int_equal(program->code_signature, code);
	if (!has_code && masks)
		assert_finding(&findings, FINDING_NOTE,
			       "pointers may be signed here, as not all code is at hand to say");
	else
		assert_int_equal(findings.count, 0);
}

TEST(signatures_of_aarch64_are_where_the_core_says)
{
	static const uint64_t TAGS = UINT64_C(0xff) << 56, ABOVE = UINT64_MAX << 48;
	static const uint64_t said[] = { UINT64_C(0x7f) << 48, UINT64_C(0x70) << 48 };
	static const uint64_t all[] = { UINT64_MAX, UINT64_MAX };

	check_signatures(said, AUTDA_X0_X1, true, TAGS | said[0], said[1]);
	check_signatures(said, SVC_0, true, TAGS, said[1]);
	check_signatures(said, 0, false, TAGS | said[0], said[1]);
	check_signatures(all, AUTDA_X0_X1, true, ABOVE, ABOVE);
	check_signatures(NULL, AUTDA_X0_X1, true, ABOVE, ABOVE);
	check_signatures(NULL, 0, false, TAGS, ABOVE);
}

TEST(a_machine_that_nothing_describes_is_refused)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	struct image *image;
	char message[128];

	make_toy_core(&core);
	snprintf(
		message, sizeof(message),
		"%s: is a core of machine 4660; only aarch64, i386, ppc64le, riscv64 and x86-64 are supported",
		core.path);
	assert_error(image_open(core.path, &findings, &image), ERROR_NOT_SUPPORTED, message);
}

TEST(x86_64_has_the_layout_of_its_headers)
{
	const struct arch *arch = find_arch(EM_X86_64);
#define PLACE(name)                                                \
	{                                                          \
#name, offsetof(struct user_regs_struct, name) / 8 \
	}
	static const struct {
		const char *name;
		size_t place;
	} places[] = {
		PLACE(r15),    PLACE(r14), PLACE(r13), PLACE(r12),	PLACE(rbp),	PLACE(rbx),
		PLACE(r11),    PLACE(r10), PLACE(r9),  PLACE(r8),	PLACE(rax),	PLACE(rcx),
		PLACE(rdx),    PLACE(rsi), PLACE(rdi), PLACE(orig_rax), PLACE(rip),	PLACE(cs),
		PLACE(eflags), PLACE(rsp), PLACE(ss),  PLACE(fs_base),	PLACE(gs_base), PLACE(ds),
		PLACE(es),     PLACE(fs),  PLACE(gs),
	};
	static const struct {
		uint64_t number;
		enum system_call call;
	} calls[] = {
		{ SYS_brk, SYSTEM_CALL_MEMORY },
		{ SYS_mmap, SYSTEM_CALL_MEMORY },
		{ SYS_munmap, SYSTEM_CALL_MEMORY },
		{ SYS_mremap, SYSTEM_CALL_MEMORY },
		{ SYS_mprotect, SYSTEM_CALL_MEMORY },
		{ SYS_madvise, SYSTEM_CALL_MEMORY },
		{ SYS_exit, SYSTEM_CALL_EXIT },
		{ SYS_exit_group, SYSTEM_CALL_EXIT },
		{ SYS_read, SYSTEM_CALL_READ },
		{ SYS_recvfrom, SYSTEM_CALL_READ },
		{ SYS_pread64, SYSTEM_CALL_READ },
		{ SYS_getdents64, SYSTEM_CALL_READ },
		{ SYS_readv, SYSTEM_CALL_READV },
		{ SYS_preadv, SYSTEM_CALL_READV },
		{ SYS_recvmsg, SYSTEM_CALL_RECVMSG },
		{ SYS_epoll_pwait, SYSTEM_CALL_EVENTS },
		{ SYS_kill, SYSTEM_CALL_KILL },
		{ SYS_tgkill, SYSTEM_CALL_KILL },
		{ SYS_rt_sigsuspend, SYSTEM_CALL_SUSPEND },
		{ SYS_getpid, SYSTEM_CALL_OTHER },
		{ UINT64_MAX, SYSTEM_CALL_NONE },
	};

	assert_int_equal(arch->status.size, sizeof(struct elf_prstatus));
	assert_int_equal(arch->status.signal, offsetof(struct elf_prstatus, pr_cursig));
	assert_int_equal(arch->status.thread, offsetof(struct elf_prstatus, pr_pid));
	assert_int_equal(arch->status.registers, offsetof(struct elf_prstatus, pr_reg));
	assert_int_equal(arch->register_count, sizeof(places) / sizeof(*places));
	for (size_t i = 0; i < arch->register_count; i++)
		assert_string_equal(arch->registers[places[i].place].name, places[i].name);
	assert_string_equal(arch->registers[arch->stack_pointer].name, "rsp");
	assert_string_equal(arch->registers[arch->instruction].name, "rip");
	assert_string_equal(arch->registers[arch->system_call].name, "orig_rax");
	assert_string_equal(arch->registers[arch->thread_pointer].name, "fs_base");
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		assert_int_equal(arch_system_call(arch, calls[i].number), calls[i].call);
}
