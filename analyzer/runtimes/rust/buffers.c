#include "analyzer/base/text.h"
#include "analyzer/runtimes/rust/rust.h"

#include <string.h>

enum {
	LAYOUTS = 4,
	SMALL = 512, /* bytes: words at an offset of allocations of that size are one place */
	SMALL_WORDS = SMALL / 8,
	MOST_STRIDE = 256,
	MOST_PART = 1 << 16,   /* references of a larger allocation at once */
	LEAST_ALLOCATION = 24, /* bytes that malloc gives for less */
	ROUNDING = 15,	       /* bytes that it gives more than was asked for */
	LEAST_TEXT = 4,
	MOST_TEXT = 4096, /* bytes that are looked at */
	LEAST_VOTES = 4,
	LEAST_REFERENCES = 3,
	LEAST_RIGHT = 98, /* of a hundred */
	MANY = 16,
	LEAST_EXACT = 90, /* of a hundred, where as many agree */
};

/* Address and capacity are a structure in a structure: they stand side by side. */
static const struct rust_layout layouts[LAYOUTS] = { { -1, 1 }, { 1, 2 }, { 1, -1 }, { -1, -2 } };

/* Common facts about the references in one kind of place. */
struct place {
	uint64_t references, fitting;
	uint64_t filled, texts; /* of these, such with a length, and with that much text */
	uint64_t capacity;	/* of the first that is not of the smallest allocations */
	uint64_t least, most;	/* the size of an element */
	bool has_several_capacities;
	bool has_full; /* which no deque is by its third word, where it begins */
};

/* A reference that may be a Vec's or String's. */
struct candidate {
	allocation_id target;
	uint64_t offset;
	uint64_t size, capacity, length;
	bool fits, is_text;
	bool may_be_string, is_string; /* is: whatever others of its place are */
};

struct finder {
	const struct runtime_context *context;
	struct rust_buffers *buffers;
	uint64_t votes[LAYOUTS];
	struct place *places; /* SMALL_WORDS by SMALL_WORDS: size, offset */
	ARRAY(struct candidate) part;
	allocation_id holder; /* of the part */
	bool is_marking;
};

static bool is_text(const struct finder *finder, struct memory_range range, uint64_t length)
{
	uint64_t known, size = length < MOST_TEXT ? length : MOST_TEXT;
	const uint8_t *bytes = image_bytes(finder->context->image, range.start, &known);
	size_t run;

	if (!bytes || known < size)
		return false;
	run = text_run((const char *)bytes, size);
	/* The last character may be cut. */
	return length > MOST_TEXT ? run + 4 > size : run == size;
}

bool rust_may_be_text(const struct allocation_index *index, struct memory_range range,
		      uint64_t capacity, uint64_t length)
{
	return capacity <= range.end - range.start && length <= capacity &&
	       allocation_fits(index, range, capacity, false);
}

bool rust_may_be_buffer(const struct allocation_index *index, struct memory_range range,
			uint64_t capacity, uint64_t length)
{
	uint64_t size = range.end - range.start;

	return capacity > 0 && capacity <= size && length <= capacity &&
	       allocation_fits(index, range, size / capacity * capacity, false);
}

static bool is_text_by(const struct finder *finder, const struct rust_reference *reference,
		       struct rust_layout layout)
{
	uint64_t capacity, length;

	return rust_word_beside(reference, layout.capacity, &capacity) &&
	       rust_word_beside(reference, layout.length, &length) && length >= LEAST_TEXT &&
	       rust_may_be_text(finder->context->index, reference->range, capacity, length) &&
	       is_text(finder, reference->range, length);
}

/*
 * In an array of texts, the numbers of the next one may look right as well, and full ones may not
 * tell which number is which: then none counts.
 */
static struct error *vote(void *data, const struct rust_reference *reference)
{
	struct finder *finder = data;
	size_t count = 0, last = 0;

