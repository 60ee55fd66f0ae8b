/*
 * The part of capturing that depends on the processor: registers, machine code, frames of signal
 * handlers. There is one file for each machine, x86_64.c and aarch64.c, and the build takes that of
 * the machine it is for; on others, nothing is captured. injection.c has what they have in common.
 */
#pragma once

#include "analyzer/capture/injection.h"
#include "analyzer/capture/threads.h"
#include "analyzer/image/arch.h"

/* Instructions, as bytes. */
struct machine_bytes {
	uint8_t bytes[12];
	size_t size;
};

struct machine {
	const struct arch *arch;
	uint32_t audit;		     /* AUDIT_ARCH_..., for seccomp filters */
	uint32_t least_signal_stack; /* bytes, for sigaltstack() */
	uint64_t code_bits;	     /* of a return address; others may be a signature */
	struct machine_bytes call, call_return, resume; /* see struct machine_code */
	size_t code_alignment;
	/* Notes of registers besides NT_PRSTATUS and NT_FPREGSET, 0 at the end. */
	const uint32_t *notes;
};
extern const struct machine machine;

/*
 * Read the call in which the thread waits that is about to be interrupted, where the kernel may not
 * say it afterwards.
 */
void machine_note_call(pid_t thread, struct waiting_call *ret);

/*
 * Some system calls end with EINTR when their thread is merely stopped, which few programs expect
 * where no signal was sent. The thread has just been stopped by PTRACE_INTERRUPT: if that ended its
 * call, and nothing of the call was done yet, have the kernel begin it anew when the thread goes
 * on. A signal with a handler that comes before still ends it with EINTR. A time limit begins anew.
 */
void machine_restart_call(pid_t thread, const struct waiting_call *waiting);

/*
 * The thread, which was stopped so, is about to go on: where the kernel does not, let a signal that
 * has come end its call.
 */
void machine_settle_call(pid_t thread);

/* The first argument and the stack pointer of a thread that is about to make a call. */
bool machine_read_call(pid_t thread, uint64_t *ret_first, uint64_t *ret_stack);

/*
 * The instruction of the call that a thread with these registers may wait in, to begin it anew, if
 * the instruction for calls is there; 0: it waits in none.
 */
uint64_t machine_waiting_at(const struct user_regs_struct *registers);

/* The registers for a call by the injection, which are the thread's own before. */
void machine_set_call(const struct injection *injection, long number, const long arguments[4],
		      struct user_regs_struct *registers);

/* The result of the call, which the thread has just made. */
long machine_result(const struct user_regs_struct *registers);

/* Called before the first call, and when the thread has its own registers again. */
void machine_begin_calls(struct injection *injection);
void machine_end_calls(struct injection *injection);

/*
 * Make the frames of a way back at ret->laid, for the stack below top, and set its addresses, of
 * which start and size are of what is to be written. False: there can be no way.
 */
bool machine_make_frames(const struct machine_code *code, struct injection *injection, uint64_t top,
			 struct way_back *ret);

/*
 * The extended state in a note: vector registers and the like. Only x86-64 has it; elsewhere, a
 * note has what the kernel hands out.
 *
 * The kernel hands it out in the layout of XSAVE's standard format, whose offsets depend on the
 * processor (Intel SDM, volume 1, chapter 13): what AMD has right behind the AVX registers, Intel
 * has behind room for MPX; what is newer makes the whole larger. Debuggers know few of these
 * layouts. gdb up to 13 takes Intel's offsets on every processor and computes the size from the
 * enabled parts; later ones guess the layout from the size, and give up vector registers where they
 * do not know it. Intel's layout, of the parts that gdb knows, is understood by all of them: a note
 * is written so.
 */
enum {
	XSTATE_PARTS = 32,
	XSTATE_NOTE_SIZE = 2696, /* at most */
};

/* Offsets of the parts of a processor's state; missing parts have size 0. */
struct xstate_layout {
	struct {
		uint32_t offset, size;
	} parts[XSTATE_PARTS];
};

/* The layout of this processor. */
struct xstate_layout xstate_layout_here(void);

/* Write the note's bytes for a state of that layout, and return their size. */
size_t xstate_write_note(const struct xstate_layout *layout, const uint8_t *state, size_t size,
			 uint8_t ret[XSTATE_NOTE_SIZE]);
