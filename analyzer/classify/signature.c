#include "analyzer/classify/signature.h"

#include "analyzer/classify/control_block.h"
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

/* Most allocations begin with the same few words. */
static const struct known_signature *look_at(struct signature_reader *reader,
					     uint64_t word)
{
	struct known_signature *known =
		&reader->known[word / 16 % KNOWN_SIGNATURES];

	if (known->word == word)
		return known;
	*known = (struct known_signature){
		.word = word,
		.object = NO_CONTROL_BLOCK,
		.constant = is_constant(reader, word),
	};
	if (known->constant && reader->classes)
		known->object = classes_control_block(reader->classes, word);
	return known;
}

/* The vtable of the object inside of a control block, or that of the block. */
static uint64_t object_vtable(struct signature_reader *reader,
			      const struct known_signature *known,
			      uint64_t start, uint64_t size)
{
	uint64_t word;

	if (size < known->object + sizeof(word) ||
	    !view_word(&reader->view, start + known->object, &word) ||
	    !classes_is_vtable(reader->classes, word))
		return known->word;
	return word;
}

uint64_t signature_candidate(struct signature_reader *reader, allocation_id id,
			     struct memory_range range)
{
	const struct known_signature *known;
	uint64_t word, start;

	if (reader->crystal) {
		word = crystal_type_of(reader->crystal, id);
		if (word)
			return word;
	}
	if (!bitmap_get(allocation_used(reader->index), id) ||
	    range.end - range.start < sizeof(word))
		return 0;
	start = signature_object(reader, id, range.start);
	if (!view_word(&reader->view, start, &word) || word == 0)
		return 0;
	known = look_at(reader, word);
	if (!known->constant)
		return 0;
	if (known->object == 0 || known->object == NO_CONTROL_BLOCK)
		return word;
	return object_vtable(reader, known, start, range.end - start);
}

bool signature_is_right(const struct signature_reader *reader,
			uint64_t candidate)
{
	return !reader->judge || (reader->crystal && candidate < MOST_TYPES) ||
	       signature_judge_accepts(reader->judge, candidate);
}

uint64_t signature_read(struct signature_reader *reader, allocation_id id,
			struct memory_range range)
{
	uint64_t candidate = signature_candidate(reader, id, range);

	return candidate && signature_is_right(reader, candidate) ? candidate
								  : 0;
}
