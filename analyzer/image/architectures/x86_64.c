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
	PRESERVED(r15, 15), PRESERVED(r14, 14),	 PRESERVED(r13, 13),  PRESERVED(r12, 12),
	PRESERVED(rbp, 6),  PRESERVED(rbx, 3),	 REGISTER(r11, 11),   REGISTER(r10, 10),
	REGISTER(r9, 9),    REGISTER(r8, 8),	 REGISTER(rax, 0),    REGISTER(rcx, 2),
	REGISTER(rdx, 1),   REGISTER(rsi, 4),	 REGISTER(rdi, 5),    UNNUMBERED(orig_rax),
	REGISTER(rip, 16),  UNNUMBERED(cs),	 UNNUMBERED(eflags),  REGISTER(rsp, 7),
	UNNUMBERED(ss),	    UNNUMBERED(fs_base), UNNUMBERED(gs_base), UNNUMBERED(ds),
	UNNUMBERED(es),	    UNNUMBERED(fs),	 UNNUMBERED(gs),
};

static const struct arch_call calls[] = {
	CALL(read, 0, READ),
	CALL(mmap, 9, MEMORY),
	CALL(mprotect, 10, MEMORY),
	CALL(munmap, 11, MEMORY),
	CALL(brk, 12, MEMORY),
	CALL(pread64, 17, READ),
	CALL(readv, 19, READV),
	CALL(mremap, 25, MEMORY),
	CALL(madvise, 28, MEMORY),
	CALL(recvfrom, 45, READ),
	CALL(recvmsg, 47, RECVMSG),
	CALL(exit, 60, EXIT),
	CALL(kill, 62, KILL),
	CALL(getdents, 78, READ),
	CALL(rt_sigsuspend, 130, SUSPEND),
	CALL(getdents64, 217, READ),
	CALL(exit_group, 231, EXIT),
	CALL(epoll_wait, 232, EVENTS),
	CALL(tgkill, 234, KILL),
	CALL(epoll_pwait, 281, EVENTS),
	CALL(preadv, 295, READV),
	CALL(preadv2, 327, READV),
	CALL(epoll_pwait2, 441, EVENTS),
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
	.register_count = COUNT_OF(registers),
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
	.call_count = COUNT_OF(calls),
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
