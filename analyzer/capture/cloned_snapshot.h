/*
 * A core of a process that stands still only until it is cloned (clone.h).
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
#ifndef ANALYZER_CAPTURE_CLONED_SNAPSHOT_H
#define ANALYZER_CAPTURE_CLONED_SNAPSHOT_H

#include "analyzer/capture/snapshot.h"

/*
 * Take the core, provided for with a clone. *ret_obstacle, if not NULL in the end: why the process
 * cannot be cloned; then there is nothing in the file.
 */
struct error *cloned_snapshot_take(pid_t process, struct core_writer *core,
				   const struct progress *progress, struct snapshot *ret,
				   struct error **ret_obstacle);

#endif
