#include "analyzer/graph/root_scan.h"

/* Look up the words collected so far. False: found wants no more. */
static bool look_up(struct root_scan *scan)
{
	allocation_id targets[MOST_ADDRESSES];
	size_t count = scan->count;

	scan->count = 0;
	allocation_find_many(scan->index, scan->words, count, &scan->hint, targets);
	for (size_t i = 0; i < count; i++)
		if (targets[i] != NO_ALLOCATION &&
		    !scan->found(scan->data, scan->places[i], targets[i]))
			return false;
	return true;
}

/* The word at address may be a reference. */
static bool collect(struct root_scan *scan, uint64_t address, const uint8_t *bytes)
{
	scan->places[scan->count] = address;
	memcpy(&scan->words[scan->count++], bytes, sizeof(*scan->words));
	return scan->count < MOST_ADDRESSES || look_up(scan);
}

static bool scan_words(struct root_scan *scan, uint64_t address, const uint8_t *bytes,
		       uint64_t size)
{
	for (uint64_t i = 0; i + 8 <= size; i += FILTER_BYTES) {
		uint64_t left = size - i;
		size_t words = left < FILTER_BYTES ? left / 8 : FILTER_WORDS;
		uint64_t mask = word_filter_mask(&scan->filter, bytes + i, words);

		for (; mask; mask &= mask - 1) {
			uint64_t at = i + 8 * (uint64_t)__builtin_ctzll(mask);

			if (!collect(scan, address + at, bytes + at))
				return false;
		}
	}
	return true;
}

static bool scan_code(struct root_scan *scan, uint64_t address, const uint8_t *bytes, uint64_t size)
{
	const struct heap_bounds bounds = scan->filter.bounds;

	for (uint64_t i = 0; i + 8 <= size; i++) {
		uint64_t word;

		memcpy(&word, bytes + i, sizeof(word));
		if (heap_bounds_hold(&bounds, word) && !collect(scan, address + i, bytes + i))
			return false;
	}
	return true;
}

void root_scan_range(struct root_scan *scan, struct memory_range range, bool is_code)
{
	if (!is_code)
		range.start = (range.start + 7) & ~UINT64_C(7);
	while (range.start < range.end) {
		uint64_t size;
		const uint8_t *bytes = image_bytes(scan->image, range.start, &size);

		if (!bytes)
			break;
		if (size > range.end - range.start)
			size = range.end - range.start;
		if (!(is_code ? scan_code : scan_words)(scan, range.start, bytes, size))
			return;
		range.start += size;
	}
	look_up(scan);
}
