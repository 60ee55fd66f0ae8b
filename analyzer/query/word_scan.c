#include "analyzer/query/word_scan.h"

#include <string.h>

enum { PIECE = 1 << 20 /* bytes between looks for holes */ };

void word_scan_init(struct word_scan *scan, const struct image *image, uint64_t start, uint64_t end)
{
	*scan = (struct word_scan){ .image = image, .at = start, .end = end };
}

/* Go to where the dump has a word again; false if that is nowhere. */
static bool find_bytes(struct word_scan *scan)
{
	while (scan->end - scan->at >= sizeof(uint64_t)) {
		const struct region *region;

		scan->bytes = image_bytes(scan->image, scan->at, &scan->known);
		if (scan->known > PIECE)
			scan->known = PIECE;
		if (scan->bytes && scan->known >= sizeof(uint64_t))
			return true;
		region = image_find(scan->image, scan->at);
		if (!region || region->end >= scan->end)
			return false;
		scan->at = (region->end + 7) & ~UINT64_C(7);
		if (scan->at >= scan->end)
			return false;
	}
	return false;
}

/* Leave out what was never touched behind a piece. */
static void skip_hole(struct word_scan *scan)
{
	uint64_t next;

	scan->known = 0;
	if (scan->end - scan->at < PIECE)
		return;
	next = image_next_data(scan->image, scan->at);
	if (next > scan->at && next < scan->end)
		scan->at = (next + 7) & ~UINT64_C(7);
}

bool word_scan_next(struct word_scan *scan, uint64_t *ret_address, uint64_t *ret_word)
{
	if (scan->end - scan->at < sizeof(*ret_word))
		return false;
	if (scan->known < sizeof(*ret_word) && !find_bytes(scan))
		return false;
	memcpy(ret_word, scan->bytes, sizeof(*ret_word));
	*ret_address = scan->at;
	scan->at += sizeof(*ret_word);
	scan->bytes += sizeof(*ret_word);
	scan->known -= sizeof(*ret_word);
	if (scan->known < sizeof(*ret_word))
		skip_hole(scan);
	return true;
}

bool word_of_allocation(const struct analysis *analysis, allocation_id id, uint64_t offset,
			uint64_t *ret)
{
	const struct allocation_index *index = analysis_index(analysis);
	uint64_t size = allocation_size(index, id);

	if (size < sizeof(*ret) || offset > size - sizeof(*ret))
		return false;
	return image_read_u64(analysis_image(analysis), allocation_start(index, id) + offset, ret);
}
