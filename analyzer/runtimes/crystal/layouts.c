#include "analyzer/runtimes/crystal/crystal.h"

#include <string.h>

enum {
	GRANULE = 16,
	SMALLEST_HASH = 3, /* the power of two of its indices */
	LARGEST_HASH = 31,
	HASH_SIZE = 56, /* of the object */
};

/* An Array or a Deque. */
struct sequence {
	uint32_t type;
	uint32_t numbers[3];
	uint64_t elements;
};

struct hash {
	uint32_t type;
	uint32_t first;
	uint64_t entries, indices;
	uint32_t size, deleted;
	uint8_t index_size, power, by_identity;
};

bool crystal_is_string(const struct runtime_context *context, allocation_id id)
{
	const struct bitmap *atomic = allocation_having(context->index, TRAIT_POINTERLESS);
	uint64_t start = allocation_start(context->index, id);
	uint32_t header[3]; /* type, bytes, characters or 0 */
	uint8_t end;

	return atomic && bitmap_get(atomic, id) &&
	       image_read(context->image, start, header, sizeof(header)) &&
	       header[0] == STRING_TYPE && header[1] <= INT32_MAX && header[2] <= header[1] &&
	       header[1] < allocation_size(context->index, id) - STRING_HEADER &&
	       image_read(context->image, start + STRING_HEADER + header[1], &end, 1) && end == 0;
}

/* The used allocation that address is in, or NO_ALLOCATION. */
static allocation_id find_used(const struct allocation_index *index, uint64_t address)
{
	allocation_id id = address ? allocation_find(index, address) : NO_ALLOCATION;

	return id != NO_ALLOCATION && bitmap_get(allocation_used(index), id) ? id : NO_ALLOCATION;
}

/* True if the allocation was made for count elements of one size. */
static bool holds(const struct allocation_index *index, allocation_id id, uint64_t count)
{
	uint64_t size = allocation_size(index, id), each;

	if (count == 0 || count > size)
		return false;
	each = size / count;
	return crystal_size_fits(size, each * count) ||
	       (each > 1 && crystal_size_fits(size, (each - 1) * count));
}

uint64_t crystal_element_size(uint64_t size, uint64_t capacity)
{
	uint64_t most = size / capacity, element = 1;

	if (most >= sizeof(uint64_t))
		return most - most % sizeof(uint64_t);
	while (2 * element <= most)
		element *= 2;
	return most ? element : 0;
}

static size_t find_array(const struct allocation_index *index, const struct sequence *array,
			 struct crystal_buffer *ret)
{
	uint32_t size = array->numbers[0], capacity = array->numbers[1];
	uint32_t offset = array->numbers[2];
	allocation_id id = find_used(index, array->elements);
	uint64_t skipped;

	if (id == NO_ALLOCATION || offset > capacity || size > capacity - offset ||
	    !holds(index, id, capacity))
		return 0;
	skipped = array->elements - allocation_start(index, id);
	if (offset == 0 ? skipped != 0 : skipped == 0 || skipped % offset != 0)
		return 0;
	*ret = (struct crystal_buffer){ id, ROLE_ARRAY_ELEMENTS, size, capacity };
	return 1;
}

static size_t find_deque(const struct allocation_index *index, const struct sequence *deque,
			 struct crystal_buffer *ret)
{
	uint32_t first = deque->numbers[0], size = deque->numbers[1];
	uint32_t capacity = deque->numbers[2];
	allocation_id id = find_used(index, deque->elements);

	if (id == NO_ALLOCATION || first >= capacity || size > capacity ||
	    deque->elements != allocation_start(index, id) || !holds(index, id, capacity))
		return 0;
	*ret = (struct crystal_buffer){ id, ROLE_DEQUE_ELEMENTS, size, capacity };
	return 1;
}

static bool read_hash(const struct image *image, uint64_t address, struct hash *ret)
{
	uint8_t bytes[40] = { 0 };
	bool all = image_read(image, address, bytes, sizeof(bytes));

	memcpy(&ret->type, bytes, 4);
	memcpy(&ret->first, bytes + 4, 4);
	memcpy(&ret->entries, bytes + 8, 8);
	memcpy(&ret->indices, bytes + 16, 8);
	memcpy(&ret->size, bytes + 24, 4);
	memcpy(&ret->deleted, bytes + 28, 4);
	ret->index_size = bytes[32];
	ret->power = bytes[33];
	ret->by_identity = bytes[34];
	return all && ret->power >= SMALLEST_HASH && ret->power <= LARGEST_HASH &&
	       (ret->index_size == 1 || ret->index_size == 2 || ret->index_size == 4) &&
	       ret->by_identity <= 1;
}