	for (size_t i = 0; i < LAYOUTS; i++) {
		if (!is_text_by(finder, reference, layouts[i]))
			continue;
		count++;
		last = i;
	}
	finder->votes[last] += count == 1;
	return NULL;
}

/* The one layout that texts have; zeros if there is none. */
static struct rust_layout elect(const struct finder *finder)
{
	uint64_t all = 0;
	size_t best = 0;

	for (size_t i = 0; i < LAYOUTS; i++) {
		all += finder->votes[i];
		if (finder->votes[i] > finder->votes[best])
			best = i;
	}
	if (finder->votes[best] < LEAST_VOTES || all - finder->votes[best] > all / 4)
		return (struct rust_layout){ 0 };
	return layouts[best];
}

/* Elements are of one size in all buffers of a place: narrow down which. */
static bool narrow(struct place *place, const struct candidate *candidate)
{
	uint64_t wanted = candidate->size > LEAST_ALLOCATION ? candidate->size - ROUNDING : 1;
	uint64_t least = (wanted + candidate->capacity - 1) / candidate->capacity;
	uint64_t most = candidate->size / candidate->capacity;

	if (place->fitting == 0) {
		place->least = 1;
		place->most = UINT64_MAX;
	}
	least = MAX(least, place->least);
	most = MIN(most, place->most);
	if (least > most)
		return false;
	place->least = least;
	place->most = most;
	return true;
}

static void count_candidate(struct place *place, const struct candidate *candidate)
{
	place->references++;
	if (!candidate->fits || !narrow(place, candidate))
		return;
	place->fitting++;
	place->filled += candidate->length > 0;
	place->texts += candidate->is_text;
	place->has_full |= candidate->length == candidate->capacity;
	if (candidate->size <= LEAST_ALLOCATION)
		return;
	if (place->capacity == 0)
		place->capacity = candidate->capacity;
	place->has_several_capacities |= candidate->capacity != place->capacity;
}

static bool are_most(uint64_t count, uint64_t all, uint64_t percent)
{
	return count >= (all * percent + 99) / 100;
}

/*
 * Judge whether all references of a place are to buffers whose elements have one size. One capacity
 * alone may be any number, except for text, where it is the size. Memory that is yet to be written
 * has stale references: if many capacities agree, ignore a few that do not.
 */
static enum rust_role judge(const struct place *place)
{
	bool is_exact = place->has_several_capacities && place->least == place->most &&
			place->fitting >= MANY;

	if (place->references < LEAST_REFERENCES ||
	    !are_most(place->fitting, place->references, is_exact ? LEAST_EXACT : LEAST_RIGHT))
		return RUST_NO_BUFFER;
	if (place->least == 1 && place->texts >= LEAST_REFERENCES &&
	    are_most(place->texts, place->filled, LEAST_RIGHT))
		return RUST_TEXT;
	if (!place->has_several_capacities)
		return RUST_NO_BUFFER;
	return place->has_full ? RUST_COUNTED_ELEMENTS : RUST_ELEMENTS;
}

/* Texts of C, which may have such words beside them, too, end in a 0, for which there is room. */
static bool has_no_end(const struct finder *finder, const struct candidate *candidate,
		       struct memory_range range)
{
	uint8_t end;

	return candidate->length == candidate->capacity ||
	       (image_read(finder->context->image, range.start + candidate->length, &end,
			   sizeof(end)) &&
		end != 0);
}

static struct candidate read_candidate(const struct finder *finder,
				       const struct rust_reference *reference)
{
	struct rust_layout layout = finder->buffers->layout;
	struct candidate candidate = {
		.target = reference->target,
		.offset = reference->offset,
		.size = reference->range.end - reference->range.start,
	};

	candidate.fits = rust_word_beside(reference, layout.capacity, &candidate.capacity) &&
			 rust_word_beside(reference, layout.length, &candidate.length) &&
			 rust_may_be_buffer(finder->context->index, reference->range,
					    candidate.capacity, candidate.length);
	candidate.is_text = candidate.fits && candidate.length > 0 &&
			    is_text(finder, reference->range, candidate.length);
	candidate.may_be_string =
		candidate.is_text && rust_may_be_text(finder->context->index, reference->range,
						      candidate.capacity, candidate.length);
	candidate.is_string = candidate.may_be_string && candidate.length >= LEAST_TEXT &&
			      has_no_end(finder, &candidate, reference->range);
	return candidate;
}

