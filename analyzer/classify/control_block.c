#include "analyzer/classify/control_block.h"

enum { MOST = 1 << 30 };

/* libc++: a count of 64 bits, which is small, or -1 where libstdc++ has two of 32. */
static bool read_long(struct view *view, uint64_t start, uint64_t uses, struct shared_counts *ret)
{
	uint64_t weak;

	if (!view_word(view, start + 2 * sizeof(weak), &weak))
		return false;
	*ret = (struct shared_counts){ uses + 1, weak + (uses + 1 == 0) };
	return true;
}

bool control_block_read(struct view *view, uint64_t start, struct shared_counts *ret)
{
	const unsigned int width = image_word_size(view->image);
	uint32_t counts[2]; /* uses, weak */
	uint64_t both;
	bool is_known;

	if (!view_read(view, start + width, counts, sizeof(counts)))
		return false;
	memcpy(&both, counts, sizeof(both));
	if (width == sizeof(both) && both + 1 <= MOST) {
		is_known = read_long(view, start, both, ret);
	} else {
		*ret = (struct shared_counts){ counts[0], counts[1] - (counts[0] > 0) };
		is_known = true;
	}
	return is_known && ret->uses <= MOST && ret->weak <= MOST;
}