static size_t find_hash(const struct image *image, const struct allocation_index *index,
			uint64_t address, struct crystal_buffer *ret)
{
	struct hash hash;
	uint64_t room;
	allocation_id entries, indices;
	size_t count = 0;

	if (!read_hash(image, address, &hash))
		return 0;
	room = (UINT64_C(1) << hash.power) / 2;
	entries = find_used(index, hash.entries);
	if (entries == NO_ALLOCATION || hash.size > room || hash.deleted > room - hash.size ||
	    allocation_start(index, entries) != hash.entries || !holds(index, entries, room))
		return 0;
	ret[count++] = (struct crystal_buffer){ entries, ROLE_HASH_ENTRIES, hash.size, room };
	indices = find_used(index, hash.indices);
	if (indices != NO_ALLOCATION && allocation_start(index, indices) == hash.indices &&
	    crystal_size_fits(allocation_size(index, indices), 2 * room * hash.index_size))
		ret[count++] =
			(struct crystal_buffer){ indices, ROLE_HASH_INDICES, hash.size, 2 * room };
	return count;
}

static bool is_of_size(const struct allocation_index *index, allocation_id id, uint64_t size)
{
	return crystal_size_fits(allocation_size(index, id), size);
}

size_t crystal_find_buffers(const struct runtime_context *context, allocation_id object,
			    enum crystal_container container,
			    struct crystal_buffer ret[static CRYSTAL_BUFFERS])
{
	const struct allocation_index *index = context->index;
	const struct image *image = context->image;
	uint64_t address = allocation_start(index, object);
	struct sequence sequence;

	if (container == CONTAINER_NONE)
		return 0;
	if (container == CONTAINER_HASH ||
	    (container == CONTAINER_UNKNOWN && is_of_size(index, object, HASH_SIZE)))
		return find_hash(image, index, address, ret);
	if (!is_of_size(index, object, sizeof(sequence)) ||
	    !image_read(image, address, &sequence, sizeof(sequence)))
		return 0;
	/* An array that has an offset does not point at its first element. */
	if (container == CONTAINER_DEQUE ||
	    (container == CONTAINER_UNKNOWN && sequence.numbers[2] != 0 &&
	     find_deque(index, &sequence, ret)))
		return find_deque(index, &sequence, ret);
	return find_array(index, &sequence, ret);
}

struct error *crystal_visit_container(const struct runtime_context *context, allocation_id object,
				      const struct structure_visitor *visitor)
{
	enum { HASH_FIRST = 4, HASH_COUNTS = 24, HASH_COUNTS_END = 35 };
	uint64_t start = allocation_start(context->index, object);

	if (!is_of_size(context->index, object, HASH_SIZE))
		return visitor->number(visitor->data, start + offsetof(struct sequence, numbers),
				       sizeof(((struct sequence *)0)->numbers));
	TRY(visitor->number(visitor->data, start + HASH_FIRST, sizeof(uint32_t)));
	return visitor->number(visitor->data, start + HASH_COUNTS, HASH_COUNTS_END - HASH_COUNTS);
}

/* Elements may take no room at all: an Array(Nil) has such. */
static bool has_room(const struct allocation_index *index, uint64_t buffer, uint64_t used,
		     uint64_t capacity)
{
	allocation_id id = find_used(index, buffer);

	if (used > capacity)
		return false;
	if (!buffer)
		return used == 0;
	return id != NO_ALLOCATION &&
	       (capacity <= allocation_size(index, id) || allocation_size(index, id) == GRANULE);
}

static bool may_be_hash(const struct image *image, const struct allocation_index *index,
			uint64_t address)
{
	struct hash hash;
	uint64_t room;

	if (!read_hash(image, address, &hash))
		return hash.entries == 0 && hash.size == 0;
	room = (UINT64_C(1) << hash.power) / 2;
	return hash.size <= room && hash.deleted <= room - hash.size &&
	       has_room(index, hash.entries, hash.size, room);
}

bool crystal_may_be(const struct runtime_context *context, allocation_id object,
		    enum crystal_container container)
{
	const struct allocation_index *index = context->index;
	const struct image *image = context->image;
	uint64_t address = allocation_start(index, object);
	struct sequence sequence;

	if (container == CONTAINER_HASH)
		return may_be_hash(image, index, address);
	if (container != CONTAINER_ARRAY && container != CONTAINER_DEQUE)
		return true;
	if (!image_read(image, address, &sequence, sizeof(sequence)))
		return true;
	if (container == CONTAINER_DEQUE)
		return sequence.numbers[0] <= sequence.numbers[2] &&
		       has_room(index, sequence.elements, sequence.numbers[1], sequence.numbers[2]);
	return sequence.numbers[2] <= sequence.numbers[1] &&
	       has_room(index, sequence.elements, sequence.numbers[0],
			sequence.numbers[1] - sequence.numbers[2]);
}
