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
#include <linux/rseq.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	/* errno values that only the kernel uses */
	RESTART_SYS = 512,
	RESTART_ALWAYS = 513,
	RESTART_UNLESS_HANDLED = 514,
	RESTART_BLOCK = 516,

	MASK_SIZE = 8,	     /* of a set of signals in the kernel */
	MOST_ATTEMPTS = 100, /* to make a call that is put off */
	SYSCALL_STOP = SIGTRAP | 0x80,

	GET_RSEQ_CONFIGURATION = 0x420f, /* of ptrace(2), Linux 5.13 */
	CODE_SEGMENT_64 = 0x33,		 /* cs in 64-bit code */

	HANDLER_ROOM = 1 << 14, /* should a signal come meanwhile */
	SOFTWARE_PART = 464,	/* of the vector state, in bytes */
	HAS_VECTORS = 1,	/* flags of a context */
	HAS_STACK_SEGMENT = 6,
	NO_STACK_FLAGS = 0x7777, /* refused: the signal stack stays */
};

extern const struct arch arch_x86_64;

const struct machine machine = {
	.arch = &arch_x86_64,
	.audit = AUDIT_ARCH_X86_64,
	.least_signal_stack = 2048,
};

/*
 * True if EINTR means that the call had no effect. That is false for close(), and unknown for
 * ioctl().
 */
static bool has_done_nothing(long call)
{
	switch (call) {
	/* They only wait; what they wait for stays until it is fetched. */
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_rt_sigtimedwait: /* sigwait(), sigwaitinfo() */
	case SYS_io_getevents:
	/* With requests to submit, it returns how many were. */
	case SYS_io_uring_enter:
	/* All operations are done at once, or none. */
	case SYS_semop:
	case SYS_semtimedop:
	/* On sockets with SO_RCVTIMEO or SO_SNDTIMEO. What has moved some bytes
	 * or messages returns how many. */
	case SYS_read:
	case SYS_readv:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_write:
	case SYS_writev:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_accept:
	case SYS_accept4:
	/* Waits on for the connection that it began. */
	case SYS_connect:
		return true;
	default:
		return false;
	}
}

static const uint8_t CALL_RETURN[] = { 0x0f, 0x05, 0xc3 };
enum { CALL_SIZE = 2 }; /* of these, the first bytes */
static const uint8_t RESUME[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };

static void find_bytes(const uint8_t *code, ssize_t code_size, uint64_t address,
		       const uint8_t *bytes, size_t size, uint64_t *ret)
{
	const uint8_t *found =
		*ret || code_size <= 0 ? NULL : memmem(code, (size_t)code_size, bytes, size);

	if (found)
		*ret = address + (uint64_t)(found - code);
}

void machine_code_find(pid_t process, const struct memory_map *map, struct machine_code *ret)
{
	enum { MOST_CODE = 1 << 23 }; /* bytes of one mapping */

	*ret = (struct machine_code){ 0 };
	for (size_t i = 0; i < map->count && !(ret->call_return && ret->resume); i++) {
		const struct memory_area *area = &map->areas[i];
		uint64_t size = area->end - area->start;
		_cleanup_(free) uint8_t *code = NULL;
		ssize_t taken;

		if (!(area->rights & PF_X) || area->device || area->start >> 63)
			continue;
		size = size < MOST_CODE ? size : MOST_CODE;
		code = malloc(size);
		taken = code ? process_peek(process, area->start, code, size) : -1;
		find_bytes(code, taken, area->start, CALL_RETURN, CALL_SIZE, &ret->call);
		find_bytes(code, taken, area->start, CALL_RETURN, sizeof(CALL_RETURN),
			   &ret->call_return);
		find_bytes(code, taken, area->start, RESUME, sizeof(RESUME), &ret->resume);
	}
}

static bool has_bytes(pid_t process, uint64_t address, const uint8_t *bytes, size_t size)
{
	uint8_t code[sizeof(RESUME)];

	return process_peek(process, address, code, size) == (ssize_t)size &&
	       memcmp(code, bytes, size) == 0;
}

/* ptrace(2) also reads memory without rights. */
bool injection_is_gadget(pid_t thread, uint64_t address)
{
	long word;

	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, thread, address, NULL);
	return errno == 0 && memcmp(&word, CALL_RETURN, CALL_SIZE) == 0;
}

/*
 * The result that the program would see is replaced by the kernel's own for "begin anew, unless a
 * handler is to be run: then EINTR". So the kernel decides whether a signal has come, when the
 * thread goes on.
 */
