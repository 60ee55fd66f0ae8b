/*
 * The mappings of the process by the text of /proc/PID/smaps, which cores by heapcore have. It is
 * untrusted.
 */
#ifndef ANALYZER_IMAGE_SMAPS_H
#define ANALYZER_IMAGE_SMAPS_H

#include "analyzer/image/image.h"

struct smaps_area {
	uint64_t start, end;
	uint64_t resident; /* bytes */
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

#endif
