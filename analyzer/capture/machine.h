/*
 * The part of capturing that depends on the processor: registers, machine code, frames of signal
 * handlers. x86_64.c is the only implementation; without one, nothing is captured.
 *
 * A held thread makes system calls for its tracer: an injection. The thread stands in
 * PTRACE_EVENT_STOP, as PTRACE_INTERRUPT leaves it, before and after each call: only there does the
 * kernel begin the call anew that the thread was waiting in.
 *
 * If the tracer is killed during the call, the kernel lets the thread go with the registers it has.
 * So these lead back: the call is made where a `ret` follows, with a stack of frames as the kernel
 * makes for signal handlers, below all that the thread itself uses. `ret` leads to sigreturn(),
 * which loads what such a frame holds:
 *
 * - home: the thread's own registers and signal mask; the call that it waited in begins anew
 * - collect: wait4() for the process that it made, and then home
 * - leave: exit(), for a process that it made, if nobody traces that
 *
 * The memory below its stack pointer is restored in the end. With a way back, the thread has the
 * registers of the call until injection_end(); without, it gets its own back after each call, and
 * is lost if the tracer is killed in the ten microseconds of one.
 */
#pragma once

#include "analyzer/capture/process.h"
#include "analyzer/image/arch.h"

#include <sys/user.h>

struct machine {
	const struct arch *arch;
	uint32_t audit;		     /* AUDIT_ARCH_..., for seccomp filters */
	uint32_t least_signal_stack; /* bytes, for sigaltstack() */
};
extern const struct machine machine;

/*
 * Some system calls end with EINTR when their thread is merely stopped, which few programs expect
 * where no signal was sent. The thread has just been stopped by PTRACE_INTERRUPT: if that ended its
 * call, and nothing of the call was done yet, have the kernel begin it anew when the thread goes
 * on. A signal with a handler that comes before still ends it with EINTR. A time limit begins anew.
 */
void machine_restart_call(pid_t thread);

/* The first argument and the stack pointer of a thread that is about to make a call. */
bool machine_read_call(pid_t thread, uint64_t *ret_first, uint64_t *ret_stack);

/* Machine code of the process, by address; 0: there is none. */
struct machine_code {
	uint64_t call;	      /* syscall */
	uint64_t call_return; /* syscall; ret */
	uint64_t resume;      /* mov $15,%rax; syscall: sigreturn() */
};
void machine_code_find(pid_t process, const struct memory_map *map, struct machine_code *ret);

enum { WAY_BACK_SIZE = 1 << 14 }; /* at most, in bytes */

struct way_back {
	uint64_t home, collect, leave; /* stack pointers; 0: there is no way */
	uint64_t answer;	       /* 8 bytes for what a call writes */
	uint64_t start, size;
	_Alignas(8) uint8_t laid[WAY_BACK_SIZE];
	uint8_t former[WAY_BACK_SIZE]; /* bytes of that memory before */
};

struct injection {
	pid_t process, thread;
	uint64_t gadget;		   /* address of an instruction syscall */
	uint64_t stack;			   /* for the next call; 0: the thread's own */
	long options;			   /* of ptrace(2), which children inherit */
	struct user_regs_struct registers; /* its own */
	uint64_t mask;			   /* of signals, its own */
	bool stop_came;			   /* SIGSTOP, to be sent again */
	bool ended;			   /* the thread is no more */
	pid_t child;			   /* that the last call made, or 0 */
};

/*
 * True if the interrupted thread can make a call where it is, apart from any seccomp filter.
 * *ret_call: it waits in a call; then *gadget is the instruction. Allocates nothing.
 */
bool injection_fits(pid_t thread, uint64_t *gadget, bool *ret_call);

/* True if a held thread has a syscall instruction at address. */
bool injection_is_gadget(pid_t thread, uint64_t address);

/* Save the thread's state; options are set until injection_end(). */
struct error *injection_begin(struct injection *injection);

/*
 * Make the call; a negative result is an errno. A child that it creates is traced with the same
 * options, and about to stop for the first time.
 */
long injection_call(struct injection *injection, long number, long first, long second, long third,
		    long fourth);

/* The thread has its own registers, and goes on being held. */
void injection_end(struct injection *injection);

/* Wait until a traced thread stops; false: it has ended. */
bool injection_await(pid_t thread, int *ret_status);

/*
 * Lay the frames for the thread of the injection, whose registers are known, and have it call where
 * the way begins. Only on a stack of the C library's can that be done; elsewhere there is no way.
 * Allocates nothing.
 */
void way_back_lay(const struct machine_code *code, const struct memory_map *map,
		  struct injection *injection, struct way_back *ret);

/* Put back what was there, when the thread has its own registers. */
void way_back_remove(const struct way_back *way, pid_t process);

/*
 * The extended state in a note: vector registers and the like.
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
