/*
 * A stopped thread that waits in a call stands at the call's instruction, with its first argument
 * back in x0: the kernel has decided already that it begins the call anew, but for a signal with a
 * handler that it finds when the thread goes on. What of the call is the kernel's alone, such as
 * the rest of a time limit, goes with the stop that it was made for. So before the first injected
 * call the thread enters its own once more, which says in x8 whether a time limit goes on
 * (restart_syscall()), and is made to skip it; after the last it enters it again, and is stopped
 * there as it was at first.
 *
 * Frames of signal handlers are struct rt_sigframe of the Linux kernel's
 * arch/arm64/kernel/signal.c, whose context is that of <asm/sigcontext.h>; regsets are those of its
 * ptrace.c.
 */
#include "analyzer/capture/machine.h"

#include <asm/ptrace.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/audit.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

/* Notes newer than some <elf.h>. */
enum {
	NOTE_SVE = 0x405,
	NOTE_PAC_MASK = 0x406,
	NOTE_TAGGED_ADDRESSES = 0x409,
	NOTE_STREAMING_SVE = 0x40b,
	NOTE_ZA = 0x40c,
	NOTE_GUARDED_STACK = 0x410,
};

enum {
	CALL_SIZE = 4, /* of the instruction svc, in bytes */
	LINK = 30,     /* x30, where `ret` leads */
	CALL = 8,      /* x8, the number of a call */
	NO_CALL = -1,

	REGISTERS_OF_SVE = 1,	 /* a flag of a regset's head: the registers are those of SVE */
	NO_STACK_FLAGS = 0x7777, /* refused: the signal stack stays */
};

/* In pstate: what the next instruction must be, after an indirect branch, in guarded pages (BTI).
 */
#define BRANCH_TYPE (UINT64_C(3) << 10)

extern const struct arch arch_aarch64;

static const uint32_t notes[] = { NT_ARM_TLS, NOTE_SVE, NOTE_PAC_MASK, NOTE_TAGGED_ADDRESSES, 0 };

const struct machine machine = {
	.arch = &arch_aarch64,
	.audit = AUDIT_ARCH_AARCH64,
	.least_signal_stack = 5120,
	/* More bits are for programs that ask for such addresses. */
	.code_bits = (UINT64_C(1) << 48) - 1,
	.call = { { 0x01, 0x00, 0x00, 0xd4 }, CALL_SIZE },
	/* svc #0; ret */
	.call_return = { { 0x01, 0x00, 0x00, 0xd4, 0xc0, 0x03, 0x5f, 0xd6 }, 8 },
	/* mov x8, #139; svc #0 */
	.resume = { { 0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 }, 8 },
	.code_alignment = 4,
	.notes = notes,
};

/* Calls that every signal with a handler ends. */
static bool ends_by_handlers(long call)
{
	switch (call) {
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_rt_sigtimedwait:
	case SYS_io_getevents:
	case SYS_io_uring_enter:
	case SYS_semop:
	case SYS_semtimedop:
		return true;
	default:
		return false;
	}
}

uint64_t machine_waiting_at(const struct user_regs_struct *registers)
{
	return registers->pc;
}

static void set_number(pid_t thread, int number)
{
	struct iovec place = { &number, sizeof(number) };

	ptrace(PTRACE_SETREGSET, thread, NT_ARM_SYSTEM_CALL, &place);
}

/* True if a signal has come for which the program has a handler. */
static bool is_signalled(pid_t thread)
{
	_cleanup_(free) char *text = process_thread_text(thread, "status");
	uint64_t waiting = process_status_field(text, "SigPnd", 16, 0) |
			   process_status_field(text, "ShdPnd", 16, 0);

	return (waiting & ~process_status_field(text, "SigBlk", 16, 0) &
		process_status_field(text, "SigCgt", 16, 0)) != 0;
}

void machine_note_call(pid_t thread, struct waiting_call *ret)
{
	_cleanup_(free) char *text = process_thread_text(thread, "syscall");

	*ret = (struct waiting_call){ .number = NO_CALL };
	if (text && sscanf(text, "%ld %" SCNx64 " %*x %*x %*x %*x %*x %" SCNx64 " %" SCNx64,
			   &ret->number, &ret->first, &ret->stack, &ret->next) != 4)
		ret->number = NO_CALL;
}

/* Read the first argument of the call that the thread has left, as of a thread that is in it. */
static bool read_first(pid_t thread, long call, uint64_t *ret)
{
	_cleanup_(free) char *text = NULL;
	long number;

	set_number(thread, (int)call);
	text = process_thread_text(thread, "syscall");
	set_number(thread, NO_CALL);
	return text && sscanf(text, "%ld %" SCNx64, &number, ret) == 2 && number == call;
}

/*
 * Find that argument, which was in x0 before the result. Linux 6.1 keeps it, and 6.12.117 does not,
 * but shows the result in its place: then the call that the thread waited in before has to be the
 * same.
 */
