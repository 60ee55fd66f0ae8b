#include "analyzer/classify/identity.h"

#include "analyzer/base/address_map.h"
#include "analyzer/base/array.h"
#include "analyzer/base/list.h"
#include "analyzer/classify/module_bounds.h"
#include "analyzer/classify/short_name.h"

#include <string.h>

enum {
	WORD = sizeof(uint64_t),
	/* Lists have heads that are smaller; tables of operations are not. */
	SMALLEST_TABLE = 4 * WORD,
	/* A table's first functions come early. */
	SEARCHED_TABLE = 64 * WORD,
};

/* How much a word tells; the least is best. */
enum rank { RANK_CLASS, RANK_TABLE, RANK_CONSTANT, RANK_FUNCTION, RANK_NONE };

/* An address that a word refers to. */
struct target {
	enum rank rank;
	char *name; /* owned; NULL only with RANK_NONE */
};

struct identities {
	const struct image *image;
	struct debug *debug;
	struct classes *classes;
	struct module_bounds bounds;
	struct address_map map;
	ARRAY(struct target) targets;
	/* Makers: what their file and line are, as the index of a name. */
	struct address_map maker_map;
	char **makers; /* owned */
	size_t maker_count;
};

struct error *identities_create(const struct image *image, const struct program *program,
				struct debug *debug, struct classes *classes,
				struct memory_account *account, struct identities **ret)
{
	struct identities *identities = calloc(1, sizeof(*identities));

	if (!identities)
		return &error_no_memory;
	identities->image = image;
	identities->debug = debug;
	identities->classes = classes;
	identities->bounds = module_bounds_find(program);
	identities->map.memory.account = account;
	identities->maker_map.memory.account = account;
	identities->targets.memory.account = account;
	*ret = identities;
	return NULL;
}

void identities_destroy(struct identities *identities)
{
	struct target *targets = identities->targets.items;

	for (size_t i = 0; i < identities->targets.count; i++)
		free(targets[i].name);
	array_release(&identities->targets);
	table_release(&identities->map);
	for (size_t i = 0; i < identities->maker_count; i++)
		free(identities->makers[i]);
	free(identities->makers);
	table_release(&identities->maker_map);
	free(identities);
}

/* By what the object's first words refer to. */
static enum rank rank_contents(const struct identities *identities, const struct symbol *symbol)
{
	uint64_t end = symbol->size < SEARCHED_TABLE ? symbol->size : SEARCHED_TABLE;
	enum rank rank = RANK_NONE;

	for (uint64_t offset = 0; offset + WORD <= end; offset += WORD) {
		const struct region *region;
		uint64_t word;

		if (!image_read_u64(identities->image, symbol->start + offset, &word))
			break;
		if (!module_bounds_hold(&identities->bounds, word))
			continue;
		region = image_find(identities->image, word);
		if (region && (region->rights & RIGHT_EXECUTE))
			return RANK_TABLE;
		rank = RANK_CONSTANT;
	}
	return rank;
}

static enum rank rank_data(const struct identities *identities, const struct symbol *symbol)
{
	const struct region *region = image_find(identities->image, symbol->start);
	enum rank rank;

	if (!region || symbol->size < SMALLEST_TABLE)
		return RANK_NONE;
	rank = rank_contents(identities, symbol);
	if (rank == RANK_CONSTANT && (region->rights & RIGHT_WRITE))
		return RANK_NONE;
	return rank;
}

static struct target judge(struct identities *identities, uint64_t address)
{
	struct target none = { RANK_NONE, NULL }, target = none;
	struct symbol symbol;
	const char *name;

	if (classes_is_vtable(identities->classes, address)) {
		name = classes_name(identities->classes, address);
		target.rank = RANK_CLASS;
		target.name = name ? strdup(name) : NULL;
		return target.name ? target : none;
	}
	if (!debug_symbol(identities->debug, address, &symbol) || symbol.start != address)
		return none;
	if (symbol.kind == SYMBOL_FUNCTION)
		target.rank = RANK_FUNCTION;
	else if (symbol.kind == SYMBOL_DATA)
		target.rank = rank_data(identities, &symbol);
	if (target.rank != RANK_NONE)
		target.name = short_name(symbol.name);
	return target.name ? target : none;
}

/* NULL: memory is short. It stays until the next call. */
static const struct target *find_target(struct identities *identities, uint64_t address)
{
	uint32_t number = address_map_find(&identities->map, address);
	struct target *targets;
	struct error *error;

	if (number != NOT_IN_MAP)
		return identities->targets.items + number;
	error = array_reserve(&identities->targets, 1);
	if (!error)
		error = address_map_add(&identities->map, address,
					(uint32_t)identities->targets.count);
	if (error) {
		error_destroy(error);
		return NULL;
	}
	targets = identities->targets.items;
	targets[identities->targets.count] = judge(identities, address);
	return &targets[identities->targets.count++];
}

bool identity_find(struct identities *identities, struct view *view, struct memory_range range,
		   struct identity *ret)
{
	enum rank best = RANK_NONE;
	uint64_t words[IDENTITY_WORDS];
	size_t count = identity_words_read(view, range, words);

	for (size_t i = 0; i < count && best != RANK_CLASS; i++) {
		const struct target *target;

		if (!module_bounds_hold(&identities->bounds, words[i]))
			continue;
		target = find_target(identities, words[i]);
		if (!target || target->rank >= best)
			continue;
		best = target->rank;
		*ret = (struct identity){ target->name, words[i], i * WORD };
	}
	return best != RANK_NONE;
}

bool identity_possible(const struct identities *identities, struct view *view,
		       struct memory_range range)
{
	uint64_t words[IDENTITY_WORDS];
	size_t count = identity_words_read(view, range, words);

	return module_bounds_meet(&identities->bounds, words, count);
}

/* The name that the header gives a new maker, added; NULL: none. */
static const char *add_maker(struct identities *identities, uint64_t key,
			     const struct debug_header *header)
{
	_cleanup_(free) char *place = debug_header_text(identities->image, header);
	char *name = NULL;
	struct error *error;

	if (!place || identities->maker_count == MOST_MAKERS - 1 ||
	    !LIST_GROW(identities->makers, identities->maker_count) ||
	    asprintf(&name, "made at %s", place) < 0)
		return NULL;
	error = address_map_add(&identities->maker_map, key, (uint32_t)identities->maker_count);
	if (error) {
		error_destroy(error);
		free(name);
		return NULL;
	}
	identities->makers[identities->maker_count++] = name;
	return name;
}

bool identity_find_maker(struct identities *identities, uint64_t address, struct identity *ret)
{
	struct debug_header header;
	const char *name;
	uint32_t number;
	uint64_t key;

	if (!debug_header_read(identities->image, address, &header))
		return false;
	/* Addresses have 47 bits, and files fewer lines than fit beside. */
	key = header.file << 17 | (header.line & 0x1ffff);
	number = address_map_find(&identities->maker_map, key);
	if (number == NOT_IN_MAP) {
		number = (uint32_t)identities->maker_count;
		name = add_maker(identities, key, &header);
	} else {
		name = identities->makers[number];
	}
	*ret = (struct identity){ name, number + 1, 0 };
	return name != NULL;
}

const char *identity_name(const struct identities *identities, uint64_t address)
{
	if (address - 1 < identities->maker_count)
		return identities->makers[address - 1];

	uint32_t number = address_map_find(&identities->map, address);
	const struct target *targets = identities->targets.items;

	return number == NOT_IN_MAP ? NULL : targets[number].name;
}