void machine_restart_call(pid_t thread)
{
	struct user_regs_struct own;

	/* Calls by int 0x80 have other numbers. */
	if (ptrace(PTRACE_GETREGS, thread, NULL, &own) < 0 || (long)own.rax != -EINTR ||
	    !has_done_nothing((long)own.orig_rax) ||
	    !injection_is_gadget(thread, own.rip - CALL_SIZE))
		return;
	ptrace(PTRACE_POKEUSER, thread, offsetof(struct user_regs_struct, rax),
	       -(long)RESTART_UNLESS_HANDLED);
}

bool machine_read_call(pid_t thread, uint64_t *ret_first, uint64_t *ret_stack)
{
	struct user_regs_struct own;

	if (ptrace(PTRACE_GETREGS, thread, NULL, &own) < 0)
		return false;
	*ret_first = own.rdi;
	*ret_stack = own.rsp;
	return true;
}

/*
 * The kernel forgets the restartable sequence of a thread that it finds outside of it, so one that
 * may be in such a sequence must not be led elsewhere.
 */
static bool is_unsequenced(pid_t thread)
{
	struct {
		uint64_t address;
		uint32_t size, signature, flags, padding;
	} where = { 0 };
	uint64_t section = 0;

	if (ptrace((enum __ptrace_request)GET_RSEQ_CONFIGURATION, thread, sizeof(where), &where) <
	    0)
		return false;
	return !where.address ||
	       (process_peek(thread, where.address + offsetof(struct rseq, rseq_cs), &section,
			     sizeof(section)) == sizeof(section) &&
		section == 0);
}

bool injection_fits(pid_t thread, uint64_t *gadget, bool *ret_call)
{
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETREGS, thread, NULL, &registers) < 0 || registers.cs != CODE_SEGMENT_64)
		return false;
	*ret_call = (long)registers.orig_rax >= 0 &&
		    injection_is_gadget(thread, registers.rip - CALL_SIZE);
	if (*ret_call)
		*gadget = registers.rip - CALL_SIZE;
	return *ret_call || is_unsequenced(thread);
}

bool injection_await(pid_t thread, int *ret_status)
{
	pid_t found;

	do {
		found = waitpid(thread, ret_status, __WALL);
	} while (found < 0 && errno == EINTR);
	return found == thread && WIFSTOPPED(*ret_status);
}

struct error *injection_begin(struct injection *injection)
{
	pid_t thread = injection->thread;

	if (ptrace(PTRACE_SETOPTIONS, thread, NULL, (void *)injection->options) < 0 ||
	    ptrace(PTRACE_GETREGS, thread, NULL, &injection->registers) < 0 ||
	    ptrace(PTRACE_GETSIGMASK, thread, (void *)MASK_SIZE, &injection->mask) < 0)
		return error_system("thread %d", thread);
	return NULL;
}

/* Go on, by a request of ptrace(2), to the next stop but that of a signal. */
static bool go_on(struct injection *injection, enum __ptrace_request request, int *ret_status)
{
	int status;

	do {
		if (ptrace(request, injection->thread, NULL, NULL) < 0 ||
		    !injection_await(injection->thread, &status)) {
			injection->ended = true;
			return false;
		}
		/* All that can be blocked is. */
		injection->stop_came |= status >> 8 == SIGSTOP;
	} while (status >> 16 == 0 && WSTOPSIG(status) != SYSCALL_STOP);
	*ret_status = status;
	return true;
}

static bool makes_child(int status)
{
	int event = status >> 16;

	return event == PTRACE_EVENT_CLONE || event == PTRACE_EVENT_FORK ||
	       event == PTRACE_EVENT_VFORK;
}

/* From before the instruction to the stop behind it. */
static bool make_call(struct injection *injection, long *ret)
{
	unsigned int stops = 0;
	int status;

	while (stops < 2) {
		unsigned long child = 0;

		if (!go_on(injection, PTRACE_SYSCALL, &status))
			return false;
		stops += WSTOPSIG(status) == SYSCALL_STOP;
		if (!makes_child(status))
			continue;
		ptrace(PTRACE_GETEVENTMSG, injection->thread, NULL, &child);
		injection->child = (pid_t)child;
	}
	errno = 0;
	*ret = ptrace(PTRACE_PEEKUSER, injection->thread, offsetof(struct user_regs_struct, rax),
		      NULL);
	return errno == 0;
}

/* Back to where the kernel handles signals, and restarts calls. */
static bool park(struct injection *injection)
{
	int status;

	ptrace(PTRACE_INTERRUPT, injection->thread, NULL, NULL);
	do {
		if (!go_on(injection, PTRACE_CONT, &status))
			return false;
	} while (status >> 16 != PTRACE_EVENT_STOP);
	return true;
}

