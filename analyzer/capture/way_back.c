/*
 * The layout of a frame is that of struct rt_sigframe in the Linux kernel's
 * arch/x86/include/asm/sigframe.h, that of the vector state is described in
 * arch/x86/include/uapi/asm/sigcontext.h.
 */
#include "analyzer/capture/way_back.h"

#include <elf.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum {
	RED_ZONE = 128,
	HANDLER_ROOM = 1 << 14, /* should a signal come meanwhile */
	SOFTWARE_PART = 464,	/* of the vector state, in bytes */
	MOST_CODE = 1 << 23,	/* bytes of one mapping */
	HAS_VECTORS = 1,	/* flags of a context */
	HAS_STACK_SEGMENT = 6,
	NO_STACK_FLAGS = 0x7777, /* refused: the signal stack stays */
};

/* The calls of the kernel that are to begin anew, as it has them in rax. */
enum { RESTART_FIRST = -514, RESTART_LAST = -512, RESTART_BLOCK = -516 };

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

/* What the kernel has in the software part of the vector state. */
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

static uint64_t find_bytes(pid_t process, const struct memory_area *area, const uint8_t *bytes,
			   size_t size)
{
	uint64_t length = area->end - area->start;
	struct iovec here, there;
	_cleanup_(free) uint8_t *code = NULL;
	const uint8_t *found;
	ssize_t taken;

	length = length < MOST_CODE ? length : MOST_CODE;
	code = malloc(length);
	here = (struct iovec){ code, length };
	there = (struct iovec){ (void *)area->start, length };
	taken = code ? process_vm_readv(process, &here, 1, &there, 1, 0) : -1;
	found = taken > 0 ? memmem(code, (size_t)taken, bytes, size) : NULL;
	return found ? area->start + (uint64_t)(found - code) : 0;
}

static const uint8_t CALL_CODE[] = { 0x0f, 0x05, 0xc3 };
static const uint8_t RESUME_CODE[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };

void way_back_find(pid_t process, const struct memory_map *map, struct way_back_code *ret)
{
	*ret = (struct way_back_code){ 0 };
	for (size_t i = 0; i < map->count; i++) {
		const struct memory_area *area = &map->areas[i];

		if (!(area->rights & PF_X) || area->device || area->start >> 63)
			continue;
		if (!ret->resume)
			ret->resume = find_bytes(process, area, RESUME_CODE, sizeof(RESUME_CODE));
		if (!ret->call)
			ret->call = find_bytes(process, area, CALL_CODE, sizeof(CALL_CODE));
	}
}

static bool has_bytes(pid_t process, uint64_t address, const uint8_t *bytes, size_t size)
{
	uint8_t code[sizeof(RESUME_CODE)];
	struct iovec here = { code, size }, there = { (void *)address, size };

	return process_vm_readv(process, &here, 1, &there, 1, 0) == (ssize_t)size &&
	       memcmp(code, bytes, size) == 0;
}

/*
 * What of the mapping is below the stack pointer, if that is of a thread's stack by the C library,
 * which has the thread's own data at its end, or of the main stack: coroutines may have stacks with
 * other data right below.
 */
static uint64_t room_below(const struct memory_map *map, const struct user_regs_struct *registers)
{
	for (size_t i = 0; i < map->count; i++) {
		const struct memory_area *area = &map->areas[i];

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

static struct frame make_frame(const struct way_back_code *code,
			       const struct user_regs_struct *from, uint64_t mask)
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
static struct frame make_home(const struct way_back_code *code, const struct injection *injection)
{
	struct user_regs_struct own = injection->registers;
	long result = (long)own.rax;

	if ((long)own.orig_rax >= 0 &&
	    ((result >= RESTART_FIRST && result <= RESTART_LAST) || result == RESTART_BLOCK)) {
		own.rax = own.orig_rax;
		own.rip -= sizeof(CALL_CODE) - 1;
	}
	return make_frame(code, &own, injection->mask);
}

static struct frame make_call(const struct way_back_code *code, const struct injection *injection,
			      long number, uint64_t stack)
{
	struct frame frame = make_frame(code, &injection->registers, UINT64_MAX);

	frame.rip = code->call;
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

static bool move(pid_t process, uint64_t place, const uint8_t *bytes, uint64_t size, bool write)
{
	struct iovec here = { (void *)bytes, size };
	struct iovec there = { (void *)place, size };

	return (write ? process_vm_writev(process, &here, 1, &there, 1, 0)
		      : process_vm_readv(process, &here, 1, &there, 1, 0)) == (ssize_t)size;
}

/* The frames, for a stack pointer, in bytes; the vector state is there. */
static void fill_frames(const struct way_back_code *code, const struct injection *injection,
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
	frames->collect = make_call(code, injection, SYS_wait4, way->home);
	frames->collect.rdi = UINT64_MAX; /* any, of those it made by clone() */
	frames->collect.rdx = __WCLONE | __WNOTHREAD;
	frames->leave = make_call(code, injection, SYS_exit, way->leave);
}

static bool has_code(const struct way_back_code *code, pid_t thread)
{
	return has_bytes(thread, code->call, CALL_CODE, sizeof(CALL_CODE)) &&
	       has_bytes(thread, code->resume, RESUME_CODE, sizeof(RESUME_CODE));
}

void way_back_lay(const struct way_back_code *code, const struct memory_map *map,
		  struct injection *injection, struct way_back *ret)
{
	enum { ALIGNMENT = 64, FRAMES = (sizeof(struct frames) + 63) & ~63 };
	pid_t thread = injection->thread;
	uint64_t vectors, size;

	*ret = (struct way_back){ 0 };
	size = read_vectors(thread, ret->laid + FRAMES, sizeof(ret->laid) - FRAMES);
	if (!size || !has_code(code, thread) ||
	    room_below(map, &injection->registers) <
		    RED_ZONE + ALIGNMENT + WAY_BACK_SIZE + HANDLER_ROOM)
		return;
	vectors = (injection->registers.rsp - RED_ZONE - size) & ~(uint64_t)(ALIGNMENT - 1);
	ret->start = vectors - FRAMES;
	if (!move(thread, ret->start, ret->former, FRAMES + size, false))
		return;
	fill_frames(code, injection, vectors, ret, (struct frames *)ret->laid);
	ret->size = FRAMES + size;
	if (move(thread, ret->start, ret->laid, ret->size, true))
		injection->gadget = code->call;
	else
		ret->home = ret->collect = ret->leave = ret->answer = 0;
}

void way_back_remove(const struct way_back *way, pid_t process)
{
	if (way->size > 0)
		move(process, way->start, way->former, way->size, true);
}
