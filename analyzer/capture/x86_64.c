/*
 * Frames of signal handlers are struct rt_sigframe of the Linux kernel's
 * arch/x86/include/asm/sigframe.h; their vector state is described in
 * arch/x86/include/uapi/asm/sigcontext.h.
 */
#include "analyzer/capture/machine.h"

#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <linux/audit.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum {
	/* errno values that only the kernel uses */
	RESTART_SYS = 512,
	RESTART_UNLESS_HANDLED = 514,
	RESTART_BLOCK = 516,

	CALL_SIZE = 2,	     /* of the instruction syscall, in bytes */
	SOFTWARE_PART = 464, /* of the vector state, in bytes */
	HAS_VECTORS = 1,     /* flags of a context */
	HAS_STACK_SEGMENT = 6,
	NO_STACK_FLAGS = 0x7777, /* refused: the signal stack stays */
};

extern const struct arch arch_x86_64;

static const uint32_t notes[] = { NT_X86_XSTATE, 0 };

const struct machine machine = {
	.arch = &arch_x86_64,
	.audit = AUDIT_ARCH_X86_64,
	.least_signal_stack = 2048,
	.code_bits = UINT64_MAX,
	.call = { { 0x0f, 0x05 }, CALL_SIZE },
	.call_return = { { 0x0f, 0x05, 0xc3 }, 3 },
	/* mov $15,%rax; syscall */
	.resume = { { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 }, 9 },
	.code_alignment = 1,
	.notes = notes,
};

/* Calls by int 0x80 have other numbers. */
uint64_t machine_waiting_at(const struct user_regs_struct *registers)
{
	return (long)registers->orig_rax >= 0 ? registers->rip - CALL_SIZE : 0;
}

/* All arguments stay in their registers. */
void machine_note_call(pid_t thread, struct waiting_call *ret)
{
	*ret = (struct waiting_call){ .number = -1 };
}

/*
 * The result that the program would see is replaced by the kernel's own for "begin anew, unless a
 * handler is to be run: then EINTR". So the kernel decides whether a signal has come, when the
 * thread goes on.
 */
void machine_restart_call(pid_t thread, const struct waiting_call *waiting)
{
	struct user_regs_struct own;

	if (!registers_read(thread, &own) || (long)own.rax != -EINTR ||
	    !call_has_done_nothing((long)own.orig_rax) ||
	    !injection_is_gadget(thread, own.rip - CALL_SIZE))
		return;
	ptrace(PTRACE_POKEUSER, thread, offsetof(struct user_regs_struct, rax),
	       -(long)RESTART_UNLESS_HANDLED);
}

void machine_settle_call(pid_t thread)
{
}

bool machine_read_call(pid_t thread, uint64_t *ret_first, uint64_t *ret_stack)
{
	struct user_regs_struct own;

	if (!registers_read(thread, &own))
		return false;
	*ret_first = own.rdi;
	*ret_stack = own.rsp;
	return true;
}

void machine_set_call(const struct injection *injection, long number, const long arguments[4],
		      struct user_regs_struct *registers)
{
	registers->rip = injection->gadget;
	registers->rax = (unsigned long)number;
	registers->orig_rax = UINT64_MAX; /* no call is to be begun anew */
	registers->rdi = (unsigned long)arguments[0];
	registers->rsi = (unsigned long)arguments[1];
	registers->rdx = (unsigned long)arguments[2];
	registers->r10 = (unsigned long)arguments[3];
	registers->r8 = registers->r9 = 0;
	if (injection->stack)
		registers->rsp = injection->stack;
}

long machine_result(const struct user_regs_struct *registers)
{
	return (long)registers->rax;
}

void machine_begin_calls(struct injection *injection)
{
}

/* The kernel's own results in the registers have it begin the call anew. */
void machine_end_calls(struct injection *injection)
{
}

struct frame {
	uint64_t resume; /* where `ret` leads */
	uint64_t flags, link;
	uint64_t signal_stack;
	uint32_t signal_stack_flags, padding;
	uint64_t signal_stack_size;
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags;
	uint16_t cs, gs, fs, ss;
	uint64_t error, trap, old_mask, fault;
	uint64_t vectors; /* address of the vector state; 0: as after a reset */
	uint64_t reserved[8];
	uint64_t mask;
};

