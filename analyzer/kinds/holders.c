#include "analyzer/kinds/holders.h"

#include "analyzer/base/array.h"
#include "analyzer/classify/reference_judge.h"

#include <string.h>

/* One whose holders are to be looked for. */
struct held {
	allocation_id id;
	uint64_t level;
};

struct search {
	const struct holders_input *input;
	const struct image *image;
	const struct allocation_index *index;
	const struct bitmap *collectable; /* or NULL */
	struct reference_judge judge;
	struct bitmap reached;
	ARRAY(struct held) queue; /* in order of level */
};

static struct error *add_held(struct search *search, allocation_id id, uint64_t level)
{
	if (bitmap_get(&search->reached, id))
		return NULL;
	TRY(array_append(&search->queue, (struct held){ id, level }));
	bitmap_set(&search->reached, id);
	return NULL;
}

/* Contiguous words of a holder. */
struct piece {
	const uint8_t *bytes;
	uint64_t offset, size;
};

/*
 * True if a word there is unused, such as behind the end of a string. A collector does not know
 * that, and follows it.
 */
static bool is_tainted(struct search *search, allocation_id from, uint64_t offset)
{
	return !(search->collectable && bitmap_get(search->collectable, from)) &&
	       reference_judge_taint(&search->judge, offset);
}

/* Visit those words that hold what is held: *ret_holds. false: the visitor has enough. */
static bool visit_piece(struct search *search, struct piece piece, allocation_id from,
			struct held held, bool *ret_holds)
{
	uint64_t target = allocation_start(search->index, held.id);
	uint64_t size = allocation_size(search->index, held.id);

	const unsigned int size_of_word = image_word_size(search->image);

	for (uint64_t i = 0; i + size_of_word <= piece.size; i += size_of_word) {
		struct holding holding = { from, held.id, piece.offset + i, held.level };
		uint64_t word = load_word(piece.bytes + i, size_of_word);

		if (word - target >= size || is_tainted(search, from, holding.offset))
			continue;
		*ret_holds = true;
		if (!search->input->visit(search->input->data, &holding))
			return false;
	}
	return true;
}

static bool visit_words(struct search *search, allocation_id from, struct held held,
			bool *ret_holds)
{
	uint64_t start = allocation_start(search->index, from);
	uint64_t end = start + allocation_size(search->index, from);

	reference_judge_set_source(&search->judge, from);
	for (uint64_t at = start; at < end;) {
		const struct region *region = image_find(search->image, at);
		uint64_t size = region ? region->end - at : end - at;
		struct piece piece = { .offset = at - start };

		piece.size = size < end - at ? size : end - at;
		if (region && region->bytes)
			piece.bytes = region->bytes + (at - region->start);
		if (piece.bytes && !visit_piece(search, piece, from, held, ret_holds))
			return false;
		at += piece.size;
	}
	return true;
}

static struct error *visit_holders(struct search *search, struct held held, bool *ret_go_on)
{
	struct edges edges = graph_outgoing(analysis_incoming(search->input->analysis), held.id);

	for (size_t i = 0; *ret_go_on && i < edges.count; i++) {
		allocation_id from = edges.targets[i];
		bool holds = false;

		if (!bitmap_get(search->input->live, from))
			continue;
		*ret_go_on = visit_words(search, from, held, &holds);
		if (holds)
			TRY(add_held(search, from, held.level + 1));
	}
	return NULL;
}

static struct error *visit_all(struct search *search)
{
	struct progress *progress = analysis_progress(search->input->analysis);
	uint64_t levels = search->input->levels;
	bool go_on = true;

	progress_begin(progress, "finding holders", 0);
	for (size_t i = 0; go_on && i < search->queue.count; i++) {
		struct held held = search->queue.items[i];

		if (levels && held.level >= levels)
			return NULL;
		TRY(visit_holders(search, held, &go_on));
		TRY(progress_check(progress, 1));
	}
	return NULL;
}

struct error *holders_visit(const struct holders_input *input)
{
	struct memory_account *account = analysis_account(input->analysis);
	struct search search = {
		.input = input,
		.image = analysis_image(input->analysis),
		.index = analysis_index(input->analysis),
		.collectable =
			allocation_having(analysis_index(input->analysis), TRAIT_COLLECTABLE),
		.queue.memory.account = account,
	};
	struct error *error = bitmap_init(&search.reached, allocation_count(search.index), account);

	reference_judge_init(&search.judge, analysis_patterns(input->analysis));
	for (size_t i = 0; !error && i < input->target_count; i++)
		error = add_held(&search, input->targets[i], 0);
	if (!error)
		error = visit_all(&search);
	bitmap_deinit(&search.reached);
	array_release(&search.queue);
	return error;
}
