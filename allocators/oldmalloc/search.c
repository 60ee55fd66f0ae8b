/*
 * Finding the heap: among the variables of libc, or of a static program, is the address of the
 * first free chunk of a bin, and that chunk leads back. Its size tells which bin that is, and so
 * where the others must be.
 */
#include "allocators/oldmalloc/oldmalloc.h"

enum {
	WORDS = 1 + 3 * BINS,
	MOST_TRIES = 1 << 16,
	MOST_BUSY = 8, /* bins that threads were changing */
};

struct search {
	struct oldmalloc_heap *heap;
	struct view view;
	unsigned int tries;
};

unsigned int oldmalloc_bin(uint64_t size)
{
	uint64_t units = size / CHUNK_UNIT - 1;
	unsigned int log, bin;

	if (units <= 32)
		return (unsigned int)units;
	log = 63 - (unsigned int)__builtin_clzll(units);
	bin = 32 + 4 * (log - 5) + (units >> (log - 2) & 3);
	return bin < BINS ? bin : BINS - 1;
}

/* Whether that is the first chunk of the bin. */
static bool is_first(struct search *search, uint64_t chunk, uint64_t bin, unsigned int number)
{
	uint64_t words[4];

	return chunk % CHUNK_UNIT == CHUNK_HEADER &&
	       view_read(&search->view, chunk, words, sizeof(words)) && words[3] == bin &&
	       words[1] >= CHUNK_UNIT && words[1] % CHUNK_UNIT == 0 &&
	       oldmalloc_bin(words[1]) == number;
}

/* Whether the bin is as the mask has it; *ret_is_full: it has chunks. */
static bool is_bin(struct search *search, uint64_t mask, const uint64_t words[WORDS],
		   unsigned int number, bool *ret_is_full)
{
	uint64_t bin = mask + BINS_AT + BIN_FIRST + (uint64_t)BIN_BYTES * number - CHUNK_NEXT;
	uint64_t first = words[2 + 3 * number], last = words[3 + 3 * number], next;

	*ret_is_full = first != bin && first != 0;
	if (*ret_is_full != (words[0] >> number & 1))
		return false;
	if (!*ret_is_full)
		return last == first;
	return is_first(search, first, bin, number) &&
	       view_word(&search->view, last + CHUNK_NEXT, &next) && next == bin;
}

/* Whether the bins are at mask; at least one has a chunk. */
static bool is_mask(struct search *search, uint64_t mask)
{
	uint64_t words[WORDS];
	unsigned int busy = 0, full = 0;

	if (!view_read(&search->view, mask, words, sizeof(words)))
		return false;
	for (unsigned int i = 0; i < BINS && busy <= MOST_BUSY; i++) {
		bool is_full;

		if (is_bin(search, mask, words, i, &is_full))
			full += is_full;
		else
			busy++;
	}
	return busy <= MOST_BUSY && full > 0;
}

static struct error *look(void *data, uint64_t where, uint64_t word)
{
	struct search *search = data;
	struct oldmalloc_heap *heap = search->heap;
	uint64_t size, mask;

	if (heap->mask || word < PAGE || search->tries == MOST_TRIES ||
	    !view_word(&search->view, word + 8, &size) || size < CHUNK_UNIT ||
	    !is_first(search, word, where - CHUNK_NEXT, oldmalloc_bin(size)))
		return NULL;
	search->tries++;
	mask = where - BINS_AT - BIN_FIRST - (uint64_t)BIN_BYTES * oldmalloc_bin(size);
	if (is_mask(search, mask))
		heap->mask = mask;
	return NULL;
}

struct error *oldmalloc_search(struct oldmalloc_heap *heap, bool *ret)
{
	const struct program *program = heap->context.program;
	struct search search = { .heap = heap, .view = { heap->context.image } };

	list_for_each(module, program->modules, program->module_count) {
		TRY(module_visit_words(heap->context.image, module, look, &search));
		if (!heap->mask)
			continue;
		heap->module_start = module->start;
		heap->module_end = module->end;
		break;
	}
	*ret = heap->mask != 0;
	return NULL;
}
