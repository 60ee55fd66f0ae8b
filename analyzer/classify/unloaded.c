#include "analyzer/classify/unloaded.h"

enum {
	NEAR_BITS = 34, /* addresses that are equal but for these are near each other */
	PAGE_BYTES = 4096,
	LEAST = 8, /* objects */
	MOST_WORDS = 1 << 12,
};

bool unloaded_possible(const struct unloaded *unloaded, const struct image *image, uint64_t word)
{
	const struct program *program = unloaded->program;
	const uint64_t width = image_word_size(image);
	uint64_t last =
		program->module_count ? program->modules[program->module_count - 1].start : 0;

	/* Near modules at low addresses, as in programs of 32 bits, any number may be. */
	return last >> NEAR_BITS != 0 && (word ^ last) >> NEAR_BITS == 0 && word % width == 0 &&
	       word % PAGE_BYTES != 0 && word % PAGE_BYTES != 2 * width && !image_find(image, word);
}

static bool add_word(struct unloaded *unloaded, uint64_t word, uint64_t size)
{
	struct lost_word *lost = table_obtain(&unloaded->words, word, item, item->word == word,
					      (struct lost_word){ word, size });

	if (!lost)
		return false;
	lost->count++;
	lost->differs |= lost->size != size;
	return unloaded->words.count < MOST_WORDS;
}

static void count_words(struct unloaded *unloaded, struct view *view)
{
	size_t hint = 0;

	unloaded->are_counted = true;
	bitmap_for_each(id, allocation_used(unloaded->index)) {
		struct memory_range range =
			allocation_range_near(unloaded->index, (allocation_id)id, &hint);
		uint64_t word;

		if (view_word(view, range.start, &word) &&
		    unloaded_possible(unloaded, view->image, word) &&
		    !add_word(unloaded, word, range.end - range.start))
			return;
	}
}

uint64_t unloaded_vtable(struct unloaded *unloaded, struct view *view, uint64_t address)
{
	const struct lost_word *lost;
	uint64_t word;

	if (!view_word(view, address, &word) || !unloaded_possible(unloaded, view->image, word))
		return 0;
	if (!unloaded->are_counted)
		count_words(unloaded, view);
	lost = table_find(&unloaded->words, word, item, item->word == word);
	return lost && lost->count >= LEAST && !lost->differs ? word : 0;
}
