#include "analyzer/classify/identity.h"

#include "analyzer/base/table.h"
#include "analyzer/classify/label.h"
#include "analyzer/classify/label_objects.h"
#include "analyzer/classify/type_names.h"
#include "analyzer/classify/unloaded.h"

#include <string.h>

enum {
	/* Words: lists have heads that are smaller; tables of operations are not. */
	SMALLEST_TABLE = 4,
	/* A table's first functions come early. */
	SEARCHED_TABLE = 64,
	/* So many labels are one if their texts are equal. */
	MOST_MERGED = 1 << 12,
};

/* Rank of a word; the least says most. */
enum rank { RANK_LABEL, RANK_CLASS, RANK_TABLE, RANK_CONSTANT, RANK_FUNCTION, RANK_NONE };

/* An address that a word refers to. */
struct target {
	uint64_t address;
	enum rank rank;
	bool from_label;   /* the word is a label's */
	char *name;	   /* owned; NULL only with RANK_NONE */
	uint64_t identity; /* the address, but the first one of those with equal labels */
};

struct label {
	const char *name; /* borrowed from its target */
	uint64_t address;
};

/* A place in a program, by its file and line. */
struct maker {
	uint64_t key;
	char *name; /* owned */
};

struct identities {
	const struct image *image;
	struct debug *debug;
	struct classes *classes;
	struct module_bounds bounds;
	const struct allocation_index *index;
	size_t label; /* the word that is one; EARLY_WORDS: none */
	struct label_objects pools;
	struct unloaded unloaded;
	HASH_TABLE(struct target) targets;
	ARRAY(struct label) labels; /* different ones */
	HASH_TABLE(struct maker) makers;
};

struct error *identities_create(const struct image *image, const struct program *program,
				struct debug *debug, struct classes *classes,
				const struct allocation_index *index,
				struct memory_account *account, struct identities **ret)
{
	_cleanup_(free) struct identities *identities = calloc(1, sizeof(*identities));

	TRY_MEMORY(identities);
	identities->image = image;
	identities->debug = debug;
	identities->classes = classes;
	identities->index = index;
	identities->unloaded = (struct unloaded){ .program = program, .index = index };
	identities->bounds = module_bounds_find(program);
	TRY(label_objects_find(image, index, account, &identities->pools));
	TRY(label_word_find(image, index, &identities->bounds, &identities->label));
	arrays_use(account, &identities->targets, &identities->labels, &identities->makers,
		   &identities->unloaded.words);
	*ret = take(identities);
	return NULL;
}

void identities_destroy(struct identities *identities)
{
	for (size_t i = 0; i < identities->targets.count; i++)
		free(identities->targets.items[i].name);
	for (size_t i = 0; i < identities->makers.count; i++)
		free(identities->makers.items[i].name);
	tables_release(&identities->targets, &identities->makers, &identities->unloaded.words);
	array_release(&identities->labels);
	free(identities);
}

/* Rank an object by the targets of its first words. */
static enum rank rank_contents(const struct identities *identities, const struct symbol *symbol)
{
	const uint64_t width = image_word_size(identities->image), most = SEARCHED_TABLE * width;
	uint64_t end = symbol->size < most ? symbol->size : most;
	enum rank rank = RANK_NONE;

	for (uint64_t offset = 0; offset + width <= end; offset += width) {
		const struct region *region;
		uint64_t word;

		if (!image_read_word(identities->image, symbol->start + offset, &word))
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

	if (!region || symbol->size < SMALLEST_TABLE * (uint64_t)image_word_size(identities->image))
		return RANK_NONE;
	rank = rank_contents(identities, symbol);
	if (rank == RANK_CONSTANT && (region->rights & RIGHT_WRITE))
		return RANK_NONE;
	return rank;
}

/* A text may stand in each module that uses it: the first address of an equal one. */
static uint64_t merge_label(struct identities *identities, const char *name, uint64_t address)
{
	struct error *error;

	if (identities->labels.count == MOST_MERGED)
		return address;
	array_for_each(label, &identities->labels)
		if (strcmp(label->name, name) == 0)
			return label->address;
	error = array_append(&identities->labels, (struct label){ name, address });
	if (error)
		error_destroy(error);
	return address;
}

static struct target judge(struct identities *identities, uint64_t address, bool from_label)
{
	struct target none = { address, RANK_NONE, from_label, NULL, address }, target = none;
	struct symbol symbol;
	const char *name;

