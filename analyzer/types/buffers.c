#include "analyzer/types/typing_parts.h"

#include "analyzer/base/macros.h"
#include "analyzer/base/text.h"

#include <string.h>

enum {
	LONGEST = 4096, /* of what is read of a text */
	LEAST_LENGTH = 2,
	LEAST_UNENDED = 16,  /* of a text without a zero behind it */
	LEAST_CAPACITY = 24, /* of bytes: the smallest allocation has as much */
	LEAST_ROOM = 16,     /* of larger numbers */
	MOST_NUMBERS = 8,
};

/* Numbers next to a pointer: how long the text is, how much room the buffer has. */
struct counts {
	bool is_of_union; /* other members may say that the numbers are larger than they are */
	uint64_t values[MOST_NUMBERS];
	size_t count;
};

/* Words beside the pointer, behind it first. */
static const int beside[] = { 1, 2, -1, -2 };

static void add_number(const struct typing *typing, const struct link *link, int64_t distance,
		       struct counts *counts)
{
	uint64_t offset = link->offset + (uint64_t)distance, value = 0;
	const struct data_type *type;

	if (distance < -(int64_t)link->offset || counts->count == MOST_NUMBERS)
		return;
	type = typing_type(typing, typing_number_at(typing, link->whole, offset));
	if (type->kind != TYPE_NUMBER || type->size < sizeof(uint32_t) ||
	    type->size > sizeof(value) || (!counts->is_of_union && offset % type->size != 0) ||
	    !read_bytes(typing, link->address + (uint64_t)distance, &value,
			counts->is_of_union ? sizeof(uint32_t) : type->size))
		return;
	counts->values[counts->count++] = value;
}

static struct counts read_counts(const struct typing *typing, const struct link *link,
				 bool is_of_union)
{
	struct counts counts = { .is_of_union = is_of_union };
	int64_t word = typing->word;

	for (size_t i = 0; i < COUNT_OF(beside); i++)
		for (int64_t half = 0; half < word; half += sizeof(uint32_t))
			add_number(typing, link, beside[i] * word + half, &counts);
	return counts;
}

/* True if exactly that many bytes of text are there, with or without the zero behind them. */
static bool is_text_of(const char *bytes, size_t size, uint64_t count)
{
	size_t length = strnlen(bytes, size), read = count < size ? count : size;

	if (count < LEAST_LENGTH)
		return false;
	if (length < size && (count == length || count == length + 1))
		return true;
	return count >= LEAST_UNENDED && text_run(bytes, read) == read;
}

static bool refers_to_heap(const struct typing *typing, uint64_t address, uint64_t size)
{
	uint64_t word;

	for (uint64_t at = 0; at + typing->word <= size && at < LONGEST; at += typing->word)
		if (read_word(typing, address + at, &word) &&
		    find_used(typing, word) != NO_ALLOCATION)
			return true;
	return false;
}

/* The bytes that are used if one of the numbers is the capacity of the block, and another is that.
 */
static bool find_used_part(const struct typing *typing, struct memory_range range,
			   const struct counts *counts, uint64_t element_size, uint64_t *ret)
{
	uint64_t available = range.end - range.start, used = 0;
	uint64_t least = element_size == 1 ? LEAST_CAPACITY : LEAST_ROOM;
	bool is_as_large = false;

	for (size_t i = 0; i < counts->count; i++) {
		uint64_t size = counts->values[i] * element_size;

		if (counts->values[i] > available / element_size)
			continue;
		if (size >= least && !is_as_large &&
		    allocation_fits(typing->input.index, range, size, true))
			is_as_large = true;
		else if (size > used)
			used = size;
	}
	*ret = used;
	return is_as_large && used;
}

static bool is_buffer_of(const struct typing *typing, struct memory_range range,
			 const struct counts *counts, uint64_t element_size)
{
	uint64_t used;

	return find_used_part(typing, range, counts, element_size, &used) &&
	       !refers_to_heap(typing, range.start, used);
}

bool typing_is_counted(const struct typing *typing, struct memory_range range,
		       const struct link *link, const struct data_type *element)
{
	uint64_t available = range.end - link->value;
	size_t size = available < LONGEST ? available : LONGEST;
	char bytes[LONGEST];
	struct counts counts;

	if (link->whole == NO_TYPE || element->size == 0 ||
	    !read_bytes(typing, link->value, bytes, size) ||
	    refers_to_heap(typing, link->value, typing->word))
		return false;
	counts = read_counts(typing, link, false);
	for (size_t i = 0; i < counts.count && element->size == 1; i++)
		if (counts.values[i] <= available && is_text_of(bytes, size, counts.values[i]))
			return true;
	return link->value == range.start && is_buffer_of(typing, range, &counts, element->size);
}

bool typing_find_counted(const struct typing *typing, const struct link *link, type_number element,
			 struct memory_range *ret)
{
	const uint64_t size = typing_type(typing, element)->size;
	const struct counts counts = read_counts(typing, link, true);
	struct memory_range range = *ret;
	uint64_t used;

	if (size == 0 || !find_used_part(typing, range, &counts, size, &used))
		return false;
	ret->end = range.start + used;
	return true;
}

bool typing_are_counted(const struct typing *typing, struct memory_range range,
			const struct link *link, uint64_t size)
{
	const struct counts counts = read_counts(typing, link, false);

	for (size_t i = 0; i < counts.count; i++)
		if (counts.values[i] >= LEAST_LENGTH &&
		    counts.values[i] <= (range.end - range.start) / size &&
		    allocation_fits(typing->input.index, range, counts.values[i] * size, true))
			return true;
	return false;
}