static bool find_first(pid_t thread, const struct user_regs_struct *own,
		       const struct waiting_call *waiting, uint64_t *ret)
{
	if (read_first(thread, (long)own->regs[CALL], ret) && *ret != own->regs[0])
		return true;
	*ret = waiting->first;
	return waiting->number == (long)own->regs[CALL] && waiting->stack == own->sp &&
	       waiting->next == own->pc;
}

void machine_restart_call(pid_t thread, const struct waiting_call *waiting)
{
	struct user_regs_struct own;
	uint64_t first;

	if (!registers_read(thread, &own) || (long)own.regs[0] != -EINTR ||
	    !call_has_done_nothing((long)own.regs[CALL]) ||
	    !injection_is_gadget(thread, own.pc - CALL_SIZE) || is_signalled(thread) ||
	    !find_first(thread, &own, waiting, &first))
		return;
	own.regs[0] = first;
	own.pc -= CALL_SIZE;
	registers_write(thread, &own);
}

/* The kernel would begin a call that the thread was led back to anew, after the handler, too. */
void machine_settle_call(pid_t thread)
{
	struct user_regs_struct own;

	if (!registers_read(thread, &own) || !ends_by_handlers((long)own.regs[CALL]) ||
	    !injection_is_gadget(thread, own.pc) || !is_signalled(thread))
		return;
	own.regs[0] = (unsigned long long)-EINTR;
	own.pc += CALL_SIZE;
	registers_write(thread, &own);
}

bool machine_read_call(pid_t thread, uint64_t *ret_first, uint64_t *ret_stack)
{
	struct user_regs_struct own;

	if (!registers_read(thread, &own))
		return false;
	*ret_first = own.regs[0];
	*ret_stack = own.sp;
	return true;
}

void machine_set_call(const struct injection *injection, long number, const long arguments[4],
		      struct user_regs_struct *registers)
{
	memset(registers->regs, 0, CALL * sizeof(*registers->regs));
	for (int i = 0; i < 4; i++)
		registers->regs[i] = (unsigned long)arguments[i];
	registers->regs[CALL] = (unsigned long)number;
	/* Without a way back, a process that returns faults at once. */
	registers->regs[LINK] = injection->stack ? injection->link : 0;
	registers->pc = injection->gadget;
	registers->pstate &= ~BRANCH_TYPE;
	if (injection->stack)
		registers->sp = injection->stack;
}

long machine_result(const struct user_regs_struct *registers)
{
	return (long)registers->regs[0];
}

static bool read_vectors(pid_t thread, uint32_t note, uint8_t *ret, size_t room, size_t *ret_size)
{
	struct iovec place = { ret, room };
	struct user_sve_header head;

	if (ptrace(PTRACE_GETREGSET, thread, note, &place) < 0 || place.iov_len < sizeof(head))
		return false;
	memcpy(&head, ret, sizeof(head));
	*ret_size = place.iov_len;
	return (head.flags & REGISTERS_OF_SVE) && head.size == place.iov_len;
}

/* Keep what calls do not: registers of SVE, apart from the part that those of SIMD are. */
static void keep_vectors(struct injection *injection)
{
	static const uint32_t kinds[] = { NOTE_STREAMING_SVE, NOTE_SVE };

	for (size_t i = 0; i < COUNT_OF(kinds) && !injection->vectors_note; i++)
		if (read_vectors(injection->thread, kinds[i], injection->vectors,
				 sizeof(injection->vectors), &injection->vectors_size))
			injection->vectors_note = kinds[i];
}

/* On to where the thread enters a call, or leaves it. */
static bool go_to_call(struct injection *injection)
{
	int status;

	do {
		if (!injection_go_on(injection, PTRACE_SYSCALL, &status))
			return false;
	} while (WSTOPSIG(status) != SYSCALL_STOP);
	return true;
}

void machine_begin_calls(struct injection *injection)
{
	struct user_regs_struct entered;

	injection->waited = injection_is_gadget(injection->thread, injection->registers.pc);
	if (!injection->waited) {
		keep_vectors(injection);
		return;
	}
	injection_set_mask(injection, UINT64_MAX);
	if (!go_to_call(injection))
		return;
	if (registers_read(injection->thread, &entered))
		injection->registers.regs[CALL] = entered.regs[CALL];
	registers_write(injection->thread, &injection->registers);
	set_number(injection->thread, NO_CALL);
	if (go_to_call(injection))
		injection_park(injection);
}

