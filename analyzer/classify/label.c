#include "analyzer/classify/label.h"

#include "analyzer/base/sort.h"
#include "analyzer/base/text.h"
#include "analyzer/classify/literal.h"

enum {
	SAMPLES = 1024,
	/* One in so many has a label at least: the rest are those of libraries. */
	MOST_WITHOUT = 16,
	/* So many share one on average, or the word tells them apart, as names of options do. */
	LEAST_SHARING = 2,
	/* Structures of one kind, whose member a text may be, have one size. */
	LEAST_SIZES = 4,
};

/* The samples that lead to a constant text by one of the words. */
struct labelled {
	uint64_t labels[SAMPLES], sizes[SAMPLES];
	size_t count;
};

static const char *find_constant(const struct image *image, uint64_t address, size_t *ret_length)
{
	const struct region *region = image_find(image, address);

	return region && !(region->rights & RIGHT_WRITE) ? literal_find(image, address, ret_length)
							 : NULL;
}

static void add_sample(struct labelled *words, struct view *view,
		       const struct module_bounds *bounds, struct memory_range range)
{
	uint64_t found[EARLY_WORDS];
	size_t length, count = early_words_read(view, range, found);

	for (size_t i = 0; i < count; i++) {
		struct labelled *word = &words[i];

		if (!module_bounds_hold(bounds, found[i]) ||
		    !find_constant(view->image, found[i], &length))
			continue;
		word->labels[word->count] = found[i];
		word->sizes[word->count++] = range.end - range.start;
	}
}

static size_t count_different(uint64_t *numbers, size_t count)
{
	size_t different = 0;

	qsort(numbers, count, sizeof(*numbers), compare_u64);
	for (size_t i = 0; i < count; i++)
		different += i == 0 || numbers[i] != numbers[i - 1];
	return different;
}

static bool is_label(struct labelled *word, size_t samples)
{
	return word->count > 0 && word->count * MOST_WITHOUT >= samples &&
	       count_different(word->labels, word->count) * LEAST_SHARING <= word->count &&
	       count_different(word->sizes, word->count) >= LEAST_SIZES;
}

struct error *label_word_find(const struct image *image, const struct allocation_index *index,
			      const struct module_bounds *bounds, size_t *ret)
{
	_cleanup_(free) struct labelled *words = calloc(EARLY_WORDS, sizeof(*words));
	struct view view = { .image = image };
	size_t count = allocation_count(index), samples = 0, word = 0, hint = 0;

	TRY_MEMORY(words);
	for (size_t i = 0; i < MIN(count, SAMPLES); i++) {
		allocation_id id = (allocation_id)(i * count / MIN(count, SAMPLES));

		if (!bitmap_get(allocation_used(index), id))
			continue;
		samples++;
		add_sample(words, &view, bounds, allocation_range_near(index, id, &hint));
	}
	while (word < EARLY_WORDS && !is_label(&words[word], samples))
		word++;
	*ret = word;
	return NULL;
}

char *label_text(const struct image *image, uint64_t address)
{
	enum { LONGEST = 100 };
	size_t length;
	const char *text = find_constant(image, address, &length);

	return text ? format_text("\"%.*s\"", (int)MIN(length, LONGEST), text) : NULL;
}
