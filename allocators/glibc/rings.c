#include "allocators/glibc/rings.h"

#include "analyzer/base/table.h"

enum { SAMPLE = 64, SLOTS = 1 << 14, PROGRESS_STEP = 1 << 14 };

/* Where the ring leads to from a chunk on; to no head: 0. */
struct word {
	uint64_t chunk, head;
};

struct glibc_ring_memo {
	uint64_t factor; /* nobody shall choose chunks that are not sampled */
	struct word words[SLOTS];
};

struct glibc_ring_memo *glibc_ring_memo_create(void)
{
	struct glibc_ring_memo *memo = calloc(1, sizeof(*memo));

	if (memo)
		memo->factor = secret_factor();
	return memo;
}

void glibc_ring_memo_free(struct glibc_ring_memo *memo)
{
	free(memo);
}

/* Where word of the chunk is left; NULL: at this one, none is. */
static struct word *word_of(struct glibc_ring_memo *memo, uint64_t chunk)
{
	size_t slot;

	if (!memo)
		return NULL;
	slot = secret_hash(chunk, memo->factor) % (SAMPLE * SLOTS);
	return slot % SAMPLE == 0 ? &memo->words[slot / SAMPLE] : NULL;
}

static bool recall(struct glibc_ring_memo *memo, uint64_t chunk, uint64_t *ret_head)
{
	const struct word *word = word_of(memo, chunk);

	/* Words that nobody left are of a chunk at 0, where there is none. */
	if (!word || !chunk || word->chunk != chunk)
		return false;
	*ret_head = word->head;
	return true;
}

/* Leave word at the chunks from there on, as far as it took. */
static void leave_word(const struct glibc_heap *heap, uint64_t chunk, uint64_t steps, uint64_t head)
{
	struct view view = { heap->context.image };

	for (uint64_t i = 0; i < steps; i++) {
		struct word *word = word_of(heap->rings, chunk);

		if (word)
			*word = (struct word){ chunk, head };
		if (!view_word(&view, chunk + HEADER, &chunk))
			return;
	}
}

uint64_t glibc_ring_head(const struct glibc_heap *heap, uint64_t chunk,
			 bool (*is_head)(const struct glibc_heap *heap, uint64_t address))
{
	struct view view = { heap->context.image };
	uint64_t at = chunk, mark = chunk, steps = 0, power = 1, head = 0;

	/* What comes round to a mark set on the way leads to no head. */
	while (!recall(heap->rings, at, &head) && view_word(&view, at + HEADER, &at) &&
	       at != mark) {
		if (is_head(heap, at)) {
			head = at;
			break;
		}
		if (++steps == power) {
			mark = at;
			power *= 2;
		}
		if (steps % PROGRESS_STEP == 0 && !progress_step(heap->context.progress, 0))
			return 0;
	}
	leave_word(heap, chunk, steps, head);
	return head;
}
