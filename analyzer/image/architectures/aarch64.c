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
	{ "x0", 0 },
	{ "x1", 1 },
	{ "x2", 2 },
	{ "x3", 3 },
	{ "x4", 4 },
	{ "x5", 5 },
	{ "x6", 6 },
	{ "x7", 7 },
	{ "x8", 8 },
	{ "x9", 9 },
	{ "x10", 10 },
	{ "x11", 11 },
	{ "x12", 12 },
	{ "x13", 13 },
	{ "x14", 14 },
	{ "x15", 15 },
	{ "x16", 16 },
	{ "x17", 17 },
	{ "x18", 18 },
	{ "x19", 19, true },
	{ "x20", 20, true },
	{ "x21", 21, true },
	{ "x22", 22, true },
	{ "x23", 23, true },
	{ "x24", 24, true },
	{ "x25", 25, true },
	{ "x26", 26, true },
	{ "x27", 27, true },
	{ "x28", 28, true },
	{ "x29", 29, true },
	{ "x30", 30 },
	{ "sp", 31 },
	{ "pc", NOT_A_REGISTER },
	{ "pstate", NOT_A_REGISTER },
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
	.register_count = sizeof(registers) / sizeof(*registers),
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
	.call_count = sizeof(generic_calls) / sizeof(*generic_calls),
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
