/*
 * Tells which of the process's memory was resident: in RAM, and so in its RSS.
 *
 * How well that is known depends on the core. One by `heapcore snap` has what the kernel said of
 * each mapping (smaps): its resident bytes are exact, and which of its pages they are is known of
 * all but pages of zeros and of files. A core by the kernel has holes where anonymous memory was
 * never touched; once packed, it has lost them. Of files, and in a core that has no such holes,
 * nobody knows: there pages of files count as resident, so this is an upper bound, and anonymous
 * pages do unless they are all zeros.
 *
 *	mapping     |------- resident -------|-- not --|-- resident --|
 *	spans       one after the other, of all that is mapped
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/base/progress.h"
#include "analyzer/image/kernel_notes.h"

enum residency_source {
	RESIDENCY_SMAPS, /* told by the kernel */
	RESIDENCY_HOLES, /* by the core's holes */
	RESIDENCY_ZEROS, /* a guess: what is not zero */
};

struct span {
	uint64_t start, end;
	bool resident;
	bool shared; /* with other processes; only smaps tell */
};

/* The source of that knowledge; no memory is read for it. */
enum residency_source residency_told_by(const struct image *image);

struct residency {
	const struct image *image;
	enum residency_source source;
	ARRAY(struct span) spans; /* all that is mapped, by address, cut wherever a region ends */
	struct smaps smaps;
	/*
	 * Bytes of zeros in anonymous memory that are not counted as resident though they may have
	 * been; 0 where smaps tell.
	 */
	uint64_t doubt;
	uint64_t assumed; /* bytes of files that count as resident as nobody knows better */
};

/* Goes over the memory once where only its contents tell. */
struct error *residency_create(const struct image *image, struct memory_account *account,
			       struct progress *progress, struct residency **ret);
void residency_destroy(struct residency *residency);
DEFINE_CLEANUP(residency_destroy, struct residency *)

/* The first span that ends above address, or NULL. */
const struct span *residency_above(const struct residency *residency, uint64_t address);

struct extent_sum {
	uint64_t mapped, resident; /* bytes */
};

/* Like residency_sum(), for what may be in several spans. */
struct extent_sum residency_sum_spans(const struct residency *residency, uint64_t start,
				      uint64_t end, size_t *hint);

/* How much of [start, end) is mapped, and resident. *hint is 0 at first. */
static inline struct extent_sum residency_sum(const struct residency *residency, uint64_t start,
					      uint64_t end, size_t *hint)
{
	const struct span *span = residency->spans.items + *hint;

	if (*hint >= residency->spans.count || start < span->start || end > span->end ||
	    start > end)
		return residency_sum_spans(residency, start, end, hint);
	return (struct extent_sum){ end - start, span->resident ? end - start : 0 };
}
