#include "analyzer/graph/offset_pointers.h"

#include "analyzer/base/list.h"
#include "analyzer/base/macros.h"
#include "analyzer/base/sort.h"
#include "analyzer/image/view.h"

#include <string.h>

enum {
	WORD = 8,
	MOST_FIELDS = 1 << 10,
	MOST_PROVEN = 64,
	MOST_ROOTS = 1 << 12,
	SAMPLED = 512, /* blocks of one size that leaked, and as many that are in use */
	LEAST_HITS = 8,
	MISSES = 16,  /* at most one of so many */
	NEGATIVE = 5, /* at least one of so many */
};

void offset_pointers_init(struct offset_pointers *pointers, struct memory_account *account)
{
	*pointers = (struct offset_pointers){
		.fields.memory.account = account,
		.roots.memory.account = account,
	};
}

void offset_pointers_deinit(struct offset_pointers *pointers)
{
	table_release(&pointers->fields);
	array_release(&pointers->roots);
}

static uint64_t key_of(uint64_t size, uint64_t offset)
{
	return size * OFFSET_MOST_SIZE + offset;
}

static struct offset_field *find_field(const struct offset_pointers *pointers, uint64_t size,
				       uint64_t offset)
{
	return table_find(&pointers->fields, key_of(size, offset), item,
			  item->size == size && item->offset == offset);
}

/* The lowest are kept: that does not depend on who looked when. */
static void note_first(struct offset_field *field, allocation_id target)
{
	for (size_t i = 0; i < COUNT_OF(field->first) && target != NO_ALLOCATION; i++) {
		allocation_id other = field->first[i];

		if (target == other)
			return;
		if (target < other) {
			field->first[i] = target;
			target = other;
		}
	}
}

struct error *offset_pointers_note(struct offset_pointers *pointers, uint64_t size, uint64_t offset,
				   allocation_id target)
{
	struct offset_field *field = find_field(pointers, size, offset);
	struct offset_field new = { .size = (uint32_t)size, .offset = (uint32_t)offset };

	if (size >= OFFSET_MOST_SIZE || (!field && pointers->fields.count == MOST_FIELDS))
		return NULL;
	if (field) {
		note_first(field, target);
		return NULL;
	}
	for (size_t i = 0; i < COUNT_OF(new.first); i++)
		new.first[i] = i == 0 ? target : NO_ALLOCATION;
	return table_append(&pointers->fields, key_of(size, offset), new);
}

struct error *offset_pointers_note_root(struct offset_pointers *pointers, struct offset_root root)
{
	if (root.target == NO_ALLOCATION) {
		pointers->root_misses++;
		return NULL;
	}
	return pointers->roots.count == MOST_ROOTS ? NULL : array_append(&pointers->roots, root);
}

struct error *offset_pointers_join(struct offset_pointers *pointers,
				   const struct offset_pointers *other)
{
	array_for_each(field, &other->fields)
		for (size_t i = 0; i < COUNT_OF(field->first); i++)
			if (field->first[i] != NO_ALLOCATION)
				TRY(offset_pointers_note(pointers, field->size, field->offset,
							 field->first[i]));
	array_for_each(root, &other->roots)
		TRY(offset_pointers_note_root(pointers, *root));
	pointers->root_misses += other->root_misses;
	return NULL;
}

/* Some blocks of a size: those that leaked first. */
struct sample {
	uint32_t size, leaked, in_use;
	allocation_id ids[2][SAMPLED];
};

struct samples {
	HASH_TABLE(struct sample);
};

static struct sample *sample_of(const struct samples *samples, uint64_t size)
{
	return table_find(samples, size, item, item->size == size);
}

static struct error *begin_samples(struct samples *samples, const struct offset_pointers *pointers)
{
	array_for_each(field, &pointers->fields) {
		if (sample_of(samples, field->size))
			continue;
		TRY(table_append(samples, field->size, (struct sample){ .size = field->size }));
	}
	return NULL;
}

