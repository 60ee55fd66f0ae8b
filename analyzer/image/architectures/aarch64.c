/*
 * AArch64 Linux with glibc, little-endian: AAPCS64, DWARF for the Arm 64-bit Architecture
 * (AADWARF64), struct user_pt_regs of Linux's <asm/ptrace.h>, struct pthread of glibc's
 * nptl/descr.h. Its size, by which it lies below the thread pointer, is 1792 bytes in 2.31, 1856 in
 * 2.36, 1824 in 2.41 and 2.43.
 */
#include "analyzer/image/generic_calls.h"

#include <capstone/capstone.h>
#include <elf.h>

enum register_number { X8 = 8, SP = 31, PC = 32 };

static const struct arch_register registers[] = {
	REGISTER(x0, 0),    REGISTER(x1, 1),	REGISTER(x2, 2),    REGISTER(x3, 3),
	REGISTER(x4, 4),    REGISTER(x5, 5),	REGISTER(x6, 6),    REGISTER(x7, 7),
	REGISTER(x8, 8),    REGISTER(x9, 9),	REGISTER(x10, 10),  REGISTER(x11, 11),
	REGISTER(x12, 12),  REGISTER(x13, 13),	REGISTER(x14, 14),  REGISTER(x15, 15),
	REGISTER(x16, 16),  REGISTER(x17, 17),	REGISTER(x18, 18),  PRESERVED(x19, 19),
	PRESERVED(x20, 20), PRESERVED(x21, 21), PRESERVED(x22, 22), PRESERVED(x23, 23),
	PRESERVED(x24, 24), PRESERVED(x25, 25), PRESERVED(x26, 26), PRESERVED(x27, 27),
	PRESERVED(x28, 28), PRESERVED(x29, 29), REGISTER(x30, 30),  REGISTER(sp, 31),
	UNNUMBERED(pc),	    UNNUMBERED(pstate),
};

/* AUTDA, AUTDB, AUTDZA and AUTDZB; constants amid code look like LDRAA too often. */
static bool takes_signed_data(uint32_t instruction)
{
	return (instruction & 0xffffd800) == 0xdac11800;
}

const struct arch arch_aarch64 = {
	.name = "aarch64",
	.machine = EM_AARCH64,
	.class = ELFCLASS64,
	.loader = "ld-linux-aarch64.so.1",
	.status = { .size = 392, .signal = 12, .thread = 32, .registers = 112 },
	.registers = registers,
	.register_count = COUNT_OF(registers),
	.stack_pointer = SP,
	.instruction = PC,
	.system_call = X8,
	.calls_by_code = true,
	.thread_pointer = NOT_A_REGISTER,
	.thread_pointer_note = NT_ARM_TLS,
	.shown = {
		"x0 {x0}  x1 {x1}  x2 {x2}  x3 {x3}\n"
		"x4 {x4}  x5 {x5}  x6 {x6}  x7 {x7}\n"
		"x8 {x8}  x9 {x9}  x10 {x10}  x11 {x11}",
		"x12 {x12}  x13 {x13}  x14 {x14}  x15 {x15}\n"
		"x16 {x16}  x17 {x17}  x18 {x18}  x19 {x19}\n"
		"x20 {x20}  x21 {x21}  x22 {x22}  x23 {x23}",
		"x24 {x24}  x25 {x25}  x26 {x26}  x27 {x27}\n"
		"x28 {x28}  x29 {x29}  x30 {x30}\n"
		"sp {sp}  pc {pc}",
	},
	.unwound_count = 32,
	.unwound_return = 30,
	.return_is_register = true,
	.signs_returns = true,
	.signature_note = NT_ARM_PAC_MASK,
	.takes_signed_data = takes_signed_data,
	.address_bits = 52,
	.tag_bits = UINT64_C(0xff) << 56, /* TBI; MTE uses four of them */
	.signal_stack_size = 16384,
	.event_size = 16,
	.calls = generic_calls,
	.call_count = COUNT_OF(generic_calls),
	.call_codes = { { 0x01, 0x00, 0x00, 0xd4 } }, /* svc #0 */
	.call_code_count = 1,
	.call_code_size = 4,
	.pthread = { .pointer = 1536,
		     .most = 2560,
		     .variables = 16,
		     .list = 192,
		     .tid = 208,
		     .cancel = 264 },
	.vectors_note = NT_ARM_SVE,
	.parameters = { 0, 1, 2, 3, 4, 5 },
	.result = 0,
	.frame_pointer = 29,
	.disassembler = CS_ARCH_ARM64,
	.disassembler_mode = CS_MODE_LITTLE_ENDIAN,
};
