/*
 * The frames of an ownership tree: as much of it as is shown, in order.
 *
 * Nodes without any of the measure are left out, and of more than a limit all but the largest: one
 * frame "(N more)" below each of the others stands for what is left out there. Frames are in
 * preorder, the largest child first; the first is the process. So the frames of a path come one
 * after another, and each frame's children follow it.
 */
#pragma once

#include "analyzer/owners/owners.h"

struct owner_frame {
	uint32_t parent; /* of the first: itself */
	uint32_t node;	 /* of the owners; of what stands for others: that of the parent */
	uint32_t depth;
	uint32_t end;	 /* number behind the last frame below it */
	uint32_t others; /* how many nodes it stands for; 0: it is one */
	struct owner_amount own[MEASURES], total[MEASURES];
};

struct frames {
	const struct owners *owners; /* borrowed */
	ARRAY(struct owner_frame) list;
	/*
	 * Indexed by node: its frame, or the one that stands for it; without any, that of its
	 * parent.
	 */
	ARRAY(uint32_t) of_node;
};

/* More than a person looks at. */
enum { MOST_FRAMES = 100000 };

/* At most so many, and those that stand for others; ret is all zeros. */
struct error *frames_make(const struct owners *owners, enum owner_measure measure, size_t most,
			  struct memory_account *account, struct frames *ret);
void frames_deinit(struct frames *frames);
DEFINE_DEINIT(frames_deinit, struct frames)

enum { FRAME_TEXT_SIZE = 1024 };

/* The kind or root of a frame; uses buffer if it stands for several. */
const char *frame_kind(const struct frames *frames, size_t number,
		       char buffer[static FRAME_TEXT_SIZE]);

/*
 * Like frame_kind(), but a single allocation has the name that the program uses for it, without
 * contents of memory.
 */
const char *frame_text(const struct frames *frames, size_t number,
		       char buffer[static FRAME_TEXT_SIZE]);
