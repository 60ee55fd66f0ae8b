/*
 * RISC-V Linux of 64 bits with glibc, LP64D: the psABI of RISC-V (calling convention, DWARF),
 * struct user_regs_struct of Linux's <asm/ptrace.h>, struct pthread of glibc's nptl/descr.h and
 * tcbhead_t of its sysdeps/riscv/nptl/tls.h: it lies below the thread pointer, which is the start
 * of the variables, and struct pthread below that.
 */
#include "analyzer/image/generic_calls.h"

#include <capstone/capstone.h>
#include <elf.h>

enum register_number { PC = 0, SP = 2, TP = 4, A7 = 17 };

enum {
	/* capstone has them from 5.0 on: cs_arch and cs_mode; before, it says that it has not. */
	DISASSEMBLER_RISCV = 15,
	DISASSEMBLER_64 = 1 << 1,
	DISASSEMBLER_COMPRESSED = 1 << 2,
	VECTORS_NOTE = 0x901, /* NT_RISCV_VECTOR of Linux 6.5 */
};

/* x1 to x31 by the names of the calling convention. */
static const struct arch_register registers[] = {
	UNNUMBERED(pc),	   REGISTER(ra, 1),   REGISTER(sp, 2),	  REGISTER(gp, 3),
	REGISTER(tp, 4),   REGISTER(t0, 5),   REGISTER(t1, 6),	  REGISTER(t2, 7),
	PRESERVED(s0, 8),  PRESERVED(s1, 9),  REGISTER(a0, 10),	  REGISTER(a1, 11),
	REGISTER(a2, 12),  REGISTER(a3, 13),  REGISTER(a4, 14),	  REGISTER(a5, 15),
	REGISTER(a6, 16),  REGISTER(a7, 17),  PRESERVED(s2, 18),  PRESERVED(s3, 19),
	PRESERVED(s4, 20), PRESERVED(s5, 21), PRESERVED(s6, 22),  PRESERVED(s7, 23),
	PRESERVED(s8, 24), PRESERVED(s9, 25), PRESERVED(s10, 26), PRESERVED(s11, 27),
	REGISTER(t3, 28),  REGISTER(t4, 29),  REGISTER(t5, 30),	  REGISTER(t6, 31),
};

const struct arch arch_riscv64 = {
	.name = "riscv64",
	.machine = EM_RISCV,
	.class = ELFCLASS64,
	.loader = "ld-linux-riscv64-lp64d.so.1",
	.status = { .size = 376, .signal = 12, .thread = 32, .registers = 112 },
	.registers = registers,
	.register_count = COUNT_OF(registers),
	.stack_pointer = SP,
	.instruction = PC,
	.system_call = A7,
	.calls_by_code = true,
	.thread_pointer = TP,
	.shown = {
		"a0 {a0}  a1 {a1}  a2 {a2}  a3 {a3}\n"
		"a4 {a4}  a5 {a5}  a6 {a6}  a7 {a7}\n"
		"t0 {t0}  t1 {t1}  t2 {t2}  t3 {t3}",
		"t4 {t4}  t5 {t5}  t6 {t6}  s0 {s0}\n"
		"s1 {s1}  s2 {s2}  s3 {s3}  s4 {s4}\n"
		"s5 {s5}  s6 {s6}  s7 {s7}  s8 {s8}",
		"s9 {s9}  s10 {s10}  s11 {s11}  ra {ra}\n"
		"gp {gp}  tp {tp}  sp {sp}  pc {pc}",
	},
	.unwound_count = 32,
	.unwound_return = 1,
	.return_is_register = true,
	.address_bits = 56, /* Sv57; 47 and 38 with Sv48 and Sv39 */
	.signal_stack_size = 8192,
	.event_size = 16,
	.calls = generic_calls,
	.call_count = COUNT_OF(generic_calls),
	.call_codes = { { 0x73, 0x00, 0x00, 0x00 } }, /* ecall */
	.call_code_count = 1,
	.call_code_size = 4,
	.pthread = { .pointer = 1536,
		     .most = 2560,
		     .dtv = -16,
		     .list = 192,
		     .tid = 208,
		     .cancel = 264 },
	.vectors_note = VECTORS_NOTE,
	.parameters = { 10, 11, 12, 13, 14, 15 },
	.result = 10,
	.frame_pointer = 8,
	.disassembler = DISASSEMBLER_RISCV,
	.disassembler_mode = DISASSEMBLER_64 | DISASSEMBLER_COMPRESSED,
};