/* The way back would restore both, so the mask comes first, and is set last. */
static void restore(const struct injection *injection)
{
	pid_t thread = injection->thread;

	ptrace(PTRACE_SETSIGMASK, thread, (void *)MASK_SIZE, &injection->mask);
	ptrace(PTRACE_SETREGS, thread, NULL, &injection->registers);
}

long injection_call(struct injection *injection, long number, long first, long second, long third,
		    long fourth)
{
	struct user_regs_struct registers = injection->registers;
	uint64_t all = UINT64_MAX;
	long result = -RESTART_ALWAYS;

	injection->child = 0;
	if (injection->ended)
		return -ESRCH;
	registers.rip = injection->gadget;
	registers.rax = (unsigned long)number;
	registers.orig_rax = UINT64_MAX; /* no call is to be begun anew */
	registers.rdi = (unsigned long)first;
	registers.rsi = (unsigned long)second;
	registers.rdx = (unsigned long)third;
	registers.r10 = (unsigned long)fourth;
	registers.r8 = registers.r9 = 0;
	if (injection->stack)
		registers.rsp = injection->stack;
	for (int i = 0; result == -RESTART_ALWAYS && i < MOST_ATTEMPTS; i++) {
		ptrace(PTRACE_SETREGS, injection->thread, NULL, &registers);
		/* A signal that waits would have clone() put off. */
		ptrace(PTRACE_SETSIGMASK, injection->thread, (void *)MASK_SIZE, &all);
		if (!make_call(injection, &result))
			break;
	}
	if (!injection->ended && park(injection) && !injection->stack)
		restore(injection);
	return injection->ended ? -ESRCH : result == -RESTART_ALWAYS ? -EAGAIN : result;
}

void injection_end(struct injection *injection)
{
	if (injection->ended)
		return;
	restore(injection);
	ptrace(PTRACE_SETOPTIONS, injection->thread, NULL, NULL);
	if (injection->stop_came)
		syscall(SYS_tgkill, injection->process, injection->thread, SIGSTOP);
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

/*
 * Bytes of the mapping below the stack pointer, if it is a stack that the C library made for a
 * thread, which has the thread's own data at its end, or the main stack. A coroutine's stack may
 * have other data right below.
 */
static uint64_t room_below(const struct memory_map *map, const struct user_regs_struct *registers)
{
	list_for_each(area, map->areas, map->count) {
		if (registers->rsp <= area->start || registers->rsp >= area->end)
			continue;
		if (area->shared || area->of_file || area->unforked || !(area->rights & PF_W) ||
		    (!memory_area_has_path(area, "[stack]") &&
		     (registers->fs_base <= registers->rsp || registers->fs_base >= area->end)))
			return 0;
		return registers->rsp - area->start;
	}
	return 0;
}

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

static bool write_memory(pid_t process, uint64_t address, const uint8_t *bytes, uint64_t size)
{
	struct iovec here = { (void *)bytes, size }, there = { (void *)address, size };

	return process_vm_writev(process, &here, 1, &there, 1, 0) == (ssize_t)size;
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

void way_back_lay(const struct machine_code *code, const struct memory_map *map,
		  struct injection *injection, struct way_back *ret)
{
	enum { ALIGNMENT = 64, FRAMES = (sizeof(struct frames) + 63) & ~63 };
	pid_t thread = injection->thread;
	uint64_t vectors, size;

	*ret = (struct way_back){ 0 };
	size = read_vectors(thread, ret->laid + FRAMES, sizeof(ret->laid) - FRAMES);
	if (!size || !has_bytes(thread, code->call_return, CALL_RETURN, sizeof(CALL_RETURN)) ||
	    !has_bytes(thread, code->resume, RESUME, sizeof(RESUME)) ||
	    room_below(map, &injection->registers) <
		    (uint64_t)arch_x86_64.red_zone + ALIGNMENT + WAY_BACK_SIZE + HANDLER_ROOM)
		return;
	vectors = (injection->registers.rsp - arch_x86_64.red_zone - size) &
		  ~(uint64_t)(ALIGNMENT - 1);
	ret->start = vectors - FRAMES;
	if (process_peek(thread, ret->start, ret->former, FRAMES + size) !=
	    (ssize_t)(FRAMES + size))
		return;
	fill_frames(code, injection, vectors, ret, (struct frames *)ret->laid);
	ret->size = FRAMES + size;
	if (write_memory(thread, ret->start, ret->laid, ret->size))
		injection->gadget = code->call_return;
	else
		ret->home = ret->collect = ret->leave = ret->answer = 0;
}

void way_back_remove(const struct way_back *way, pid_t process)
{
	if (way->size > 0)
		write_memory(process, way->start, way->former, way->size);
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
