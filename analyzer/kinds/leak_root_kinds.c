#include "analyzer/kinds/leak_root_kinds.h"

#include "analyzer/image/view.h"

/* For the first words of some allocations, a bit each: pointers, and numbers. */
struct words {
	uint8_t pointers, numbers;
};

enum { WORDS_LOOKED_AT = 8, MOST_UNLIKE = 4 };

/* The allocations of one size. */
struct size_shapes {
	uint64_t size;
	size_t count; /* beyond MOST_UNLIKE: they are a mix */
	struct words shapes[MOST_UNLIKE];
};

struct counter {
	struct analysis *analysis;
	struct leak_root_kinds *kinds;
	struct view view;
	HASH_TABLE(struct size_shapes) sizes;
};

static void counter_deinit(struct counter *counter)
{
	table_release(&counter->sizes);
}
DEFINE_DEINIT(counter_deinit, struct counter)

void leak_root_kinds_deinit(struct leak_root_kinds *kinds)
{
	table_release(&kinds->tallies);
	array_release(&kinds->samples);
}

/* The last word may be none that the program asked for: old contents stand there. */
static struct words read_words(struct counter *counter, allocation_id id, uint64_t size)
{
	const struct analysis *analysis = counter->analysis;
	const unsigned int word_size = image_word_size(analysis_image(analysis));
	const uint64_t start = allocation_start(analysis_index(analysis), id);
	struct words words = { 0 };

	for (unsigned int i = 0; i < WORDS_LOOKED_AT && (i + 2) * word_size <= size; i++) {
		uint64_t word;

		if (!view_word(&counter->view, start + (uint64_t)i * word_size, &word) || word == 0)
			continue;
		if (nameless_is_pointer(analysis, word))
			words.pointers |= (uint8_t)(1 << i);
		else
			words.numbers |= (uint8_t)(1 << i);
	}
	return words;
}

static bool are_unlike(struct words a, struct words b)
{
	return (a.pointers & b.numbers) || (a.numbers & b.pointers);
}

/* The number of the shape among those of the size; of a mix, 0. */
static struct error *find_shape(struct counter *counter, allocation_id id, uint64_t size,
				unsigned int *ret)
{
	struct size_shapes *shapes = table_obtain(&counter->sizes, size, one, one->size == size,
						  (struct size_shapes){ size });
	struct words words;

	*ret = 0;
	TRY_MEMORY(shapes);
	if (shapes->count > MOST_UNLIKE)
		return NULL;
	words = read_words(counter, id, size);
	while (*ret < shapes->count && are_unlike(words, shapes->shapes[*ret]))
		++*ret;
	if (*ret == shapes->count && ++shapes->count > MOST_UNLIKE) {
		*ret = 0;
		return NULL;
	}
	shapes->shapes[*ret].pointers |= words.pointers;
	shapes->shapes[*ret].numbers |= words.numbers;
	return NULL;
}

static struct error *count_root(struct counter *counter, const struct leak_root *root)
{
	struct leak_root_kinds *kinds = counter->kinds;
	struct tally tally = {
		.key = kind_leaked(counter->analysis, root->id),
		.count = 1,
		.bytes = root->owned_bytes,
		.owned = root->owned_count,
	};
	unsigned int shape;
	struct kind_samples *some;
	uint64_t size;
	uint32_t number;

	if (tally.key == KIND_UNKNOWN) {
		size = allocation_size(analysis_index(counter->analysis), root->id);
		TRY(find_shape(counter, root->id, size, &shape));
		tally.key = kind_unlike(size, shape);
	}
	TRY(tally_add_numbered(&kinds->tallies, tally, &number));
	if (number == kinds->samples.count)
		TRY(array_append(&kinds->samples, (struct root_samples){ .first = root->id }));
	some = &kinds->samples.items[number].some;
	some->ids[some->count++ % KIND_SAMPLES] = root->id;
	return NULL;
}

static const struct size_shapes *shapes_of(const struct counter *counter, kind_key key)
{
	uint64_t size = kind_size(key);

	return kind_tag(key) == BY_SIZE ? table_find(&counter->sizes, size, one, one->size == size)
					: NULL;
}

/* Make one kind of a mix, which is that of its first root. */
static void join_mixes(struct counter *counter)
{
	struct tally_table *tallies = &counter->kinds->tallies;
	size_t count = 0;

	array_for_each(tally, tallies) {
		const struct size_shapes *shapes = shapes_of(counter, tally->key);
		struct tally *first = tally;

		if (shapes && shapes->count > MOST_UNLIKE)
			first = tally_find(tallies, kind_unlike(shapes->size, 0));
		else if (shapes)
			counter->kinds->samples.items[tally->number].is_unlike = shapes->count > 1;
		if (first == tally)
			continue;
		first->count += tally->count;
		first->bytes += tally->bytes;
		first->owned += tally->owned;
		tally->count = 0;
	}
	array_for_each(tally, tallies)
		if (tally->count)
			tallies->items[count++] = *tally;
	tallies->count = count;
}

struct error *leak_root_kinds_count(struct analysis *analysis, const struct bitmap *members,
				    struct leak_root_kinds *ret)
{
	enum { AHEAD = 16 };
	const struct allocation_index *index = analysis_index(analysis);
	const struct leaks *leaks = analysis_leaks(analysis);
	_cleanup_(counter_deinit) struct counter counter = {
		.analysis = analysis,
		.kinds = ret,
		.view = { analysis_image(analysis) },
		.sizes.memory.account = analysis_account(analysis),
	};

	arrays_use(analysis_account(analysis), &ret->tallies, &ret->samples);
	if (bitmap_weight(members) == 0)
		return NULL;
	TRY(analysis_need(analysis, STAGE_CLASSES));
	TRY(analysis_need(analysis, STAGE_LEAKED_PATTERNS));
	TRY(analysis_need(analysis, STAGE_LEAKED_TYPES));
	for (size_t i = 0; i < leaks->count; i++) {
		if (i + AHEAD < leaks->count)
			view_fetch(&counter.view,
				   allocation_start(index, leaks->roots[i + AHEAD].id));
		if (bitmap_get(members, leaks->roots[i].id))
			TRY(count_root(&counter, &leaks->roots[i]));
	}
	join_mixes(&counter);
	return NULL;
}

void leak_root_shape(const struct analysis *analysis, const struct root_samples *samples,
		     bool no_content, char ret[static SHAPE_TEXT_SIZE])
{
	ret[0] = '\0';
	if (samples->is_unlike)
		nameless_shape(analysis, samples->some.ids, kind_samples_count(&samples->some),
			       no_content, ret);
}
