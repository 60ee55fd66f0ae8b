#include "analyzer/capture/injected_thread.h"

#include "analyzer/capture/system_call.h"

#include <elf.h>
#include <errno.h>
#include <linux/rseq.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

enum {
	GET_RSEQ_CONFIGURATION = 0x420f, /* of ptrace(2), Linux 5.13 */
	CODE_SEGMENT_64 = 0x33,		 /* cs in 64-bit code */
	MOST_LOOKED_AT = 256,		 /* threads */
	MOST_CODE = 1 << 22,		 /* bytes of one mapping */
};

/* What can be said of a thread, as a set; the larger, the better. */
enum fitness {
	FIT = 1 << 0,
	FIT_CALL = 1 << 1,	 /* waits in a system call */
	FIT_UNFILTERED = 1 << 2, /* has no seccomp filter: the most wanted */
	FIT_BEST = FIT | FIT_CALL | FIT_UNFILTERED,
};

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
	struct iovec here = { &section, sizeof(section) }, there;

	if (ptrace((enum __ptrace_request)GET_RSEQ_CONFIGURATION, thread, sizeof(where), &where) <
	    0)
		return false;
	there = (struct iovec){
		(void *)(where.address + offsetof(struct rseq, rseq_cs)),
		sizeof(section),
	};
	return !where.address ||
	       (process_vm_readv(thread, &here, 1, &there, 1, 0) == sizeof(section) &&
		section == 0);
}

bool injected_thread_fits(pid_t thread, uint64_t *gadget, bool *ret_call)
{
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETREGS, thread, NULL, &registers) < 0 || registers.cs != CODE_SEGMENT_64)
		return false;
	*ret_call = (long)registers.orig_rax >= 0 &&
		    system_call_is_at(thread, registers.rip - SYSTEM_CALL_SIZE);
	if (*ret_call)
		*gadget = registers.rip - SYSTEM_CALL_SIZE;
	return *ret_call || is_unsequenced(thread);
}

static unsigned int examine(const struct held_thread *thread, uint64_t *gadget)
{
	bool call;

	if (!thread->interrupted || !injected_thread_fits(thread->id, gadget, &call))
		return 0;
	return FIT | (call ? FIT_CALL : 0) |
	       (process_status(thread->id, "Seccomp", 10, 1) == 0 ? FIT_UNFILTERED : 0);
}

static uint64_t find_in(pid_t process, const struct memory_area *area)
{
	uint64_t size = area->end - area->start;
	_cleanup_(free) uint8_t *code = malloc(size < MOST_CODE ? size : MOST_CODE);
	struct iovec here = { code, size < MOST_CODE ? size : MOST_CODE };
	struct iovec there = { (void *)area->start, here.iov_len };
	static const uint8_t instruction[] = { 0x0f, 0x05 };
	ssize_t taken;
	const uint8_t *found;

	if (!code)
		return 0;
	taken = process_vm_readv(process, &here, 1, &there, 1, 0);
	if (taken <= 0)
		return 0;
	found = memmem(code, (size_t)taken, instruction, sizeof(instruction));
	return found ? area->start + (uint64_t)(found - code) : 0;
}

static struct error *refuse(const char *reason)
{
	return error_create(ERROR_NOT_SUPPORTED, "%s", reason);
}

/* An instruction syscall anywhere: in the kernel's library, or another. */
static uint64_t find_gadget(pid_t process, const struct memory_map *map)
{
	uint64_t found = 0;

	for (size_t i = 0; i < map->count && !found; i++)
		if (memory_area_has_path(&map->areas[i], "[vdso]"))
			found = find_in(process, &map->areas[i]);
	for (size_t i = 0; i < map->count && !found; i++)
		if ((map->areas[i].rights & PF_X) && !map->areas[i].device &&
		    !(map->areas[i].start >> 63))
			found = find_in(process, &map->areas[i]);
	return found;
}

/* Have the kernel leave out the thread's filter, which only root may. */
static bool suspend_filter(struct injection *injection)
{
	injection->options |= PTRACE_O_SUSPEND_SECCOMP;
	return ptrace(PTRACE_SETOPTIONS, injection->thread, NULL, (void *)injection->options) == 0;
}

struct error *injected_thread_find(const struct held_process *held, const struct memory_map *map,
				   struct injection *injection)
{
	unsigned int best = 0;

	injection->process = held->id;
	for (size_t i = 0; i < held->count && i < MOST_LOOKED_AT && best != FIT_BEST; i++) {
		uint64_t gadget = injection->gadget;
		unsigned int fitness = examine(&held->threads[i], &gadget);

		if (fitness <= best)
			continue;
		best = fitness;
		injection->thread = held->threads[i].id;
		injection->gadget = gadget;
	}
	if (!best)
		return refuse(
			"none of its threads waits, or runs 64-bit code outside of restartable sequences");
	if (!(best & FIT_UNFILTERED) && !suspend_filter(injection))
		return refuse(
			"its threads run under a seccomp filter, which only root may suspend");
	if (!system_call_is_at(injection->thread, injection->gadget))
		injection->gadget = find_gadget(held->id, map);
	if (!injection->gadget)
		return refuse("none of its code calls the kernel");
	return NULL;
}
