#include "analyzer/classify/crystal/buffers.h"

void crystal_claim_buffers(struct reader *reader, const struct subject *subject,
			   enum crystal_role role)
{
	struct crystal_buffer buffers[CRYSTAL_BUFFERS];
	size_t count = crystal_type_of(reader->crystal, subject->id)
			       ? crystal_buffers_of(reader->crystal,
						    subject->id, buffers)
			       : 0;

	for (size_t i = 0; i < count; i++)
		if (buffers[i].role == role)
			reader_claim(reader, buffers[i].id,
				     subject->range.start);
}

void crystal_tell_buffer(struct reader *reader, struct memory_range range,
			 enum crystal_role role, const char *part,
			 const char *unit, struct pattern_facts *facts)
{
	struct crystal_buffer buffers[CRYSTAL_BUFFERS];
	allocation_id owner = allocation_find(reader->index, facts->owner);
	const char *phrase;
	size_t count =
		owner == NO_ALLOCATION
			? 0
			: crystal_buffers_of(reader->crystal, owner, buffers);

	phrase = crystal_phrase(reader->crystal, part, facts->owner);
	if (phrase)
		facts->role = phrase;
	for (size_t i = 0; i < count; i++) {
		if (buffers[i].role != role ||
		    allocation_start(reader->index, buffers[i].id) !=
			    range.start)
			continue;
		facts->unit = unit;
		facts->length = buffers[i].used;
		facts->has_capacity = true;
		facts->capacity = buffers[i].capacity;
	}
}