/* The kernel's fields in the software part of the vector state. */
struct vectors_head {
	uint32_t magic, whole_size;
	uint64_t parts;
	uint32_t size, padding[7];
};

enum { HEAD_MAGIC = 0x46505853, END_MAGIC = 0x46505845 };

/* All frames, as they stand in memory; the vector state is behind them. */
struct frames {
	uint64_t answer;
	struct frame leave, collect, home;
};

static struct frame make_frame(const struct machine_code *code, const struct user_regs_struct *from,
			       uint64_t mask)
{
	return (struct frame){
		.resume = code->resume,
		.flags = HAS_STACK_SEGMENT,
		.signal_stack_flags = NO_STACK_FLAGS,
		.r8 = from->r8,
		.r9 = from->r9,
		.r10 = from->r10,
		.r11 = from->r11,
		.r12 = from->r12,
		.r13 = from->r13,
		.r14 = from->r14,
		.r15 = from->r15,
		.rdi = from->rdi,
		.rsi = from->rsi,
		.rbp = from->rbp,
		.rbx = from->rbx,
		.rdx = from->rdx,
		.rax = from->rax,
		.rcx = from->rcx,
		.rsp = from->rsp,
		.rip = from->rip,
		.eflags = from->eflags,
		.cs = (uint16_t)from->cs,
		.ss = (uint16_t)from->ss,
		.mask = mask,
	};
}

/* The thread's own; its call, if it was in one that is to begin anew, again. */
static struct frame make_home(const struct machine_code *code, const struct injection *injection)
{
	struct user_regs_struct own = injection->registers;
	long failure = -(long)own.rax;

	if ((long)own.orig_rax >= 0 &&
	    ((failure >= RESTART_SYS && failure <= RESTART_UNLESS_HANDLED) ||
	     failure == RESTART_BLOCK)) {
		own.rax = own.orig_rax;
		own.rip -= CALL_SIZE;
	}
	return make_frame(code, &own, injection->mask);
}

static struct frame make_call_frame(const struct machine_code *code,
				    const struct injection *injection, long number, uint64_t stack)
{
	struct frame frame = make_frame(code, &injection->registers, UINT64_MAX);

	frame.rip = code->call_return;
	frame.rax = (uint64_t)number;
	frame.rsp = stack;
	frame.rdi = frame.rsi = frame.rdx = frame.r10 = 0;
	return frame;
}

/* The thread's vector state as in a frame; returns its size, 0: unknown. */
static uint64_t read_vectors(pid_t thread, uint8_t *ret, size_t room)
{
	struct iovec place = { ret, room - sizeof(uint64_t) };
	uint32_t end = END_MAGIC;
	struct vectors_head head = { .magic = HEAD_MAGIC };

	if (ptrace(PTRACE_GETREGSET, thread, NT_X86_XSTATE, &place) < 0 ||
	    place.iov_len < SOFTWARE_PART + sizeof(head))
		return 0;
	memcpy(&head.parts, ret + SOFTWARE_PART, sizeof(head.parts));
	head.size = (uint32_t)place.iov_len;
	head.whole_size = head.size + (uint32_t)sizeof(end);
	memcpy(ret + SOFTWARE_PART, &head, sizeof(head));
	memcpy(ret + head.size, &end, sizeof(end));
	return head.whole_size;
}

/* The frames, for a stack pointer, in bytes; the vector state is there. */
static void fill_frames(const struct machine_code *code, const struct injection *injection,
			uint64_t vectors, struct way_back *way, struct frames *frames)
{
	uint64_t base = way->start;

	way->answer = base + offsetof(struct frames, answer);
	way->leave = base + offsetof(struct frames, leave);
	way->collect = base + offsetof(struct frames, collect);
	way->home = base + offsetof(struct frames, home);
	frames->home = make_home(code, injection);
	frames->home.flags |= HAS_VECTORS;
	frames->home.vectors = vectors;
	frames->collect = make_call_frame(code, injection, SYS_wait4, way->home);
	frames->collect.rdi = UINT64_MAX; /* any, of those it made by clone() */
	frames->collect.rdx = __WCLONE | __WNOTHREAD;
	frames->leave = make_call_frame(code, injection, SYS_exit, way->leave);
}

