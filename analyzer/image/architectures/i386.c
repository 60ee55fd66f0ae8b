/*
 * i386 Linux with glibc: System V ABI, Intel386 supplement; struct user_regs_struct of
 * <sys/user.h> and struct user_desc of <asm/ldt.h>, struct pthread of glibc's nptl/descr.h since
 * 2.4.
 */
#include "analyzer/image/arch.h"

#include <capstone/capstone.h>
#include <elf.h>
#include <string.h>

enum register_number { GS = 10, ORIG_EAX = 11, EIP = 12, ESP = 15 };

static const struct arch_register registers[] = {
	PRESERVED(ebx, 3), REGISTER(ecx, 1),  REGISTER(edx, 2),	  PRESERVED(esi, 6),
	PRESERVED(edi, 7), PRESERVED(ebp, 5), REGISTER(eax, 0),	  UNNUMBERED(ds),
	UNNUMBERED(es),	   UNNUMBERED(fs),    UNNUMBERED(gs),	  UNNUMBERED(orig_eax),
	REGISTER(eip, 8),  UNNUMBERED(cs),    UNNUMBERED(eflags), REGISTER(esp, 4),
	UNNUMBERED(ss),
};

static const struct arch_call calls[] = {
	CALL(exit, 1, EXIT),	     CALL(kill, 37, KILL),
	CALL(brk, 45, MEMORY),	     CALL(mmap, 90, MEMORY),
	CALL(munmap, 91, MEMORY),    CALL(mprotect, 125, MEMORY),
	CALL(mremap, 163, MEMORY),   CALL(rt_sigsuspend, 179, SUSPEND),
	CALL(mmap2, 192, MEMORY),    CALL(madvise, 219, MEMORY),
	CALL(exit_group, 252, EXIT), CALL(tgkill, 270, KILL),
};

/* The base of the segment that gs selects, among those that the thread has of its own. */
static uint64_t find_thread_pointer(const uint64_t *values, const uint8_t *note, size_t size)
{
	struct {
		uint32_t entry, base, limit, flags;
	} segment;

	for (size_t i = 0; size - i >= sizeof(segment); i += sizeof(segment)) {
		memcpy(&segment, note + i, sizeof(segment));
		if (segment.base != 0 && segment.entry == (values[GS] & 0xffff) >> 3)
			return segment.base;
	}
	return 0;
}

const struct arch arch_i386 = {
	.name = "i386",
	.machine = EM_386,
	.class = ELFCLASS32,
	.loader = "ld-linux.so.2",
	.status = { .size = 144, .signal = 12, .thread = 24, .registers = 72 },
	.registers = registers,
	.register_count = COUNT_OF(registers),
	.stack_pointer = ESP,
	.instruction = EIP,
	.system_call = ORIG_EAX,
	.thread_pointer = NOT_A_REGISTER,
	.thread_pointer_note = NT_386_TLS,
	.find_thread_pointer = find_thread_pointer,
	.shown = {
		"eax {eax}  ebx {ebx}  ecx {ecx}  edx {edx}\n"
		"esi {esi}  edi {edi}  ebp {ebp}  esp {esp}\n"
		"eip {eip}  gs {gs}",
	},
	.unwound_count = 9,
	.unwound_return = 8,
	.address_bits = 32,
	.signal_stack_size = 8192,
	.event_size = 12,
	.calls = calls,
	.call_count = COUNT_OF(calls),
	.call_codes = { { 0xcd, 0x80 } }, /* int $0x80 */
	.call_code_count = 1,
	.call_code_size = 2,
	.pthread = { .self = 8, .dtv = 4, .list = 96, .tid = 104, .cancel = 128, .robust = 112 },
	.vectors_note = NT_X86_XSTATE,
	/* Control words; what is reserved, and the header of XSAVE: Intel SDM 1, 13.4. */
	.vectors_head = { { 0, 32 }, { 416, 576 } },
	/* All parameters are on the stack. */
	.parameters = { NOT_A_REGISTER, NOT_A_REGISTER, NOT_A_REGISTER, NOT_A_REGISTER,
			NOT_A_REGISTER, NOT_A_REGISTER },
	.result = 0,
	.frame_pointer = 5,
	.frame_pointer_depth = 8,
	.disassembler = CS_ARCH_X86,
	.disassembler_mode = CS_MODE_32,
};
