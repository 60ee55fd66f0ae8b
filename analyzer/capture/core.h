/*
 * A process that stands still, written as an ELF core.
 *
 * The core has what an analysis needs, which is what the kernel writes by default: private memory,
 * also of files once it was written to, memory shared without a name, and the first page of
 * programs and libraries; and, beyond that, what is writable and shared with a file. Pages that
 * were never touched, or hold zeros only, are holes of the file.
 *
 *	| headers | notes | segment | segment, | ... |
 *	                            |  as long as its mapping
 *
 * So that the process stands still no longer than needed, memory that is asked for and touched
 * beforehand takes the copy; the file is written when the process runs on.
 *
 *	core_survey()	  how much will it be?
 *	core_provide()	  memory for it
 *	process_hold()
 *	core_describe()   threads, mappings, what is to be copied
 *	core_copy()	  by all processors
 *	process_release()
 *	core_write()
 *
 * Or a clone of the process keeps its memory (clone.h): then core_copy() copies only what the clone
 * lacks, and core_write() reads the rest from the clone.
 */
#pragma once

#include "analyzer/base/progress.h"
#include "analyzer/capture/machine.h"
#include "analyzer/capture/threads.h"

#include <stdbool.h>
#include <stdint.h>

struct core_writer;

struct core_options {
	int fd;	       /* of the file, empty; borrowed */
	bool complete; /* with what MADV_DONTDUMP keeps out of cores */
	bool portable; /* with what names need of files; see portable.h */
	struct progress *progress;
	/* of this processor, which may take long to tell; NULL: to be asked */
	const struct xstate_layout *layout;
};

/* Sizes of a written core. */
struct core_sizes {
	uint64_t file;	     /* bytes, holes included */
	uint64_t copied;     /* bytes of pages that hold something */
	uint64_t excluded;   /* bytes kept out by MADV_DONTDUMP */
	uint64_t unreadable; /* bytes that could not be read */
	/* bytes of writable shared files that are not in memory */
	uint64_t not_resident;
	size_t threads;
	size_t unstoppable; /* threads without registers */
};

struct error *core_create(const struct core_options *options, struct core_writer **ret);
void core_destroy(struct core_writer *core);
DEFINE_CLEANUP(core_destroy, struct core_writer *)

/* Look at how much the process has now, while it runs. */
struct error *core_survey(struct core_writer *core, pid_t process);

/* The map that was found, and the bytes to copy; both live as long as core. */
const struct memory_map *core_surveyed(const struct core_writer *core, uint64_t *ret_size);

/* Seconds that the process will about stand still for, without a clone. */
double core_expected_stop(const struct core_writer *core);

/*
 * Provide memory for what is to be copied, if the machine has plenty; without, core_copy() writes
 * straight to the file. cloned: there will be a clone.
 */
struct error *core_provide(struct core_writer *core, bool cloned);

/*
 * Find out all but what is in memory, by the thread that holds the process. signal is what the
 * first thread of it is about to die of, or 0.
 */
struct error *core_describe(struct core_writer *core, const struct held_process *held, int signal);

/* Called by any thread, while the process is stopped. */
struct error *core_copy(struct core_writer *core);

/* Read the rest from that process, to which the caller holds on. */
struct error *core_take_clone(struct core_writer *core, pid_t clone);

/* Complete the file. The process is no longer needed. */
struct error *core_write(struct core_writer *core, struct core_sizes *ret);
