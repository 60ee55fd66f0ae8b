#include "allocators/glibc/rings.h"

#include "analyzer/base/table.h"

enum { SAMPLE = 64, SLOTS = 1 << 14, PROGRESS_STEP = 1 << 14 };

/* The head of the ring that a chunk leads to; 0: none. */
struct memo {
	uint64_t chunk, head;
};

struct glibc_ring_memo {
	uint64_t factor; /* secret, so that no dump avoids the sampled chunks */
	struct memo memos[SLOTS];
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

/* The place of the chunk's memo; NULL: this one has none. */
static struct memo *find_memo(struct glibc_ring_memo *memo, uint64_t chunk)
{
	size_t slot;

	if (!memo)
		return NULL;
	slot = secret_hash(chunk, memo->factor) % (SAMPLE * SLOTS);
	return slot % SAMPLE == 0 ? &memo->memos[slot / SAMPLE] : NULL;
}

static bool recall(struct glibc_ring_memo *memo, uint64_t chunk, uint64_t *ret_head)
{
	const struct memo *found = find_memo(memo, chunk);

	/* Empty memos are of a chunk at 0, where there is none. */
	if (!found || !chunk || found->chunk != chunk)
		return false;
	*ret_head = found->head;
	return true;
}

/* Leave memos at that many chunks from the first on. */
static void leave_memos(const struct glibc_heap *heap, uint64_t chunk, uint64_t steps,
			uint64_t head)
{
	struct view view = { heap->context.image };

	for (uint64_t i = 0; i < steps; i++) {
		struct memo *memo = find_memo(heap->rings, chunk);

		if (memo)
			*memo = (struct memo){ chunk, head };
		if (!view_word(&view, chunk + heap->header, &chunk))
			return;
	}
}

uint64_t glibc_ring_head(const struct glibc_heap *heap, uint64_t chunk,
			 bool (*is_head)(const struct glibc_heap *heap, uint64_t address))
{
	struct view view = { heap->context.image };
	struct cycle_search search = { .mark = chunk, .power = 1 };
	uint64_t at = chunk, head = 0;

	while (!recall(heap->rings, at, &head) && view_word(&view, at + heap->header, &at)) {
		if (is_head(heap, at)) {
			head = at;
			break;
		}
		if (cycle_closes(&search, at))
			break;
		if (search.steps % PROGRESS_STEP == 0 && !progress_step(heap->context.progress, 0))
			return 0;
	}
	leave_memos(heap, chunk, search.steps, head);
	return head;
}
