/*
 * Notes that heapcore adds to its own cores (own_notes.h): addresses that the kernel held for the
 * process, and its mappings, in the text of /proc/PID/smaps. All of it is untrusted.
 */
#pragma once

#include "analyzer/image/image.h"

size_t image_held_count(const struct image *image);
struct held_value image_held(const struct image *image, size_t number);

/* True if heapcore looked for values of that kind when it made the core. */
bool image_held_sought(const struct image *image, enum held_kind kind);

struct smaps_area {
	uint64_t start, end;
	/* Bytes; what is lazily free, MADV_FREE gave back: the kernel takes it when it likes. */
	uint64_t resident, locked, huge, lazily_free;
	bool shared;
};

struct smaps {
	struct smaps_area *areas; /* by address, without overlaps */
	size_t count;		  /* 0: the core does not have the text */
};

struct error *smaps_read(const struct image *image, struct smaps *ret);
void smaps_deinit(struct smaps *smaps);
DEFINE_DEINIT(smaps_deinit, struct smaps)

/* The area that holds address, or NULL. */
const struct smaps_area *smaps_find(const struct smaps *smaps, uint64_t address);
