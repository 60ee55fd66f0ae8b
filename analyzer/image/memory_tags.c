#include "analyzer/image/memory_tags.h"

#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TAG_SHIFT = 56, TAGS = 16, WORD = 8, PIECE = 1 << 16 };

DEFINE_COMPARE(compare_ranges, struct note_range, ASCENDING(start))

/* The last tagged memory that begins at or below address, or NULL. */
static const struct note_range *tagged_below(const struct image *image, uint64_t address)
{
	return LIST_LAST(image->tagged, image->tagged_count, start, address);
}

bool image_has_memory_tags(const struct image *image, uint64_t address)
{
	const struct note_range *below = tagged_below(image, address);

	return below && address < below->end;
}

static void clear_tag(const struct image *image, uint64_t *word)
{
	uint64_t tag = *word >> TAG_SHIFT, address = *word & (UINT64_MAX >> (64 - TAG_SHIFT));
	const struct note_range *below;

	if (tag == 0 || tag >= TAGS)
		return;
	below = tagged_below(image, address);
	/* The byte behind an object has the object's tag, too. */
	if (below && address <= below->end)
		*word = address;
}

/* The offset of the next data in the dump's file from that one on; end: there is none. */
static uint64_t next_data(const struct image *image, uint64_t offset, uint64_t end)
{
	off_t data = lseek(image->fd, (off_t)offset, SEEK_DATA);

	if (data < 0)
		return errno == ENXIO ? end : offset;
	return (uint64_t)data < end ? (uint64_t)data : end;
}

/* Only words with tags are written to: other pages remain those of the file. */
static void clear_bytes(const struct image *image, uint64_t offset, uint64_t size)
{
	uint64_t end = size - size % WORD;

	for (uint64_t at = 0; at < end; at += WORD) {
		uint64_t word, before;

		if (at % PIECE == 0) {
			uint64_t data = next_data(image, offset + at, offset + end);

			if (data == offset + end)
				return;
			at = (data - offset) / PIECE * PIECE;
		}
		memcpy(&before, image->bytes + offset + at, WORD);
		word = before;
		clear_tag(image, &word);
		if (word != before)
			memcpy(image->bytes + offset + at, &word, WORD);
	}
}

void image_clear_memory_tags(struct image *image)
{
	if (image->tagged_count == 0)
		return;
	if (mprotect(image->bytes, image->size, PROT_READ | PROT_WRITE) < 0 && errno == ENOMEM) {
		findings_add(
			image->findings, FINDING_INCOMPLETE,
			"memory is limited too much to remove tags (MTE) from pointers: what they refer to looks leaked");
		return;
	}
	SORT(image->tagged, image->tagged_count, compare_ranges);
	list_for_each(region, image->regions, image->region_count)
		if (region->bytes && region->origin == REGION_CORE &&
		    (region->rights & RIGHT_WRITE))
			clear_bytes(image, (uint64_t)(region->bytes - image->bytes),
				    region->end - region->start);
	list_for_each(thread, image->threads, image->thread_count)
		for (size_t i = 0; i < image->arch->register_count; i++)
			clear_tag(image, &thread->registers[i]);
}
