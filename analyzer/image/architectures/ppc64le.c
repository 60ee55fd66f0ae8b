/*
 * Little-endian PowerPC Linux of 64 bits with glibc: the ELFv2 ABI (Power Architecture 64-Bit ELF
 * V2 ABI Specification 1.5), struct pt_regs of Linux's <asm/ptrace.h>, struct pthread of glibc's
 * nptl/descr.h and tcbhead_t of its sysdeps/powerpc/nptl/tls.h: that ends with the table of
 * thread-local variables, which follow, and struct pthread lies below it. The register that is the
 * thread pointer points 0x7000 bytes behind its end.
 *
 * r2 points 0x8000 bytes behind the start of a module's .got, which is in the heap where that
 * follows a small program; calls to other modules save it in their frame.
 *
 * Of the vector registers, the core has a note for the upper 32 (VMX) and one for each half of the
 * lower: only the first is read.
 */
#include "analyzer/image/arch.h"

#include <capstone/capstone.h>
#include <elf.h>

enum register_number { R0 = 0, R1 = 1, R2 = 2, R13 = 13, NIP = 32 };

enum {
	LINK = 32,	  /* the link register, behind those with DWARF numbers of their own */
	LINK_COLUMN = 65, /* its DWARF number */
};

static const struct arch_register registers[] = {
	REGISTER(r0, 0),    REGISTER(r1, 1),	REGISTER(r2, 2),     REGISTER(r3, 3),
	REGISTER(r4, 4),    REGISTER(r5, 5),	REGISTER(r6, 6),     REGISTER(r7, 7),
	REGISTER(r8, 8),    REGISTER(r9, 9),	REGISTER(r10, 10),   REGISTER(r11, 11),
	REGISTER(r12, 12),  REGISTER(r13, 13),	PRESERVED(r14, 14),  PRESERVED(r15, 15),
	PRESERVED(r16, 16), PRESERVED(r17, 17), PRESERVED(r18, 18),  PRESERVED(r19, 19),
	PRESERVED(r20, 20), PRESERVED(r21, 21), PRESERVED(r22, 22),  PRESERVED(r23, 23),
	PRESERVED(r24, 24), PRESERVED(r25, 25), PRESERVED(r26, 26),  PRESERVED(r27, 27),
	PRESERVED(r28, 28), PRESERVED(r29, 29), PRESERVED(r30, 30),  PRESERVED(r31, 31),
	UNNUMBERED(nip),    UNNUMBERED(msr),	UNNUMBERED(orig_r3), UNNUMBERED(ctr),
	REGISTER(lr, LINK), UNNUMBERED(xer),	UNNUMBERED(cr),
};

static const struct arch_call calls[] = {
	CALL(exit, 1, EXIT),
	CALL(read, 3, READ),
	CALL(kill, 37, KILL),
	CALL(brk, 45, MEMORY),
	CALL(mmap, 90, MEMORY),
	CALL(munmap, 91, MEMORY),
	CALL(mprotect, 125, MEMORY),
	CALL(getdents, 141, READ),
	CALL(readv, 145, READV),
	CALL(mremap, 163, MEMORY),
	CALL(rt_sigsuspend, 178, SUSPEND),
	CALL(pread64, 179, READ),
	CALL(getdents64, 202, READ),
	CALL(madvise, 205, MEMORY),
	CALL(exit_group, 234, EXIT),
	CALL(epoll_wait, 238, EVENTS),
	CALL(tgkill, 250, KILL),
	CALL(epoll_pwait, 303, EVENTS),
	CALL(preadv, 320, READV),
	CALL(recvfrom, 337, READ),
	CALL(recvmsg, 342, RECVMSG),
	CALL(epoll_pwait2, 441, EVENTS),
};

const struct arch arch_ppc64le = {
	.name = "ppc64le",
	.machine = EM_PPC64,
	.class = ELFCLASS64,
	.loader = "ld64.so.2",
	.status = { .size = 504, .signal = 12, .thread = 32, .registers = 112 },
	.registers = registers,
	.register_count = COUNT_OF(registers),
	.stack_pointer = R1,
	.instruction = NIP,
	.system_call = R0,
	.calls_by_code = true,
	.thread_pointer = R13,
	.module_pointer = R2,
	.thread_pointer_bias = 0x7000,
	.shown = {
		"r0 {r0}  r1 {r1}  r2 {r2}  r3 {r3}\n"
		"r4 {r4}  r5 {r5}  r6 {r6}  r7 {r7}\n"
		"r8 {r8}  r9 {r9}  r10 {r10}  r11 {r11}",
		"r12 {r12}  r13 {r13}  r14 {r14}  r15 {r15}\n"
		"r16 {r16}  r17 {r17}  r18 {r18}  r19 {r19}\n"
		"r20 {r20}  r21 {r21}  r22 {r22}  r23 {r23}",
		"r24 {r24}  r25 {r25}  r26 {r26}  r27 {r27}\n"
		"r28 {r28}  r29 {r29}  r30 {r30}  r31 {r31}\n"
		"nip {nip}  lr {lr}  ctr {ctr}",
	},
	.unwound_count = 33,
	.unwound_return = LINK,
	.return_is_register = true,
	.return_column = LINK_COLUMN,
	.red_zone = 288,
	.address_bits = 52, /* 47, unless the program asks for more */
	.signal_stack_size = 16384,
	.event_size = 16,
	.calls = calls,
	.call_count = COUNT_OF(calls),
	.call_codes = { { 0x02, 0x00, 0x00, 0x44 }, { 0x01, 0x00, 0x00, 0x44 } }, /* sc, scv 0 */
	.call_code_count = 2,
	.call_code_size = 4,
	.pthread = { .pointer = 1536,
		     .most = 2560,
		     .dtv = -8,
		     .list = 192,
		     .tid = 208,
		     .cancel = 264 },
	.vectors_note = NT_PPC_VMX,
	.parameters = { 3, 4, 5, 6, 7, 8 },
	.result = 3,
	.frame_pointer = NOT_A_REGISTER, /* it is at no fixed distance from the frame's end */
	.disassembler = CS_ARCH_PPC,
	.disassembler_mode = CS_MODE_64 | CS_MODE_LITTLE_ENDIAN,
};
