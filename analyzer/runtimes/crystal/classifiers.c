/*
 * The classifiers of memory without a type number that objects hold: buffers and closure data.
 */
#include "analyzer/classify/classifier.h"
#include "analyzer/runtimes/crystal/crystal.h"

/* Claim the buffers that the object holds in the role asked for. */
static void inspect(struct reader *reader, const struct subject *subject)
{
	struct crystal *crystal = crystal_of(reader->runtimes);
	enum crystal_role role = (enum crystal_role)reader_kind(reader);
	struct crystal_buffer buffers[CRYSTAL_BUFFERS];
	size_t count = crystal_type_of(crystal, subject->id)
			       ? crystal_buffers_of(crystal, subject->id, buffers)
			       : 0;

	for (size_t i = 0; i < count; i++)
		if (buffers[i].role == role)
			reader_claim(reader, buffers[i].id, subject->range.start);
}

/* The buffer in range that the owner holds in the role asked for. */
static bool find_buffer(struct reader *reader, struct memory_range range, uint64_t owner,
			struct crystal_buffer *ret)
{
	struct crystal_buffer buffers[CRYSTAL_BUFFERS];
	allocation_id id = allocation_find(reader->index, owner);
	size_t count = id == NO_ALLOCATION
			       ? 0
			       : crystal_buffers_of(crystal_of(reader->runtimes), id, buffers);

	for (size_t i = 0; i < count; i++) {
		*ret = buffers[i];
		if (ret->role == (enum crystal_role)reader_kind(reader) &&
		    allocation_start(reader->index, ret->id) == range.start)
			return true;
	}
	return false;
}

/* Spare room may be anywhere in it. */
static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	static const struct {
		const char *part, *unit;
	} phrases[] = {
		[ROLE_ARRAY_ELEMENTS] = { "the elements", "elements" },
		[ROLE_DEQUE_ELEMENTS] = { "the elements", "elements" },
		[ROLE_HASH_ENTRIES] = { "the entries", "entries" },
		[ROLE_HASH_INDICES] = { "the index", "places" },
	};
	enum crystal_role role = (enum crystal_role)reader_kind(reader);
	const char *phrase =
		crystal_phrase(crystal_of(reader->runtimes), phrases[role].part, facts->owner);
	struct crystal_buffer buffer;

	if (phrase)
		facts->role = phrase;
	if (!find_buffer(reader, range, facts->owner, &buffer))
		return;
	facts->unit = phrases[role].unit;
	facts->length = buffer.used;
	facts->has_capacity = true;
	facts->capacity = buffer.capacity;
	facts->is_measured = buffer.capacity > 0 && buffer.used <= buffer.capacity;
	facts->live_end = range_size(range);
	if (facts->is_measured)
		facts->scattered = (buffer.capacity - buffer.used) *
				   crystal_element_size(facts->live_end, buffer.capacity);
}

#define CRYSTAL_BUFFER(...)                                                           \
	.runtime = &runtime_crystal, .strength = STRENGTH_MARKED, .inspect = inspect, \
	.tell = tell, __VA_ARGS__

CLASSIFIER(crystal_array_buffer, "CrystalArrayBuffer", "the elements of an Array of Crystal",
	   "the elements of the Array",
	   CRYSTAL_BUFFER(.kind = ROLE_ARRAY_ELEMENTS, .measures = true));
CLASSIFIER(crystal_deque_buffer, "CrystalDequeBuffer", "the elements of a Deque of Crystal",
	   "the elements of the Deque",
	   CRYSTAL_BUFFER(.kind = ROLE_DEQUE_ELEMENTS, .measures = true));
CLASSIFIER(crystal_hash_entries, "CrystalHashEntries", "the entries of a Hash or Set of Crystal",
	   "the entries of the Hash", CRYSTAL_BUFFER(.kind = ROLE_HASH_ENTRIES, .measures = true));
CLASSIFIER(crystal_hash_indices, "CrystalHashIndices", "the index of a Hash or Set of Crystal",
	   "the index of the Hash", CRYSTAL_BUFFER(.kind = ROLE_HASH_INDICES));

/* A Proc: | function | captured variables | */
static void match_closure(struct reader *reader, const struct reference *reference)
{
	uint64_t function;

	if (reference_words(reference, -1, 1, &function) &&
	    crystal_is_function(crystal_of(reader->runtimes), function) &&
	    !crystal_type_of(crystal_of(reader->runtimes), reference->target))
		reader_claim(reader, reference->target, reference->address - 8);
}

CLASSIFIER(crystal_closure, "CrystalClosure", "the variables that a block of Crystal captured",
	   "the variables captured by the Proc", .strength = STRENGTH_RELATED,
	   .runtime = &runtime_crystal, .match = match_closure);