static void mark(struct finder *finder, const struct candidate *candidate, enum rust_role role)
{
	if (role == RUST_NO_BUFFER && candidate->is_string)
		role = RUST_TEXT;
	if (role == RUST_TEXT ? candidate->may_be_string
			      : candidate->fits && role != RUST_NO_BUFFER)
		finder->buffers->roles.items[candidate->target] = (uint8_t)role;
}

/* True if all places in the part at multiples of that distance are buffers, if any fits. */
static bool judge_stride(const struct finder *finder, uint64_t stride,
			 struct place places[static MOST_STRIDE / 8])
{
	memset(places, 0, MOST_STRIDE / 8 * sizeof(*places));
	array_for_each(candidate, &finder->part)
		count_candidate(&places[candidate->offset % stride / 8], candidate);
	for (size_t i = 0; i < stride / 8; i++)
		if (places[i].fitting > 0 && judge(&places[i]) == RUST_NO_BUFFER)
			return false;
	return true;
}

/* The references of a larger allocation, which may be an array of anything: find its stride. */
static void judge_part(struct finder *finder)
{
	struct place places[MOST_STRIDE / 8];
	bool has_any = false;
	uint64_t stride = 8;

	array_for_each(candidate, &finder->part)
		has_any |= candidate->fits;
	while (has_any && stride <= MOST_STRIDE && !judge_stride(finder, stride, places))
		stride += 8;
	array_for_each(candidate, &finder->part)
		mark(finder, candidate,
		     has_any && stride <= MOST_STRIDE
			     ? judge(&places[candidate->offset % stride / 8])
			     : RUST_NO_BUFFER);
	finder->part.count = 0;
}

static struct error *note(void *data, const struct rust_reference *reference)
{
	struct finder *finder = data;
	struct candidate candidate;
	struct place *place;

	if (reference->holder != finder->holder) {
		judge_part(finder);
		finder->holder = reference->holder;
	}
	if (reference->holder_size >= SMALL) {
		if (finder->is_marking)
			return NULL;
		if (finder->part.count >= MOST_PART)
			judge_part(finder);
		return array_append(&finder->part, read_candidate(finder, reference));
	}
	candidate = read_candidate(finder, reference);
	place = &finder->places[reference->holder_size / 8 * SMALL_WORDS + reference->offset / 8];
	if (finder->is_marking)
		mark(finder, &candidate, judge(place));
	else
		count_candidate(place, &candidate);
	return NULL;
}

static struct error *find_all(struct finder *finder)
{
	TRY(rust_visit_references(finder->context, note, finder));
	judge_part(finder);
	finder->is_marking = true;
	return rust_visit_references(finder->context, note, finder);
}

struct error *rust_find_buffers(const struct runtime_context *context, struct rust_buffers *ret)
{
	struct finder finder = { context, ret, .holder = NO_ALLOCATION };
	struct error *error;

	TRY(rust_visit_references(context, vote, &finder));
	ret->layout = elect(&finder);
	if (ret->layout.capacity == 0)
		return NULL;
	TRY(array_resize(&ret->roles, allocation_count(context->index)));
	finder.part.memory.account = context->account;
	finder.places = calloc(SMALL_WORDS * SMALL_WORDS, sizeof(*finder.places));
	TRY_MEMORY(finder.places);
	error = find_all(&finder);
	free(finder.places);
	array_release(&finder.part);
	return error;
}
