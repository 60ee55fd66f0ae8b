#include "analyzer/classify/signature.h"

#include "analyzer/classify/control_block.h"
#include "analyzer/heap/debug_header.h"

uint64_t signature_object(const struct signature_reader *reader, allocation_id id, uint64_t start)
{
	struct debug_header header;

	if (reader->managed && bitmap_get(reader->managed, id) &&
	    debug_header_read(reader->view.image, start, &header))
		return header.object;
	return start;
}

/* The region that the word leads to, or NULL: most lead to the same heap. */
static const struct region *find_target(struct signature_reader *reader, uint64_t word)
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
	       (region->mapping && reader->classes && classes_is_vtable(reader->classes, word));
}

/* Most allocations begin with the same few words. */
static const struct known_signature *look_at(struct signature_reader *reader, uint64_t word)
{
	struct known_signature *known = &reader->known[word / 16 % KNOWN_SIGNATURES];

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
static uint64_t object_vtable(struct signature_reader *reader, const struct known_signature *known,
			      uint64_t start, uint64_t size)
{
	uint64_t word;

	if (size < known->object + sizeof(word) ||
	    !view_word(&reader->view, start + known->object, &word) ||
	    !classes_is_vtable(reader->classes, word))
		return known->word;
	return word;
}

/* Whether an object may begin with it, not a subobject behind its start. */
static bool is_whole(struct signature_reader *reader, uint64_t word)
{
	uint64_t to_top;

	return is_constant(reader, word) &&
	       image_read_u64(reader->view.image, word - 16, &to_top) && to_top == 0 &&
	       classes_is_class(reader->classes, word);
}

/*
 * Whether the block, which begins with an object of that class, holds others that no object can be
 * made of: twice its own class; or two classes, if blocks of this size begin with so many that it
 * is none's.
 */
static bool is_slab(struct signature_reader *reader, uint64_t vtable, uint64_t start, uint64_t size)
{
	enum { WORD = sizeof(uint64_t), SEARCHED = 1 << 16, NEAR_BITS = 32 };
	uint64_t end = size < SEARCHED ? size : SEARCHED, other = 0, word;
	unsigned int alike = 0;
	bool several = false;

	if (!reader->judge || !classes_is_class(reader->classes, vtable))
		return false;
	for (uint64_t i = 2 * WORD; i + WORD <= end && alike < 2; i += WORD) {
		if (!view_word(&reader->view, start + i, &word))
			return false;
		alike += word == vtable;
		if (several || word == vtable || word % WORD != 0 ||
		    (word ^ vtable) >> NEAR_BITS != 0 || !is_whole(reader, word))
			continue;
		several = other && word != other;
		other = word;
	}
	return alike >= 2 || (several && signature_judge_is_size_of_many(reader->judge, size));
}

uint64_t signature_candidate(struct signature_reader *reader, allocation_id id,
			     struct memory_range range)
{
	const struct known_signature *known;
	uint64_t word, start;

	if (reader->runtimes) {
		word = runtimes_class_of(reader->runtimes, id);
		if (word)
			return word;
	}
	if (!bitmap_get(allocation_used(reader->index), id) ||
	    range.end - range.start < sizeof(word))
		return 0;
	start = signature_object(reader, id, range.start);
	if (!(reader->kept && kept_words_find(reader->kept, id, &word)) &&
	    !view_word(&reader->view, start, &word))
		return 0;
	if (word == 0)
		return 0;
	known = look_at(reader, word);
	if (!known->constant)
		return 0;
	if (known->object != 0 && known->object != NO_CONTROL_BLOCK)
		return object_vtable(reader, known, start, range.end - start);
	return range.end - start >= LEAST_SLAB && is_slab(reader, word, start, range.end - start)
		       ? slab_signature(word)
		       : word;
}

bool signature_is_right(const struct signature_reader *reader, uint64_t candidate)
{
	return !reader->judge || runtimes_have_class(reader->runtimes, candidate) ||
	       signature_judge_accepts(reader->judge, candidate);
}

uint64_t signature_read(struct signature_reader *reader, allocation_id id,
			struct memory_range range)
{
	uint64_t candidate = signature_candidate(reader, id, range);

	return candidate && signature_is_right(reader, candidate) ? candidate : 0;
}
