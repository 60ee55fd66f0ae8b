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
	{ 0, SYSTEM_CALL_READ },      /* read */
	{ 9, SYSTEM_CALL_MEMORY },    /* mmap */
	{ 10, SYSTEM_CALL_MEMORY },   /* mprotect */
	{ 11, SYSTEM_CALL_MEMORY },   /* munmap */
	{ 12, SYSTEM_CALL_MEMORY },   /* brk */
	{ 17, SYSTEM_CALL_READ },     /* pread64 */
	{ 19, SYSTEM_CALL_READV },    /* readv */
	{ 25, SYSTEM_CALL_MEMORY },   /* mremap */
	{ 28, SYSTEM_CALL_MEMORY },   /* madvise */
	{ 45, SYSTEM_CALL_READ },     /* recvfrom */
	{ 47, SYSTEM_CALL_RECVMSG },  /* recvmsg */
	{ 60, SYSTEM_CALL_EXIT },     /* exit */
	{ 78, SYSTEM_CALL_READ },     /* getdents */
	{ 130, SYSTEM_CALL_SUSPEND }, /* rt_sigsuspend */
	{ 217, SYSTEM_CALL_READ },    /* getdents64 */
	{ 231, SYSTEM_CALL_EXIT },    /* exit_group */
	{ 232, SYSTEM_CALL_EVENTS },  /* epoll_wait */
	{ 234, SYSTEM_CALL_TGKILL },  /* tgkill */
	{ 281, SYSTEM_CALL_EVENTS },  /* epoll_pwait */
	{ 295, SYSTEM_CALL_READV },   /* preadv */
	{ 327, SYSTEM_CALL_READV },   /* preadv2 */
	{ 441, SYSTEM_CALL_EVENTS },  /* epoll_pwait2 */
};

/*
 * Offsets of the upper parts of vector registers in the extended state (Intel SDM, volume 1,
 * chapter 13). Those of AVX-512 depend on the processor and follow from the size of the whole.
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

/* Indexed by DWARF numbers, each with its parts. */
static uint8_t disassembled(unsigned int number)
{
	static const uint16_t names[][5] = {
		{ X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL, X86_REG_AH },
		{ X86_REG_RDX, X86_REG_EDX, X86_REG_DX, X86_REG_DL, X86_REG_DH },
		{ X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL, X86_REG_CH },
		{ X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL, X86_REG_BH },
		{ X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL },
		{ X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL },
		{ X86_REG_RBP, X86_REG_EBP, X86_REG_BP, X86_REG_BPL },
		{ X86_REG_RSP, X86_REG_ESP, X86_REG_SP, X86_REG_SPL },
		{ X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B },
		{ X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B },
		{ X86_REG_R10, X86_REG_R10D, X86_REG_R10W, X86_REG_R10B },
		{ X86_REG_R11, X86_REG_R11D, X86_REG_R11W, X86_REG_R11B },
		{ X86_REG_R12, X86_REG_R12D, X86_REG_R12W, X86_REG_R12B },
		{ X86_REG_R13, X86_REG_R13D, X86_REG_R13W, X86_REG_R13B },
		{ X86_REG_R14, X86_REG_R14D, X86_REG_R14W, X86_REG_R14B },
		{ X86_REG_R15, X86_REG_R15D, X86_REG_R15W, X86_REG_R15B },
		{ X86_REG_RIP, X86_REG_EIP, X86_REG_IP },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		for (size_t j = 0; j < sizeof(*names) / sizeof(**names); j++)
			if (names[i][j] == number && number != X86_REG_INVALID)
				return (uint8_t)i;
	return NOT_A_REGISTER;
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
	.event_size = 12,
	.calls = calls,
	.call_count = sizeof(calls) / sizeof(*calls),
	.call_codes = { { 0x0f, 0x05 } }, /* syscall */
	.call_code_count = 1,
	.call_code_size = 2,
	.pthread = { .self = 16, .dtv = 8, .list = 704, .tid = 720, .cancel = 776 },
	.vectors_note = NT_X86_XSTATE,
	/* Control words; what is reserved, and the header of XSAVE: Intel SDM 1, 13.4. */
	.vectors_head = { { 0, 32 }, { 416, 576 } },
	.read_vector = read_vector,
	.parameters = { 5, 4, 1, 2, 8, 9 },
	.result = 0,
	.frame_pointer = 6,
	.frame_pointer_depth = 16,
	.disassembler = CS_ARCH_X86,
	.disassembler_mode = CS_MODE_64,
	.disassembled = disassembled,
};
