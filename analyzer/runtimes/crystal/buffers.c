/*
 * The classifiers of buffers that objects hold.
 */
#include "analyzer/classify/classifier.h"
#include "analyzer/runtimes/crystal/crystal.h"

/* Claim the buffers of the role asked for that the allocation, an object, holds. */
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

static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	static const struct {
		const char *part, *unit;
	} told[] = {
		[ROLE_ARRAY_ELEMENTS] = { "the elements", "elements" },
		[ROLE_DEQUE_ELEMENTS] = { "the elements", "elements" },
		[ROLE_HASH_ENTRIES] = { "the entries", "entries" },
		[ROLE_HASH_INDICES] = { "the index", "places" },
	};
	struct crystal *crystal = crystal_of(reader->runtimes);
	enum crystal_role role = (enum crystal_role)reader_kind(reader);
	struct crystal_buffer buffers[CRYSTAL_BUFFERS];
	allocation_id owner = allocation_find(reader->index, facts->owner);
	const char *phrase;
	size_t count = owner == NO_ALLOCATION ? 0 : crystal_buffers_of(crystal, owner, buffers);

	phrase = crystal_phrase(crystal, told[role].part, facts->owner);
	if (phrase)
		facts->role = phrase;
	for (size_t i = 0; i < count; i++) {
		if (buffers[i].role != role ||
		    allocation_start(reader->index, buffers[i].id) != range.start)
			continue;
		facts->unit = told[role].unit;
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

/* Its spare room may be anywhere in it. */
static bool measure(struct reader *reader, struct memory_range range, uint64_t owner,
		    struct pattern_extent *ret)
{
	enum crystal_role role = (enum crystal_role)reader_kind(reader);
	struct crystal_buffer buffers[CRYSTAL_BUFFERS];
	uint64_t size = range_size(range);
	allocation_id id = allocation_find(reader->index, owner);
	size_t count = id == NO_ALLOCATION
			       ? 0
			       : crystal_buffers_of(crystal_of(reader->runtimes), id, buffers);

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

#define CRYSTAL_BUFFER(...)                                                                   \
	{                                                                                     \
		.runtime = &runtime_crystal, .strength = STRENGTH_MARKED, .inspect = inspect, \
		.tell = tell, __VA_ARGS__                                                     \
	}

const struct classifier classifier_crystal_array_buffer =
	CRYSTAL_BUFFER(.name = "CrystalArrayBuffer", .kind = ROLE_ARRAY_ELEMENTS,
		       .measure = measure, .summary = "the elements of an Array of Crystal",
		       .role = "the elements of the Array");

const struct classifier classifier_crystal_deque_buffer =
	CRYSTAL_BUFFER(.name = "CrystalDequeBuffer", .kind = ROLE_DEQUE_ELEMENTS,
		       .measure = measure, .summary = "the elements of a Deque of Crystal",
		       .role = "the elements of the Deque");

const struct classifier classifier_crystal_hash_entries =
	CRYSTAL_BUFFER(.name = "CrystalHashEntries", .kind = ROLE_HASH_ENTRIES, .measure = measure,
		       .summary = "the entries of a Hash or Set of Crystal",
		       .role = "the entries of the Hash");

const struct classifier classifier_crystal_hash_indices =
	CRYSTAL_BUFFER(.name = "CrystalHashIndices", .kind = ROLE_HASH_INDICES,
		       .summary = "the index of a Hash or Set of Crystal",
		       .role = "the index of the Hash");
