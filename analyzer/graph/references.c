#include "analyzer/graph/references.h"

#include "analyzer/runtimes/runtimes.h"

enum {
	FIRST_WORDS = 4,
	PIECE = 1 << 20, /* bytes of an allocation read at a time */
};

void references_init(struct references *references, const struct image *image,
		     const struct allocation_index *index, const struct runtimes *runtimes,
		     const struct bitmap *sources)
{
	*references = (struct references){
		.image = image,
		.index = index,
		.runtimes = runtimes_have_links(runtimes) ? runtimes : NULL,
		.view.image = image,
		.judged = NO_ALLOCATION,
	};
	reference_words_init(&references->words, index, sources, image_word_size(image));
}

/* Find the allocator's stale links among the first words of the allocation. */
static unsigned int judge(struct references *references, allocation_id id,
			  struct memory_range range)
{
	const unsigned int word = image_word_size(references->image);
	uint64_t words[FIRST_WORDS] = { 0 }, size;
	const uint8_t *bytes = view_bytes(&references->view, range.start, &size);

	if (!bytes)
		return 0;
	size = MIN(size, range.end - range.start);
	for (size_t i = 0; i < FIRST_WORDS && (i + 1) * word <= size; i++)
		words[i] = load_word(bytes + i * word, word);
	return allocation_stale_links(references->index, range.start, words);
}

/* True if the word in the slot is a stale link. */
static bool is_stale_link(struct references *references, size_t slot)
{
	allocation_id id = references->words.sources[slot];
	struct memory_range range =
		allocation_range_near(references->index, id, &references->source_hint);
	uint64_t word =
		(references->words.places[slot] - range.start) / image_word_size(references->image);

	if (word >= FIRST_WORDS)
		return false;
	if (references->judged != id)
		references->stale_links = judge(references, id, range);
	references->judged = id;
	return references->stale_links >> word & 1;
}

/* The targets of words from the slot on become what a runtime says; none of those that are links.
 */
static void ask_runtimes(const struct references *references, size_t first, allocation_id *targets,
			 size_t count)
{
	const struct reference_words *words = &references->words;

	for (size_t i = 0; i < count; i++) {
		allocation_id source = words->sources[first + i];
		uint64_t word = words->words[first + i];
		allocation_id resolved = runtimes_resolve(references->runtimes, source, word);

		if (resolved != NO_ALLOCATION)
			targets[i] = resolved;
		if (references->wanted && targets[i] != NO_ALLOCATION &&
		    !bitmap_get(references->wanted, targets[i]))
			targets[i] = NO_ALLOCATION;
		if (targets[i] != NO_ALLOCATION &&
		    runtimes_is_link(references->runtimes, source, targets[i], word,
				     words->places[first + i]))
			targets[i] = NO_ALLOCATION;
	}
}

/* Look up words if there are enough, or all, and pass on what they lead to. */
static struct error *look_up(struct references *references, bool all)
{
	struct reference_words *words = &references->words;
	allocation_id targets[MOST_ADDRESSES];
	uint64_t headers;
	size_t count, first;

	while ((count = reference_words_look_up(words, all, &first, targets, &headers))) {
		if (allocation_stale_links_lead_anywhere(references->index))
			headers = UINT64_MAX >> (64 - count);
		for (; headers; headers &= headers - 1) {
			size_t i = (size_t)__builtin_ctzll(headers);

			if (targets[i] != NO_ALLOCATION && is_stale_link(references, first + i))
				targets[i] = NO_ALLOCATION;
		}
		if (references->runtimes)
			ask_runtimes(references, first, targets, count);
		TRY(references->pass(references->data, words->sources + first, targets, count));
	}
	return NULL;
}

/* The first place in the range where the dump may have data again. */
static uint64_t end_of_absence(const struct references *references, struct memory_range range)
{
	const struct region *region = image_find(references->image, range.start);
	uint64_t end = region ? region->end : range.end;

	return end < range.end ? end : range.end;
}

/* Collect the words that may be references. */
static struct error *scan_words(struct references *references, allocation_id source,
				uint64_t address, const uint8_t *bytes, uint64_t size)
{
	const unsigned int word = image_word_size(references->image);

	for (uint64_t i = 0; i + word <= size; i += FILTER_WORDS * word) {
		size_t left = (size - i) / word;

		reference_words_add_of(&references->words, source, address + i, bytes + i,
				       MIN(left, FILTER_WORDS));
		TRY(look_up(references, false));
	}
	return NULL;
}

struct error *references_read_part(struct references *references, struct memory_range range,
				   allocation_id source)
{
	while (range.start < range.end) {
		uint64_t size;
		const uint8_t *bytes = view_bytes(&references->view, range.start, &size);

		/* Absent memory has no references; findings report it. */
		if (!bytes) {
			range.start = end_of_absence(references, range);
			continue;
		}
		size = MIN(size, range.end - range.start);
		size = MIN(size, PIECE);
		TRY(scan_words(references, source, range.start, bytes, size));
		range.start += size;
		/* Memory that was never touched is a hole of the dump. */
		if (size == PIECE && range.start < range.end)
			range.start = image_next_data(references->image, range.start);
	}
	return NULL;
}

static struct error *scan_stretch(struct references *references, const struct stretch *stretch)
{
	uint64_t address = stretch->range.start;

	while (address < stretch->range.end) {
		references->words.add(&references->words, stretch, &address);
		TRY(look_up(references, false));
	}
	return NULL;
}

struct error *references_read_some(struct references *references, allocation_id end,
				   allocation_id *id, uint64_t *bytes)
{
	struct memory_range range;
	struct stretch stretch;

	if (stretch_find(&references->words, &references->view, *id, end, &references->source_hint,
			 &stretch)) {
		*id = stretch.end;
		*bytes += stretch.range.end - stretch.range.start;
		return scan_stretch(references, &stretch);
	}
	range = allocation_range_near(references->index, *id, &references->source_hint);
	*bytes += range.end - range.start;
	return references_read_part(references, range, (*id)++);
}

struct error *references_end(struct references *references)
{
	return look_up(references, true);
}