static void take_samples(struct samples *samples, const struct disguises_input *input)
{
	size_t hint = 0;

	bitmap_for_each(id, allocation_used(input->index)) {
		struct memory_range range =
			allocation_range_near(input->index, (allocation_id)id, &hint);
		struct sample *sample = range.end - range.start < OFFSET_MOST_SIZE
						? sample_of(samples, range.end - range.start)
						: NULL;
		bool is_leaked = sample && bitmap_get(input->wanted, id);
		uint32_t *count = !sample ? NULL : is_leaked ? &sample->leaked : &sample->in_use;

		if (count && *count < SAMPLED)
			sample->ids[!is_leaked][(*count)++] = (allocation_id)id;
	}
}

/* Facts about the words of a field. */
struct evidence {
	size_t hits, misses, negative;
	uint64_t distances[SAMPLED];
};

static allocation_id lead(const struct disguises_input *input, struct view *view, uint64_t place,
			  uint64_t *ret_word)
{
	*ret_word = 0;
	if (!view_word(view, place, ret_word))
		return NO_ALLOCATION;
	return allocation_used_at(input->index, place + *ret_word);
}

static void add_evidence(struct evidence *evidence, const struct disguises_input *input,
			 struct view *view, const struct offset_field *field, allocation_id id)
{
	uint64_t word;
	allocation_id target =
		lead(input, view, allocation_start(input->index, id) + field->offset, &word);

	/* 1 is no pointer for boost: 0 leads to itself. */
	if (word <= 1)
		return;
	if (target == NO_ALLOCATION) {
		evidence->misses++;
		return;
	}
	evidence->negative += (int64_t)word < 0;
	evidence->distances[evidence->hits++] = word;
}

static bool is_proof(struct evidence *evidence)
{
	size_t distances = 1, hits = evidence->hits;

	if (hits < LEAST_HITS || evidence->misses * MISSES > hits)
		return false;
	SORT(evidence->distances, hits, compare_u64);
	for (size_t i = 1; i < hits; i++)
		distances += evidence->distances[i] != evidence->distances[i - 1];
	return evidence->negative * NEGATIVE >= hits && distances > 2;
}

/* The result of following a list from a block. */
struct walk {
	uint64_t hits, held; /* of these, in use anyway */
	bool is_right;	     /* it ends, and leads nowhere else */
};

static struct walk walk_list(const struct offset_field *field, const struct disguises_input *input,
			     struct view *view, allocation_id first, uint64_t most)
{
	struct walk walk = { .is_right = true };
	allocation_id id = first;

	while (walk.hits < most) {
		uint64_t place = allocation_start(input->index, id) + field->offset, word = 0;
		allocation_id next = allocation_size(input->index, id) == field->size
					     ? lead(input, view, place, &word)
					     : NO_ALLOCATION;

		if (next == NO_ALLOCATION || word <= 1) {
			walk.is_right =
				allocation_size(input->index, id) == field->size && word <= 1;
			break;
		}
		walk.hits++;
		walk.held += bitmap_get(input->in_use, next);
		id = next;
		if (id == first)
			break;
	}
	return walk;
}

static bool prove_by_lists(const struct offset_field *field, const struct disguises_input *input,
			   struct view *view)
{
	enum { MOST_STEPS = 1 << 12, HELD = 8 };

	for (size_t i = 0; i < COUNT_OF(field->first); i++) {
		struct walk walk;

		if (field->first[i] == NO_ALLOCATION)
			break;
		walk = walk_list(field, input, view, field->first[i], MOST_STEPS);
		if (walk.is_right && walk.hits >= LEAST_HITS && walk.held * HELD <= walk.hits)
			return true;
	}
	return false;
}

DEFINE_COMPARE(compare_fields, struct offset_field, ASCENDING(size), ASCENDING(offset))