void machine_end_calls(struct injection *injection)
{
	struct iovec place = { injection->vectors, injection->vectors_size };
	const struct user_regs_struct *own = &injection->registers;
	struct waiting_call waiting = { (long)own->regs[CALL], own->regs[0], own->sp,
					own->pc + CALL_SIZE };
	pid_t thread = injection->thread;

	if (injection->vectors_note)
		ptrace(PTRACE_SETREGSET, thread, injection->vectors_note, &place);
	if (!injection->waited)
		return;
	/* A filter is to see its call again, as it would without us. */
	ptrace(PTRACE_SETOPTIONS, thread, NULL, (void *)(long)PTRACE_O_TRACESYSGOOD);
	injection_set_mask(injection, UINT64_MAX);
	if (!go_to_call(injection))
		return;
	injection_set_mask(injection, injection->mask);
	if (injection_park(injection))
		machine_restart_call(thread, &waiting);
}

struct frame {
	siginfo_t info;
	ucontext_t context;
};

/* All frames, as they stand in memory. */
struct frames {
	struct frame leave, collect, home;
	uint64_t answer, padding;
};

static void fill_frame(const struct user_regs_struct *from, uint64_t mask,
		       const struct fpsimd_context *vectors, struct frame *ret)
{
	mcontext_t *machine_context = &ret->context.uc_mcontext;

	ret->context.uc_stack.ss_flags = NO_STACK_FLAGS;
	memcpy(&ret->context.uc_sigmask, &mask, sizeof(mask));
	memcpy(machine_context->regs, from->regs, sizeof(from->regs));
	machine_context->sp = from->sp;
	machine_context->pc = from->pc;
	machine_context->pstate = from->pstate;
	memcpy(machine_context->__reserved, vectors, sizeof(*vectors));
}

static void fill_call_frame(const struct machine_code *code, const struct injection *injection,
			    const struct fpsimd_context *vectors, long number, uint64_t stack,
			    struct frame *ret)
{
	static const long collect[4] = { -1, 0, (long)(__WCLONE | __WNOTHREAD), 0 };
	static const long leave[4] = { 0 };
	struct injection call = { .gadget = code->call_return,
				  .stack = stack,
				  .link = code->resume };
	struct user_regs_struct registers = injection->registers;

	/* Any of the processes that it made by clone(). */
	machine_set_call(&call, number, number == SYS_wait4 ? collect : leave, &registers);
	fill_frame(&registers, UINT64_MAX, vectors, ret);
}

/* The registers of SIMD as in a frame; false: there are others, which a frame would lose. */
static bool read_simd(pid_t thread, struct fpsimd_context *ret)
{
	struct user_fpsimd_state state;
	struct user_sve_header za; /* whose head is alike */
	uint64_t guarded[3] = { 0 };
	struct iovec place = { &state, sizeof(state) }, za_place = { &za, sizeof(za) },
		     guarded_place = { guarded, sizeof(guarded) };

	if (ptrace(PTRACE_GETREGSET, thread, NT_FPREGSET, &place) < 0 ||
	    (ptrace(PTRACE_GETREGSET, thread, NOTE_ZA, &za_place) == 0 && za.size > sizeof(za)))
		return false;
	/* There, `ret` needs the address on another stack, too. */
	if (ptrace(PTRACE_GETREGSET, thread, NOTE_GUARDED_STACK, &guarded_place) == 0 && guarded[0])
		return false;
	*ret = (struct fpsimd_context){
		.head = { .magic = FPSIMD_MAGIC, .size = sizeof(*ret) },
		.fpsr = state.fpsr,
		.fpcr = state.fpcr,
	};
	memcpy(ret->vregs, state.vregs, sizeof(ret->vregs));
	return true;
}

bool machine_make_frames(const struct machine_code *code, struct injection *injection, uint64_t top,
			 struct way_back *ret)
{
	enum { ALIGNMENT = 16 };
	struct frames *frames = (struct frames *)ret->laid;
	struct fpsimd_context vectors;
	uint64_t base = (top - sizeof(*frames)) & ~(uint64_t)(ALIGNMENT - 1);

	_Static_assert(sizeof(*frames) <= WAY_BACK_SIZE, "the frames have room");
	if (injection->vectors_note || !read_simd(injection->thread, &vectors))
		return false;
	ret->start = base;
	ret->size = sizeof(*frames);
	ret->leave = base + offsetof(struct frames, leave);
	ret->collect = base + offsetof(struct frames, collect);
	ret->home = base + offsetof(struct frames, home);
	ret->answer = base + offsetof(struct frames, answer);
	fill_frame(&injection->registers, injection->mask, &vectors, &frames->home);
	fill_call_frame(code, injection, &vectors, SYS_wait4, ret->home, &frames->collect);
	fill_call_frame(code, injection, &vectors, SYS_exit, ret->leave, &frames->leave);
	return true;
}

/* This machine has no such state. */
struct xstate_layout xstate_layout_here(void)
{
	return (struct xstate_layout){ 0 };
}

size_t xstate_write_note(const struct xstate_layout *layout, const uint8_t *state, size_t size,
			 uint8_t ret[XSTATE_NOTE_SIZE])
{
	return 0;
}
