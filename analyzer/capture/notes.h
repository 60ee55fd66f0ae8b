/*
 * The notes of a core: threads, mapped files, the auxiliary vector.
 *
 * They come in the order in which the kernel writes them. Ours, of analyzer/image/own_notes.h, are
 * the last.
 */
#pragma once

#include "analyzer/capture/held.h"
#include "analyzer/capture/machine.h"
#include "analyzer/capture/threads.h"
#include "analyzer/image/own_notes.h"

struct notes {
	uint8_t *bytes;
	size_t size, room;
};

/*
 * Notes of a process that stands still. signal is what its first thread is about to die of, or 0;
 * layout is that of this processor.
 */
struct error *notes_write(const struct held_process *held, int signal, const struct memory_map *map,
			  const struct held_values *values, const struct xstate_layout *layout,
			  struct notes *ret);
/* Add ranges of memory in a note of ours of that type, if there are any. */
struct error *notes_add_ranges(struct notes *notes, uint32_t type, const struct note_range *ranges,
			       size_t count);
void notes_deinit(struct notes *notes);
DEFINE_DEINIT(notes_deinit, struct notes)
