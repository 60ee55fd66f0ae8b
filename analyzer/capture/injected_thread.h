/*
 * Which thread of a held process can make a system call for heapcore.
 */
#ifndef ANALYZER_CAPTURE_INJECTED_THREAD_H
#define ANALYZER_CAPTURE_INJECTED_THREAD_H

#include "analyzer/capture/injection.h"
#include "analyzer/capture/process.h"
#include "analyzer/capture/threads.h"

/*
 * Choose the thread and an instruction syscall, that of the injection if it is one, and add to the
 * options what that thread needs. Fails, with the reason, if there is none.
 */
struct error *injected_thread_find(const struct held_process *held, const struct memory_map *map,
				   struct injection *injection);

/*
 * Whether the thread, which was interrupted, can make a call where it is, apart from any seccomp
 * filter. *ret_call: it waits in one; then *gadget is the instruction. Allocates nothing.
 */
bool injected_thread_fits(pid_t thread, uint64_t *gadget, bool *ret_call);

#endif
