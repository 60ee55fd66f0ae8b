#include "analyzer/runtimes/crystal/crystal.h"

#include "analyzer/base/address_map.h"
#include "analyzer/runtimes/module_data.h"

#include <string.h>

enum { WORD = 8 };

struct search {
	const struct runtime_context *context;
	const struct crystal_types *types;
	struct bitmap *objects;
	struct address_map found; /* ids of objects beside a function, by address */
	struct bitmap paired;	  /* the same */
	struct bitmap held;	  /* to which other memory refers as well */
	struct error *error;
};

/* The words of an allocation, or of static memory: NO_ALLOCATION. */
struct words {
	allocation_id holder;
	const uint8_t *bytes;
	size_t count;
};

static uint64_t word_at(const struct words *words, size_t number)
{
	uint64_t word;

	memcpy(&word, words->bytes + number * sizeof(word), sizeof(word));
	return word;
}

/* True if it may be the address of an allocation. */
static bool may_refer(uint64_t word)
{
	return word && word % WORD == 0;
}

/* Keep the object at address, if it may be closure data. */
static void take_pair(struct search *search, allocation_id holder, uint64_t address)
{
	allocation_id id = allocation_find(search->context->index, address);

	/* A String is recognised by more than its number. */
	if (id == NO_ALLOCATION || id == holder || !bitmap_get(search->objects, id) ||
	    bitmap_get(&search->paired, id) ||
	    allocation_start(search->context->index, id) != address ||
	    crystal_is_string(search->context, id))
		return;
	bitmap_set(&search->paired, id);
	search->error = address_map_add(&search->found, address, id);
}

/* Memory of C's malloc has pairs of callbacks and objects: those are no Procs. */
static void take_pairs(struct search *search, const struct words *words)
{
	const struct bitmap *collectable =
		allocation_having(search->context->index, TRAIT_COLLECTABLE);

	if (words->holder != NO_ALLOCATION && !bitmap_get(collectable, words->holder))
		return;
	for (size_t i = 1; i < words->count && !search->error; i++)
		if (crystal_types_may_be_block(search->types, word_at(words, i - 1)) &&
		    may_refer(word_at(words, i)))
			take_pair(search, words->holder, word_at(words, i));
}

/* Closure data of an inner block may refer to that of the outer one. */
static void take_others(struct search *search, const struct words *words)
{
	if (words->holder != NO_ALLOCATION && bitmap_get(&search->paired, words->holder))
		return;
	for (size_t i = 0; i < words->count; i++) {
		uint64_t word = word_at(words, i);
		uint32_t id = may_refer(word) ? address_map_find(&search->found, word) : NOT_IN_MAP;

		if (id != NOT_IN_MAP && id != words->holder &&
		    (i == 0 || !crystal_types_may_be_block(search->types, word_at(words, i - 1))))
			bitmap_set(&search->held, id);
	}
}

static void read_range(struct search *search, allocation_id holder, uint64_t start, uint64_t size,
		       void (*take_words)(struct search *search, const struct words *words))
{
	uint64_t available;
	const uint8_t *bytes = image_bytes(search->context->image, start, &available);
	struct words words = { holder, bytes };

	if (!bytes || start % WORD != 0)
		return;
	words.count = MIN(available, size) / WORD;
	take_words(search, &words);
}

/* Read the program's own variables, and all memory with pointers. */
static void read_all(struct search *search,
		     void (*take_words)(struct search *search, const struct words *words))
{
	const struct allocation_index *index = search->context->index;
	const struct bitmap *atomic = allocation_having(index, TRAIT_POINTERLESS);
	const struct module *module = crystal_types_module(search->types);
	struct memory_range piece;
	size_t number = 0;

	while (module_data_next(search->context->image, module, &number, &piece))
		read_range(search, NO_ALLOCATION, piece.start, piece.end - piece.start, take_words);
	bitmap_for_each(id, allocation_used(index))
		if (!atomic || !bitmap_get(atomic, id))
			read_range(search, (allocation_id)id,
				   allocation_start(index, (allocation_id)id),
				   allocation_size(index, (allocation_id)id), take_words);
}

static void search_deinit(struct search *search)
{
	table_release(&search->found);
	bitmap_deinit(&search->paired);
	bitmap_deinit(&search->held);
}
DEFINE_DEINIT(search_deinit, struct search)

struct error *crystal_drop_closures(const struct runtime_context *context,
				    const struct crystal_types *types, struct bitmap *objects)
{
	_cleanup_(search_deinit) struct search search = {
		.context = context,
		.types = types,
		.objects = objects,
		.found.memory.account = context->account,
	};

	TRY(bitmap_init(&search.paired, objects->count, context->account));
	TRY(bitmap_init(&search.held, objects->count, context->account));
	read_all(&search, take_pairs);
	TRY(search.error);
	read_all(&search, take_others);
	bitmap_for_each(id, &search.paired)
		if (!bitmap_get(&search.held, id))
			bitmap_clear(objects, id);
	return NULL;
}
