#include "analyzer/classify/signature.h"

#include "analyzer/heap/debug_header.h"

uint64_t signature_object(const struct signature_reader *reader,
			  allocation_id id, uint64_t start)
{
	struct debug_header header;

	if (reader->managed && bitmap_get(reader->managed, id) &&
	    debug_header_read(reader->view.image, start, &header))
		start += DEBUG_HEADER_SIZE;
	return start;
}

/* The region that the word leads to, or NULL: most lead to the same heap. */
static const struct region *find_target(struct signature_reader *reader,
					uint64_t word)
{
	const struct region *region = reader->target;

	if (region && word - region->start < region->end - region->start)
		return region;
	region = image_find(reader->view.image, word);
	if (region)
		reader->target = region;
	return region;
}

/* Or the vtable of a program whose relocated data stayed writable. */
static bool is_constant(struct signature_reader *reader, uint64_t word)
{
	const struct region *region = find_target(reader, word);

	if (!region || !(region->rights & RIGHT_READ))
		return false;
	return !(region->rights & RIGHT_WRITE) ||
	       (region->mapping && reader->classes &&
		classes_is_vtable(reader->classes, word));
}

uint64_t signature_read(struct signature_reader *reader, allocation_id id,
			struct memory_range range)
{
	uint64_t word;

	if (reader->crystal) {
		word = crystal_type_of(reader->crystal, id);
		if (word)
			return word;
	}
	if (!bitmap_get(allocation_used(reader->index), id) ||
	    range.end - range.start < sizeof(word) ||
	    !view_word(&reader->view, signature_object(reader, id, range.start),
		       &word))
		return 0;
	return is_constant(reader, word) ? word : 0;
}