static bool prove(const struct offset_field *field, const struct disguises_input *input,
		  struct view *view, const struct sample *sample)
{
	const uint32_t counts[2] = { sample->leaked, sample->in_use };

	for (size_t i = 0; i < 2; i++) {
		struct evidence evidence = { 0 };

		/* Most fields hold something else, which a few tell. */
		for (size_t j = 0; j < counts[i] && evidence.misses * MISSES <= SAMPLED; j++)
			add_evidence(&evidence, input, view, field, sample->ids[i][j]);
		if (is_proof(&evidence))
			return true;
	}
	return false;
}

struct error *offset_pointers_prove(struct offset_pointers *pointers,
				    const struct disguises_input *input)
{
	_cleanup_(table_release) struct samples samples = {
		.memory.account = input->account,
	};
	struct view view = { input->image };

	if (pointers->fields.count == 0)
		return NULL;
	TRY(begin_samples(&samples, pointers));
	take_samples(&samples, input);
	/* The table is not searched any more. */
	SORT(pointers->fields.items, pointers->fields.count, compare_fields);
	array_for_each(field, &pointers->fields) {
		if (pointers->proven == MOST_PROVEN)
			break;
		field->is_list = !prove(field, input, &view, sample_of(&samples, field->size));
		if (!field->is_list || prove_by_lists(field, input, &view))
			pointers->fields.items[pointers->proven++] = *field;
	}
	pointers->fields.count = pointers->proven;
	return NULL;
}

struct error *offset_pointers_visit(const struct offset_pointers *pointers,
				    const struct disguises_input *input, allocation_id id,
				    bool is_part, offset_pointer_found found, void *data)
{
	enum { NEAR = 64 };
	struct view view = { input->image };
	uint64_t start = allocation_start(input->index, id), word = 0;
	uint64_t size = allocation_size(input->index, id);

	list_for_each(field, pointers->fields.items, pointers->proven) {
		allocation_id target = field->size == size
					       ? lead(input, &view, start + field->offset, &word)
					       : NO_ALLOCATION;

		if (target == NO_ALLOCATION || word <= 1)
			continue;
		if (is_part || !field->is_list ||
		    walk_list(field, input, &view, target, NEAR).is_right)
			TRY(found(data, start + field->offset, target));
	}
	return NULL;
}

static bool has_field(const struct offset_pointers *pointers, uint64_t size)
{
	array_for_each(field, &pointers->fields)
		if (field->size == size)
			return true;
	return false;
}

static struct error *clear_target(void *data, uint64_t place, allocation_id target)
{
	bitmap_clear(data, target);
	return NULL;
}

/* The wanted blocks with proven fields to which no such field leads. */
static struct error *find_heads(const struct offset_pointers *pointers,
				const struct disguises_input *input, struct bitmap *ret)
{
	bitmap_for_each(id, input->wanted)
		if (has_field(pointers, allocation_size(input->index, (allocation_id)id)))
			bitmap_set(ret, id);
	bitmap_for_each(id, input->wanted)
		TRY(offset_pointers_visit(pointers, input, (allocation_id)id, true, clear_target,
					  ret));
	return NULL;
}

struct error *offset_pointers_visit_roots(const struct offset_pointers *pointers,
					  const struct disguises_input *input, uint64_t span,
					  offset_pointer_found found, void *data)
{
	enum { LEAST_ODDS = 100 };
	_cleanup_(bitmap_deinit) struct bitmap heads = { 0 };

	if (pointers->proven == 0 || pointers->roots.count == 0)
		return NULL;
	TRY(bitmap_init(&heads, input->wanted->count, input->account));
	TRY(find_heads(pointers, input, &heads));
	if (pointers->root_misses * LEAST_ODDS * WORD >= span / (bitmap_weight(&heads) + 1))
		return NULL;
	array_for_each(root, &pointers->roots)
		if (bitmap_get(&heads, root->target))
			TRY(found(data, root->place, root->target));
	return NULL;
}