bool machine_make_frames(const struct machine_code *code, struct injection *injection, uint64_t top,
			 struct way_back *ret)
{
	enum { ALIGNMENT = 64, FRAMES = (sizeof(struct frames) + 63) & ~63 };
	uint64_t vectors, size;

	size = read_vectors(injection->thread, ret->laid + FRAMES, sizeof(ret->laid) - FRAMES);
	if (!size)
		return false;
	vectors = (top - size) & ~(uint64_t)(ALIGNMENT - 1);
	ret->start = vectors - FRAMES;
	ret->size = FRAMES + size;
	fill_frames(code, injection, vectors, ret, (struct frames *)ret->laid);
	return true;
}

enum {
	XSTATE_LEAF = 0xd, /* of the instruction cpuid */
	ENABLED = 464,	   /* the parts that the kernel enabled */
	IN_USE = 512,	   /* state that differs from its value after reset */
	COMMON_SIZE = 576, /* the same everywhere: x87, SSE, the header */
	X87_AND_SSE = 3,   /* the parts of it */
};

/*
 * The parts that a note can hold, in Intel's layout, and the size that gdb expects of a state with
 * that part. APX, unknown to gdb so far, has taken the place of MPX.
 */
static const struct part {
	unsigned number;
	uint32_t offset, size;
	size_t whole;
} note_parts[] = {
	{ 2, 576, 256, 832 },	 /* AVX: upper halves of ymm0 to ymm15 */
	{ 3, 960, 64, 1088 },	 /* MPX: bounds */
	{ 4, 1024, 64, 1088 },	 /* MPX: configuration */
	{ 5, 1088, 64, 2688 },	 /* AVX-512: masks */
	{ 6, 1152, 512, 2688 },	 /* AVX-512: upper halves of zmm0 to zmm15 */
	{ 7, 1664, 1024, 2688 }, /* AVX-512: zmm16 to zmm31 */
	{ 9, 2688, 8, 2696 },	 /* protection keys */
	{ 19, 960, 128, 0 },	 /* APX: r16 to r31 */
};

struct xstate_layout xstate_layout_here(void)
{
	struct xstate_layout layout = { 0 };

	for (unsigned number = 2; number < XSTATE_PARTS; number++) {
		unsigned size, offset, c, d;

		if (!__get_cpuid_count(XSTATE_LEAF, number, &size, &offset, &c, &d))
			break;
		layout.parts[number].size = size;
		layout.parts[number].offset = offset;
	}
	return layout;
}

/* Leave in a set of parts, at an offset of the state, only those. */
static void keep_parts(uint8_t *state, size_t offset, uint64_t kept)
{
	uint64_t parts;

	memcpy(&parts, state + offset, sizeof(parts));
	parts &= kept;
	memcpy(state + offset, &parts, sizeof(parts));
}

size_t xstate_write_note(const struct xstate_layout *layout, const uint8_t *state, size_t size,
			 uint8_t ret[XSTATE_NOTE_SIZE])
{
	uint64_t enabled, kept = X87_AND_SSE;
	size_t whole = COMMON_SIZE;

	if (size < COMMON_SIZE) {
		memcpy(ret, state, size);
		return size;
	}
	memset(ret, 0, XSTATE_NOTE_SIZE);
	memcpy(ret, state, COMMON_SIZE);
	memcpy(&enabled, state + ENABLED, sizeof(enabled));
	list_for_each(part, note_parts, COUNT_OF(note_parts)) {
		uint32_t offset = layout->parts[part->number].offset;

		if (!(enabled >> part->number & 1) ||
		    layout->parts[part->number].size != part->size || offset > size ||
		    size - offset < part->size)
			continue;
		if (part->whole > whole)
			whole = part->whole;
		if (part->offset + part->size > whole)
			continue;
		memcpy(ret + part->offset, state + offset, part->size);
		kept |= UINT64_C(1) << part->number;
	}
	keep_parts(ret, ENABLED, kept);
	keep_parts(ret, IN_USE, kept);
	return whole;
}
