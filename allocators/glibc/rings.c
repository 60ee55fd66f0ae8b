#include "allocators/glibc/rings.h"

/* A ring of more chunks than MAXIMUM_STEPS is given up. */
enum { SAMPLE = 64, SLOTS = 1 << 14, MAXIMUM_STEPS = 1 << 24 };

struct glibc_ring_memo {
	struct {
		uint64_t chunk, head;
	} slots[SLOTS];
};

struct glibc_ring_memo *glibc_ring_memo_create(void)
{
	return calloc(1, sizeof(struct glibc_ring_memo));
}

void glibc_ring_memo_free(struct glibc_ring_memo *memo)
{
	free(memo);
}

/* Chunks are 16 bytes apart at least, and of one bin often alike in size. */
static uint64_t hash(uint64_t chunk)
{
	return (chunk >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
}

static bool is_sampled(uint64_t chunk)
{
	return hash(chunk) % SAMPLE == 0;
}

static size_t slot_of(uint64_t chunk)
{
	return hash(chunk) / SAMPLE % SLOTS;
}

static uint64_t recall(const struct glibc_ring_memo *memo, uint64_t chunk)
{
	size_t slot = slot_of(chunk);

	return memo && is_sampled(chunk) && memo->slots[slot].chunk == chunk
		       ? memo->slots[slot].head
		       : 0;
}

/* Leave word at the chunks from there on, as far as it took. */
static void leave_word(const struct glibc_heap *heap, uint64_t chunk,
		       size_t steps, uint64_t head)
{
	struct view view = { heap->context.image };

	for (size_t i = 0; i < steps; i++) {
		if (is_sampled(chunk)) {
			heap->rings->slots[slot_of(chunk)].chunk = chunk;
			heap->rings->slots[slot_of(chunk)].head = head;
		}
		if (!view_word(&view, chunk + HEADER, &chunk))
			return;
	}
}

uint64_t glibc_ring_head(const struct glibc_heap *heap, uint64_t chunk,
			 bool (*is_head)(const struct glibc_heap *heap,
					 uint64_t address))
{
	struct view view = { heap->context.image };
	uint64_t at = chunk, head = recall(heap->rings, chunk);

	for (size_t i = 0; !head && i < MAXIMUM_STEPS; i++) {
		if (!view_word(&view, at + HEADER, &at) || at == chunk)
			return 0;
		head = is_head(heap, at) ? at : recall(heap->rings, at);
		if (head && heap->rings)
			leave_word(heap, chunk, i, head);
	}
	return head;
}
