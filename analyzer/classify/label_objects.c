#include "analyzer/classify/label_objects.h"

#include "analyzer/base/array.h"
#include "analyzer/base/sort.h"
#include "analyzer/base/text.h"

#include <ctype.h>

enum {
	WORD = 8,
	SAMPLES = 1024,
	LAST_WORDS = 4, /* of a block, which malloc may have rounded up, or not split */
	LEAST_SIZE = 32,
	LEAST_OBJECTS = 4,
	LEAST_SHARING = 3, /* samples of one object */
	REACH = 128,	   /* of an object, where its name is */
	LONGEST = 32,
};

struct sample {
	uint64_t object_size, object, size;
};

DEFINE_COMPARE(compare_samples, struct sample, ASCENDING(object_size), ASCENDING(object),
	       ASCENDING(size))

typedef ARRAY(struct sample) sample_list;

/* Read the object's name; its length, or 0. Names are of letters, digits, _, - and dots. */
static size_t read_name(struct view *view, uint64_t address, char ret[static LONGEST])
{
	size_t length = 0;

	if (!view_read(view, address, ret, LONGEST))
		return 0;
	while (length < LONGEST &&
	       (isalnum((unsigned char)ret[length]) || (ret[length] && strchr("_-.", ret[length]))))
		length++;
	return length < LONGEST && ret[length] == '\0' && isalpha((unsigned char)ret[0]) ? length
											 : 0;
}

/* True if the object has the number: the size that it hands out, behind which marks are. */
static bool has_number(struct view *view, uint64_t object, uint64_t number)
{
	uint32_t numbers[REACH / sizeof(uint32_t)];

	if (!view_read(view, object, numbers, sizeof(numbers)))
		return false;
	for (size_t i = 0; i < COUNT_OF(numbers); i++)
		if (numbers[i] == number)
			return true;
	return false;
}

/* The allocation of the object that a word leads to; NO_ALLOCATION: it is no mark. */
static allocation_id find_object(const struct allocation_index *index, struct view *view,
				 struct memory_range range, struct label_mark *ret)
{
	allocation_id id;

	if (!view_word(view, range.start + ret->offset, &ret->object) || ret->object % WORD ||
	    ret->object - range.start < range.end - range.start)
		return NO_ALLOCATION;
	id = allocation_find(index, ret->object);
	return id != NO_ALLOCATION && bitmap_get(allocation_used(index), id) &&
			       has_number(view, ret->object, ret->offset)
		       ? id
		       : NO_ALLOCATION;
}

static struct error *add_samples(sample_list *samples, struct view *view,
				 const struct allocation_index *index, struct memory_range range)
{
	uint64_t size = range.end - range.start;

	for (uint64_t i = 1; i <= LAST_WORDS && size >= LEAST_SIZE; i++) {
		struct label_mark mark = { .offset = size - i * WORD };
		allocation_id id = find_object(index, view, range, &mark);

		if (id != NO_ALLOCATION)
			TRY(array_append(samples, (struct sample){ allocation_size(index, id),
								   mark.object, size }));
	}
	return NULL;
}

/* Keep one sample of each object that several have, all of one size; returns their number. */
static size_t keep_objects(struct sample *samples, size_t count)
{
	size_t kept = 0, end;

	for (size_t i = 0; i < count; i = end) {
		for (end = i + 1; end < count && samples[end].object == samples[i].object; end++)
			;
		if (end - i >= LEAST_SHARING && samples[end - 1].size == samples[i].size)
			samples[kept++] = samples[i];
	}
	return kept;
}

/* True if the objects have names at that offset, which differ. */
static bool have_names(struct view *view, const struct sample *objects, size_t count,
		       uint64_t offset)
{
	char names[2][LONGEST];

	for (size_t i = 0; i < count; i++) {
		if (read_name(view, objects[i].object + offset, names[0]) < 2)
			return false;
		for (size_t j = 0; j < i; j++)
			if (!read_name(view, objects[j].object + offset, names[1]) ||
			    strcmp(names[0], names[1]) == 0)
				return false;
	}
	return true;
}

/* Look whether the samples, which lead to allocations of one size, lead to objects of pools. */
static void judge_samples(struct view *view, struct sample *samples, size_t count,
			  struct label_objects *ret)
{
	const uint64_t size = samples[0].object_size;
	uint64_t offset = 0;

	count = keep_objects(samples, count);
	if (count < LEAST_OBJECTS)
		return;
	while (offset < REACH && !have_names(view, samples, count, offset))
		offset += WORD / 2;
	if (offset < REACH)
		*ret = (struct label_objects){ offset, size };
}

struct error *label_objects_find(const struct image *image, const struct allocation_index *index,
				 struct memory_account *account, struct label_objects *ret)
{
	_cleanup_(array_release) sample_list samples = { .memory.account = account };
	struct view view = { .image = image };
	size_t count = allocation_count(index), hint = 0, end;

	*ret = (struct label_objects){ 0 };
	for (size_t i = 0; i < MIN(count, SAMPLES) && image_word_size(image) == WORD; i++) {
		allocation_id id = (allocation_id)(i * count / MIN(count, SAMPLES));

		if (bitmap_get(allocation_used(index), id))
			TRY(add_samples(&samples, &view, index,
					allocation_range_near(index, id, &hint)));
	}
	array_sort(&samples, compare_samples);
	for (size_t i = 0; i < samples.count && ret->size == 0; i = end) {
		const struct sample *first = &samples.items[i];

		for (end = i;
		     end < samples.count && samples.items[end].object_size == first->object_size;)
			end++;
		judge_samples(&view, &samples.items[i], end - i, ret);
	}
	return NULL;
}

bool label_mark_find(const struct label_objects *objects, struct view *view,
		     const struct allocation_index *index, struct memory_range range,
		     struct label_mark *ret)
{
	uint64_t size = range.end - range.start;
	char name[LONGEST];

	for (uint64_t i = 1; i <= LAST_WORDS && objects->size && size >= LEAST_SIZE; i++) {
		allocation_id id;

		ret->offset = size - i * WORD;
		id = find_object(index, view, range, ret);
		if (id != NO_ALLOCATION && allocation_size(index, id) == objects->size &&
		    read_name(view, ret->object + objects->name, name))
			return true;
	}
	return false;
}

char *label_object_name(const struct label_objects *objects, struct view *view, uint64_t object)
{
	char name[LONGEST];

	return read_name(view, object + objects->name, name) ? format_text("\"%s\"", name) : NULL;
}
