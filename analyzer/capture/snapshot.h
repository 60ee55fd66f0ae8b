/*
 * A core of a process that runs, and goes on running. It stands still until its memory is copied;
 * or, if that takes long, until it is cloned (clone.h).
 *
 * The process is held and cloned by the keeper, a process in the same memory as heapcore, but in a
 * session of its own:
 *
 *	heapcore				keeper
 *	 │ starts				 │ holds the process, reads
 *	 │					 │ registers, plans, clones
 *	 │ copies what the clone lacks	<──	 │
 *	 │				──>	 │ releases the process
 *	 │ writes, reading the clone	<──	 │
 *	 │				──>	 │ kills the clone
 *
 * For if heapcore is killed, by SIGKILL at any moment, the keeper puts all in order: the process
 * never goes on with the registers of a call that it was made to make (injection.h). If the keeper
 * itself is killed, the kernel kills the clone.
 */
#pragma once

#include "analyzer/capture/core.h"

/* Decides whether to clone the process, so that it runs on while the clone is written. */
enum clone_choice {
	CLONE_BY_NEED, /* if it would stand still for long, and can be cloned */
	CLONE_NEVER,
	CLONE_ALWAYS, /* or fail */
	/*
	 * Never, and without memory for a copy, whose provision takes time: for a process that may
	 * soon be killed for want of memory, which it is not while it stands still.
	 */
	STOP_AT_ONCE,
};

enum { REASON_SIZE = 128 };

struct snapshot {
	struct core_sizes sizes;
	double stopped; /* seconds that the process stood still */
	bool cloned;
	char not_cloned[REASON_SIZE]; /* why not, if there was need; or "" */
};

struct error *snapshot_take(pid_t process, const struct core_options *options,
			    enum clone_choice choice, struct snapshot *ret);
