/*
 * A held thread makes system calls for its tracer: an injection. The thread stands in
 * PTRACE_EVENT_STOP, as PTRACE_INTERRUPT leaves it, before and after each call: only there does the
 * kernel begin the call anew that the thread was waiting in.
 *
 * If the tracer is killed during the call, the kernel lets the thread go with the registers it has.
 * So these lead back: the call is made where a return follows, with a stack of frames as the kernel
 * makes for signal handlers, below all that the thread itself uses. The return leads to
 * sigreturn(), which loads what such a frame holds:
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

#include <sys/user.h>

/* Machine code of the process, by address; 0: there is none. */
struct machine_code {
	uint64_t call;	      /* a system call */
	uint64_t call_return; /* with a return right behind */
	uint64_t resume;      /* sigreturn() */
};
void machine_code_find(pid_t process, const struct memory_map *map, struct machine_code *ret);

enum {
	WAY_BACK_SIZE = 1 << 14,	      /* at most, in bytes */
	VECTORS_KEPT = (1 << 13) + (1 << 10), /* room for the largest registers of SVE */
};

struct way_back {
	uint64_t home, collect, leave; /* stack pointers; 0: there is no way */
	uint64_t answer;	       /* 8 bytes for what a call writes */
	uint64_t start, size;
	_Alignas(16) uint8_t laid[WAY_BACK_SIZE];
	uint8_t former[WAY_BACK_SIZE]; /* bytes of that memory before */
};

struct injection {
	pid_t process, thread;
	uint64_t gadget;		   /* address of an instruction for system calls */
	uint64_t stack;			   /* for the next call; 0: the thread's own */
	uint64_t link;			   /* where a return leads, if a register says so */
	long options;			   /* of ptrace(2), which children inherit */
	struct user_regs_struct registers; /* its own */
	uint64_t mask;			   /* of signals, its own */
	bool waited;			   /* in a call, of which the machine has more to do */
	bool stop_came;			   /* SIGSTOP, to be sent again */
	bool ended;			   /* the thread is no more */
	pid_t child;			   /* that the last call made, or 0 */
	uint32_t vectors_note; /* its vector registers, if calls spoil them; 0: they do not */
	size_t vectors_size;
	_Alignas(16) uint8_t vectors[VECTORS_KEPT];
};

/*
 * True if the interrupted thread can make a call where it is, apart from any seccomp filter.
 * *ret_call: it waits in a call; then *gadget is the instruction. Allocates nothing.
 */
bool injection_fits(pid_t thread, uint64_t *gadget, bool *ret_call);

/* True if a held thread has an instruction for system calls at address. */
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
 * For the files of machines: the thread's registers, and whether it has any of this machine's kind;
 * on to the next stop but that of a signal, by a request of ptrace(2); back to where the kernel
 * handles signals, and begins calls anew; all signals that can be are blocked.
 */
bool registers_read(pid_t thread, struct user_regs_struct *ret);
void registers_write(pid_t thread, const struct user_regs_struct *registers);
enum { SYSCALL_STOP = 0x85 }; /* the signal of a stop at a call: SIGTRAP | 0x80 */
bool injection_go_on(struct injection *injection, int request, int *ret_status);
bool injection_park(struct injection *injection);
void injection_set_mask(const struct injection *injection, uint64_t mask);

/* True if EINTR means that the call had no effect: false for close(), and unknown for ioctl(). */
bool call_has_done_nothing(long call);
