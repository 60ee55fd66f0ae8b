/*
 * A copy-on-write clone of a process that is held, from which its memory can be read when the
 * process runs on.
 *
 *	process P ── a thread of it makes ── middle, in the same memory
 *	                                        │ makes
 *	                                     the clone
 *
 * The middle process is killed at once, and P collects it unseen, by wait4(); so the clone is none
 * of P's children: neither wait() nor SIGCHLD tells P of it. Where orphans would come back to P, as
 * it is the first process of a container or has asked for them, P makes the clone itself, and
 * collects it in a second, short stop when it is no longer needed.
 *
 * The kernel kills the clone if heapcore dies. The clone never runs any code of P. It lacks what is
 * shared with other processes, what MADV_DONTFORK excludes, and has zeros for MADV_WIPEONFORK.
 */
#pragma once

#include "analyzer/capture/injection.h"
#include "analyzer/capture/threads.h"

struct process_clone {
	pid_t id; /* 0: none */
	pid_t process;
	pid_t named;  /* as the process calls it, if that must collect it */
	pid_t thread; /* of the process, that made it */
	uint64_t gadget;
	long options;		      /* of its injections */
	const struct memory_map *map; /* of the process, borrowed */
	struct machine_code code;
	struct way_back way;
};

/*
 * Why the process should not be cloned, as far as that can be known before it is held:
 * ERROR_NOT_SUPPORTED with the reason, or NULL. The clone shares size bytes of memory with the
 * process, until that writes to them.
 */
struct error *clone_obstacle(pid_t process, const struct memory_map *map, uint64_t size);

/*
 * While the process runs: what can be found out then. The map lasts as long as the clone, and may
 * change while the process is held.
 */
void process_clone_prepare(pid_t process, const struct memory_map *map, struct process_clone *ret);

/*
 * Only the thread that holds the process can do it. Fails, with the reason, with the process as it
 * was before.
 */
struct error *process_clone_create(const struct held_process *held, struct process_clone *clone);

/*
 * The process has been released: let go of its files, which would otherwise stay open, and of its
 * group and session.
 */
struct error *process_clone_isolate(struct process_clone *clone);

/*
 * Kill the clone, if there is one. That it was killed before, so what was read of it last is not to
 * be relied on, is *error, unless that is set already or error is NULL. Allocates nothing but that.
 */
void process_clone_end(struct process_clone *clone, struct error **error);
