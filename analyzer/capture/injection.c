#include "analyzer/capture/injection.h"

#include "analyzer/capture/machine.h"

#include <elf.h>
#include <errno.h>
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
	RESTART_ALWAYS = 513, /* an errno value that only the kernel uses */
	MASK_SIZE = 8,	      /* of a set of signals in the kernel */
	MOST_ATTEMPTS = 100,  /* to make a call that is put off */

	GET_RSEQ_CONFIGURATION = 0x420f, /* of ptrace(2), Linux 5.13 */
	HANDLER_ROOM = 1 << 14,		 /* should a signal come meanwhile */
};

bool call_has_done_nothing(long call)
{
	switch (call) {
		/* They only wait; what they wait for stays until it is fetched. */
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
#endif
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

bool registers_read(pid_t thread, struct user_regs_struct *ret)
{
	struct iovec place = { ret, sizeof(*ret) };

	return ptrace(PTRACE_GETREGSET, thread, NT_PRSTATUS, &place) == 0 &&
	       place.iov_len == sizeof(*ret);
}

void registers_write(pid_t thread, const struct user_regs_struct *registers)
{
	struct iovec place = { (void *)registers, sizeof(*registers) };

	ptrace(PTRACE_SETREGSET, thread, NT_PRSTATUS, &place);
}

/* The register with that role in the machine's table. */
static uint64_t register_of(const struct user_regs_struct *registers, size_t role)
{
	uint64_t value;

	memcpy(&value, (const uint8_t *)registers + role * sizeof(value), sizeof(value));
	return value;
}

static bool thread_pointer_of(pid_t thread, const struct user_regs_struct *registers, uint64_t *ret)
{
	uint64_t words[2] = { 0 };
	struct iovec place = { words, sizeof(words) };

	if (machine.arch->thread_pointer != NOT_A_REGISTER) {
		*ret = register_of(registers, machine.arch->thread_pointer);
		return true;
	}
	if (ptrace(PTRACE_GETREGSET, thread, machine.arch->thread_pointer_note, &place) < 0)
		return false;
	*ret = words[0];
	return true;
}

static void find_code(const uint8_t *code, ssize_t code_size, uint64_t address,
		      const struct machine_bytes *wanted, uint64_t *ret)
{
	const uint8_t *place = code, *found;

	while (place && !*ret && code_size - (place - code) >= (ssize_t)wanted->size) {
		found = memmem(place, (size_t)(code_size - (place - code)), wanted->bytes,
			       wanted->size);
		if (!found)
			return;
		if ((size_t)(found - code) % machine.code_alignment == 0)
			*ret = address + (uint64_t)(found - code);
		place = found + 1;
	}
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
		find_code(code, taken, area->start, &machine.call, &ret->call);
		find_code(code, taken, area->start, &machine.call_return, &ret->call_return);
		find_code(code, taken, area->start, &machine.resume, &ret->resume);
	}
}

static bool has_code(pid_t process, uint64_t address, const struct machine_bytes *wanted)
{
	uint8_t code[sizeof(wanted->bytes)];

	return process_peek(process, address, code, wanted->size) == (ssize_t)wanted->size &&
	       memcmp(code, wanted->bytes, wanted->size) == 0;
}

/* ptrace(2) also reads memory without rights. */
bool injection_is_gadget(pid_t thread, uint64_t address)
{
	long word;

	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, thread, address, NULL);
	return errno == 0 && memcmp(&word, machine.call.bytes, machine.call.size) == 0;
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
	uint64_t place;

	if (!registers_read(thread, &registers))
		return false;
	place = machine_waiting_at(&registers);
	*ret_call = place && injection_is_gadget(thread, place);
	if (*ret_call)
		*gadget = place;
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

void injection_set_mask(const struct injection *injection, uint64_t mask)
{
	ptrace(PTRACE_SETSIGMASK, injection->thread, (void *)MASK_SIZE, &mask);
}

struct error *injection_begin(struct injection *injection)
{
	pid_t thread = injection->thread;

	if (ptrace(PTRACE_SETOPTIONS, thread, NULL, (void *)injection->options) < 0 ||
	    !registers_read(thread, &injection->registers) ||
	    ptrace(PTRACE_GETSIGMASK, thread, (void *)MASK_SIZE, &injection->mask) < 0)
		return error_system("thread %d", thread);
	machine_begin_calls(injection);
	return NULL;
}

bool injection_go_on(struct injection *injection, int request, int *ret_status)
{
	int status;

	do {
		if (ptrace((enum __ptrace_request)request, injection->thread, NULL, NULL) < 0 ||
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
	struct user_regs_struct registers;
	unsigned int stops = 0;
	int status;

	while (stops < 2) {
		unsigned long child = 0;

		if (!injection_go_on(injection, PTRACE_SYSCALL, &status))
			return false;
		stops += WSTOPSIG(status) == SYSCALL_STOP;
		if (!makes_child(status))
			continue;
		ptrace(PTRACE_GETEVENTMSG, injection->thread, NULL, &child);
		injection->child = (pid_t)child;
	}
	if (!registers_read(injection->thread, &registers))
		return false;
	*ret = machine_result(&registers);
	return true;
}

bool injection_park(struct injection *injection)
{
	int status;

	ptrace(PTRACE_INTERRUPT, injection->thread, NULL, NULL);
	do {
		if (!injection_go_on(injection, PTRACE_CONT, &status))
			return false;
	} while (status >> 16 != PTRACE_EVENT_STOP);
	return true;
}

/* The way back would restore both, so the mask comes first, and is set last. */
static void restore(const struct injection *injection)
{
	injection_set_mask(injection, injection->mask);
	registers_write(injection->thread, &injection->registers);
}

long injection_call(struct injection *injection, long number, long first, long second, long third,
		    long fourth)
{
	struct user_regs_struct registers = injection->registers;
	const long arguments[] = { first, second, third, fourth };
	long result = -RESTART_ALWAYS;

	injection->child = 0;
	if (injection->ended)
		return -ESRCH;
	machine_set_call(injection, number, arguments, &registers);
	for (int i = 0; result == -RESTART_ALWAYS && i < MOST_ATTEMPTS; i++) {
		registers_write(injection->thread, &registers);
		/* A signal that waits would have clone() put off. */
		injection_set_mask(injection, UINT64_MAX);
		if (!make_call(injection, &result))
			break;
	}
	if (!injection->ended && injection_park(injection) && !injection->stack)
		restore(injection);
	return injection->ended ? -ESRCH : result == -RESTART_ALWAYS ? -EAGAIN : result;
}

void injection_end(struct injection *injection)
{
	if (injection->ended)
		return;
	restore(injection);
	machine_end_calls(injection);
	ptrace(PTRACE_SETOPTIONS, injection->thread, NULL, NULL);
	if (injection->stop_came)
		syscall(SYS_tgkill, injection->process, injection->thread, SIGSTOP);
}

/*
 * Bytes of the mapping below the stack pointer, if it is a stack that the C library made for a
 * thread, which has the thread's own data at its end, or the main stack. A coroutine's stack may
 * have other data right below.
 */
static uint64_t room_below(const struct memory_map *map, uint64_t stack, uint64_t thread_pointer)
{
	list_for_each(area, map->areas, map->count) {
		if (stack <= area->start || stack >= area->end)
			continue;
		if (area->shared || area->of_file || area->unforked || !(area->rights & PF_W) ||
		    (!memory_area_has_path(area, "[stack]") &&
		     (thread_pointer <= stack || thread_pointer >= area->end)))
			return 0;
		return stack - area->start;
	}
	return 0;
}

static bool write_memory(pid_t process, uint64_t address, const uint8_t *bytes, uint64_t size)
{
	struct iovec here = { (void *)bytes, size }, there = { (void *)address, size };

	return process_vm_writev(process, &here, 1, &there, 1, 0) == (ssize_t)size;
}

static bool has_room(const struct memory_map *map, const struct injection *injection)
{
	uint64_t stack = register_of(&injection->registers, machine.arch->stack_pointer), pointer;
	uint64_t wanted = (uint64_t)machine.arch->red_zone + WAY_BACK_SIZE + HANDLER_ROOM;

	return thread_pointer_of(injection->thread, &injection->registers, &pointer) &&
	       room_below(map, stack, pointer) >= wanted;
}

void way_back_lay(const struct machine_code *code, const struct memory_map *map,
		  struct injection *injection, struct way_back *ret)
{
	pid_t thread = injection->thread;
	uint64_t stack = register_of(&injection->registers, machine.arch->stack_pointer);

	*ret = (struct way_back){ 0 };
	if (!has_code(thread, code->call_return, &machine.call_return) ||
	    !has_code(thread, code->resume, &machine.resume) || !has_room(map, injection) ||
	    !machine_make_frames(code, injection, stack - machine.arch->red_zone, ret))
		return;
	if (process_peek(thread, ret->start, ret->former, ret->size) == (ssize_t)ret->size &&
	    write_memory(thread, ret->start, ret->laid, ret->size)) {
		injection->gadget = code->call_return;
		injection->link = code->resume;
	} else {
		ret->home = ret->collect = ret->leave = ret->answer = 0;
	}
}

void way_back_remove(const struct way_back *way, pid_t process)
{
	if (way->size > 0)
		write_memory(process, way->start, way->former, way->size);
}
