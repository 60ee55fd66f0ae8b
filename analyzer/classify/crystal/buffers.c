#include "analyzer/classify/crystal/buffers.h"

void crystal_claim_buffers(struct reader *reader, const struct subject *subject,
			   enum crystal_role role)
{
	struct crystal_buffer buffers[CRYSTAL_BUFFERS];
	size_t count = crystal_type_of(reader->crystal, subject->id)
			       ? crystal_buffers_of(reader->crystal, subject->id, buffers)
			       : 0;

	for (size_t i = 0; i < count; i++)
		if (buffers[i].role == role)
			reader_claim(reader, buffers[i].id, subject->range.start);
}

void crystal_tell_buffer(struct reader *reader, struct memory_range range, enum crystal_role role,
			 const char *part, const char *unit, struct pattern_facts *facts)
{
	struct crystal_buffer buffers[CRYSTAL_BUFFERS];
	allocation_id owner = allocation_find(reader->index, facts->owner);
	const char *phrase;
	size_t count =
		owner == NO_ALLOCATION ? 0 : crystal_buffers_of(reader->crystal, owner, buffers);

	phrase = crystal_phrase(reader->crystal, part, facts->owner);
	if (phrase)
		facts->role = phrase;
	for (size_t i = 0; i < count; i++) {
		if (buffers[i].role != role ||
		    allocation_start(reader->index, buffers[i].id) != range.start)
			continue;
		facts->unit = unit;
		facts->length = buffers[i].used;
		facts->has_capacity = true;
		facts->capacity = buffers[i].capacity;
	}
}

/*
 * The size of an element, of which there are capacity in so many bytes. The collector gives up to
 * 16 bytes more than asked for; elements of a word or more are whole words, smaller ones powers of
 * two.
 */
static uint64_t element_size(uint64_t size, uint64_t capacity)
{
	uint64_t most = size / capacity, element = 1;

	if (most >= sizeof(uint64_t))
		return most - most % sizeof(uint64_t);
	while (2 * element <= most)
		element *= 2;
	return most ? element : 0;
}

bool crystal_measure_buffer(struct reader *reader, struct memory_range range, uint64_t owner,
			    enum crystal_role role, struct pattern_extent *ret)
{
	struct crystal_buffer buffers[CRYSTAL_BUFFERS];
	uint64_t size = range_size(range);
	allocation_id id = allocation_find(reader->index, owner);
	size_t count = id == NO_ALLOCATION ? 0 : crystal_buffers_of(reader->crystal, id, buffers);

	for (size_t i = 0; i < count; i++) {
		if (buffers[i].role != role || buffers[i].capacity == 0 ||
		    buffers[i].used > buffers[i].capacity ||
		    allocation_start(reader->index, buffers[i].id) != range.start)
			continue;
		ret->live_end = size;
		ret->spare = (buffers[i].capacity - buffers[i].used) *
			     element_size(size, buffers[i].capacity);
		return true;
	}
	return false;
}