	if (from_label) {
		target.name = label_text(identities->image, address);
		target.rank = RANK_LABEL;
		if (target.name) {
			target.identity = merge_label(identities, target.name, address);
			return target;
		}
	}

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
static const struct target *find_target(struct identities *identities, uint64_t address,
					bool from_label)
{
	return table_obtain(&identities->targets, address, target,
			    target->address == address && target->from_label == from_label,
			    judge(identities, address, from_label));
}

bool identity_find(struct identities *identities, struct view *view, struct memory_range range,
		   struct identity *ret)
{
	enum rank best = RANK_NONE;
	uint64_t words[EARLY_WORDS];
	size_t count = early_words_read(view, range, words);

	for (size_t i = 0; i < count && best != RANK_LABEL; i++) {
		const struct target *target;

		if (!module_bounds_hold(&identities->bounds, words[i]))
			continue;
		target = find_target(identities, words[i], i == identities->label);
		if (!target || target->rank >= best)
			continue;
		best = target->rank;
		*ret = (struct identity){ target->name, target->identity,
					  i * image_word_size(identities->image) };
	}
	return best != RANK_NONE;
}

/* Know the address by a name, which is given away; false: memory is short. */
static bool know_target(struct identities *identities, uint64_t address, char *name,
			uint64_t offset, struct identity *ret)
{
	const struct target *known = table_find(&identities->targets, address, target,
						target->address == address && target->name);
	_cleanup_(free) char *given = name;
	struct target added = { address, RANK_LABEL, false, name, address };
	struct error *error;

	if (!known && !name)
		return false;
	*ret = (struct identity){ known ? known->name : name, address, offset };
	if (known)
		return true;
	error = table_append(&identities->targets, address, added);
	if (error) {
		error_destroy(error);
		return false;
	}
	given = NULL;
	return true;
}

bool identities_have_pools(const struct identities *identities)
{
	return identities->pools.size != 0;
}

bool identity_find_pool(struct identities *identities, struct view *view, struct memory_range range,
			struct identity *ret)
{
	struct label_mark mark;

	return label_mark_find(&identities->pools, view, identities->index, range, &mark) &&
	       know_target(identities, mark.object | IDENTITY_OF_POOL,
			   label_object_name(&identities->pools, view, mark.object), mark.offset,
			   ret);
}

bool identity_find_unloaded(struct identities *identities, struct view *view,
			    struct memory_range range, struct identity *ret)
{
	uint64_t vtable = unloaded_vtable(&identities->unloaded, view, range.start);

	return vtable &&
	       know_target(identities, vtable, strdup("class of an unloaded library"), 0, ret);
}

bool identity_possible(const struct identities *identities, struct view *view,
		       struct memory_range range)
{
	uint64_t words[EARLY_WORDS];
	size_t count = early_words_read(view, range, words);

	return module_bounds_meet(&identities->bounds, words, count) ||
	       (count > 0 && unloaded_possible(&identities->unloaded, view->image, words[0]));
}

/* The maker with that key, added if it is new; NULL: it has no name. */
static const struct maker *find_maker(struct identities *identities, uint64_t key,
				      const struct debug_header *header)
{
	const struct maker *known = table_find(&identities->makers, key, maker, maker->key == key);
	_cleanup_(free) char *place = known ? NULL : debug_header_text(identities->image, header);
	_cleanup_(free) char *name = NULL;
	struct error *error;

	if (known)
		return known;
	if (!place || identities->makers.count == MOST_MAKERS - 1)
		return NULL;
	if (asprintf(&name, "made at %s", place) < 0) {
		name = NULL;
		return NULL;
	}
	error = table_append(&identities->makers, key, (struct maker){ key, name });
	if (error) {
		error_destroy(error);
		return NULL;
	}
	name = NULL;
	return &identities->makers.items[identities->makers.count - 1];
}

bool identity_find_maker(struct identities *identities, uint64_t address, struct identity *ret)
{
	const struct maker *maker = NULL;
	struct debug_header header;

	/* Addresses have 47 bits, and files fewer lines than fit beside. */
	if (debug_header_read(identities->image, address, &header))
		maker = find_maker(identities, header.file << 17 | (header.line & 0x1ffff),
				   &header);
	if (!maker)
		return false;
	*ret = (struct identity){
		.name = maker->name,
		.address = (uint64_t)(maker - identities->makers.items) + 1,
	};
	return true;
}

const char *identity_name(const struct identities *identities, uint64_t address)
{
	const struct target *known;

	if (address - 1 < identities->makers.count)
		return identities->makers.items[address - 1].name;
	known = table_find(&identities->targets, address, target,
			   target->address == address && target->name);
	return known ? known->name : NULL;
}
