/*
 * x86-64 Linux with glibc: AMD64 ABI (psABI 1.0, 3.2 and 3.7), struct user_regs_struct of
 * <sys/user.h>, struct pthread of glibc's nptl/descr.h since 2.4.
 */
#include "analyzer/image/arch.h"

#include <capstone/capstone.h>
#include <elf.h>
#include <string.h>

enum register_number { RIP = 16, ORIG_RAX = 15, RSP = 19, FS_BASE = 21 };

static const struct arch_register registers[] = {
	{ "r15", 15, true },
	{ "r14", 14, true },
	{ "r13", 13, true },
	{ "r12", 12, true },
	{ "rbp", 6, true },
	{ "rbx", 3, true },
	{ "r11", 11 },
	{ "r10", 10 },
	{ "r9", 9 },
	{ "r8", 8 },
	{ "rax", 0 },
	{ "rcx", 2 },
	{ "rdx", 1 },
	{ "rsi", 4 },
	{ "rdi", 5 },
	{ "orig_rax", NOT_A_REGISTER },
	{ "rip", 16 },
	{ "cs", NOT_A_REGISTER },
	{ "eflags", NOT_A_REGISTER },
	{ "rsp", 7 },
	{ "ss", NOT_A_REGISTER },
	{ "fs_base", NOT_A_REGISTER },
	{ "gs_base", NOT_A_REGISTER },
	{ "ds", NOT_A_REGISTER },
	{ "es", NOT_A_REGISTER },
	{ "fs", NOT_A_REGISTER },
	{ "gs", NOT_A_REGISTER },
};

static const struct arch_call calls[] = {
	{ 9, SYSTEM_CALL_MEMORY },    /* mmap */
	{ 10, SYSTEM_CALL_MEMORY },   /* mprotect */
	{ 11, SYSTEM_CALL_MEMORY },   /* munmap */
	{ 12, SYSTEM_CALL_MEMORY },   /* brk */
	{ 25, SYSTEM_CALL_MEMORY },   /* mremap */
	{ 28, SYSTEM_CALL_MEMORY },   /* madvise */
	{ 60, SYSTEM_CALL_EXIT },     /* exit */
	{ 130, SYSTEM_CALL_SUSPEND }, /* rt_sigsuspend */
	{ 231, SYSTEM_CALL_EXIT },    /* exit_group */
	{ 234, SYSTEM_CALL_TGKILL },  /* tgkill */
};

/*
 * Where the extended state keeps the upper parts of vector registers (Intel SDM, volume 1, chapter
 * 13). Those of AVX-512 depend on the processor and follow from the size of the whole.
 */
enum {
	VECTORS = 16,
	VECTOR_LOW = 160,  /* xmm0 to xmm15 */
	VECTOR_HIGH = 576, /* upper halves of ymm0 to ymm15 */
};

static const struct {
	size_t least_size;
	size_t high_256; /* upper halves of zmm0 to zmm15 */
} layouts[] = {
	{ 2688, 1152 }, /* Intel, with room for MPX */
	{ 2432, 896 },	/* AMD, without */
	{ 832, 0 },	/* AVX only */
};

static size_t read_vector(const uint8_t *note, size_t size, size_t number, uint8_t ret[VECTOR_SIZE])
{
	enum { LAYOUTS = sizeof(layouts) / sizeof(*layouts) };
	size_t i = 0;

	while (i < LAYOUTS && size < layouts[i].least_size)
		i++;
	if (i == LAYOUTS || number >= VECTORS)
		return 0;
	memcpy(ret, note + VECTOR_LOW + 16 * number, 16);
	memcpy(ret + 16, note + VECTOR_HIGH + 16 * number, 16);
	if (!layouts[i].high_256)
		return 32;
	memcpy(ret + 32, note + layouts[i].high_256 + 32 * number, 32);
	return 64;
}

const struct arch arch_x86_64 = {
	.name = "x86-64",
	.machine = EM_X86_64,
	.class = ELFCLASS64,
	.loader = "ld-linux-x86-64.so.2",
	.status = { .size = 336, .signal = 12, .thread = 32, .registers = 112 },
	.registers = registers,
	.register_count = sizeof(registers) / sizeof(*registers),
	.stack_pointer = RSP,
	.instruction = RIP,
	.system_call = ORIG_RAX,
	.thread_pointer = FS_BASE,
	.shown = {
		"rax {rax}  rbx {rbx}  rcx {rcx}  rdx {rdx}\n"
		"rsi {rsi}  rdi {rdi}  rbp {rbp}  rsp {rsp}",
		"r8 {r8}  r9 {r9}  r10 {r10}  r11 {r11}\n"
		"r12 {r12}  r13 {r13}  r14 {r14}  r15 {r15}\n"
		"rip {rip}  fs_base {fs_base}",
	},
	.unwound_count = 17,
	.unwound_return = 16,
	.red_zone = 128,
	.address_bits = 47,
	.signal_stack_size = 8192,
	.calls = calls,
	.call_count = sizeof(calls) / sizeof(*calls),
	.call_code = { 0x0f, 0x05 }, /* syscall */
	.call_code_size = 2,
	.pthread = { .self = 16, .dtv = 8, .list = 704, .tid = 720, .cancel = 776 },
	.vectors_note = NT_X86_XSTATE,
	.read_vector = read_vector,
	.disassembler = CS_ARCH_X86,
	.disassembler_mode = CS_MODE_64,
};
