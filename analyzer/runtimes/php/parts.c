/*
 * Finds the engine's parts: classes and functions, their code, tables, members; then allocations
 * that these, the engine's variables and C objects refer to, and that are nothing else.
 */
#include "analyzer/runtimes/php/engine.h"

#include "analyzer/runtimes/module_data.h"

#include <stdlib.h>

enum {
	WORD = 8,
	CLASS_SIZE = 456,    /* at least */
	FUNCTION_SIZE = 224, /* at least */
	ARGUMENTS = 40,	     /* of a function; what is returned is described before these */
	RETURNS = 1 << 13,   /* a flag: the type of what it returns is known */
	MOST_INNER = 16,
	MOST_MODULE = 1 << 26,
};

struct part_search {
	struct php *php;
	struct view view;
	uint64_t owner;
	size_t done; /* parts whose own words are claimed */
	int depth;   /* of functions in functions */
	struct error *error;
};

/*
 * True if C code's data begins at address: at the block's start, or behind the size that SQLite
 * writes before its blocks (mem1.c).
 */
static bool is_start(struct part_search *search, allocation_id id, uint64_t address)
{
	const struct allocation_index *index = search->php->space.index;
	uint64_t start = allocation_start(index, id), size = allocation_size(index, id), asked;

	return address == start ||
	       (address == start + WORD && view_word(&search->view, start, &asked) && asked > 0 &&
		asked <= size - WORD && size - WORD - asked < (uint64_t)2 * WORD);
}

/* The block in use of which that is the start, and that is nothing yet; or NO_ALLOCATION. */
static allocation_id find_free(struct part_search *search, uint64_t address)
{
	const struct php *php = search->php;
	const struct allocation_index *index = php->space.index;
	allocation_id id = address ? allocation_find(index, address) : NO_ALLOCATION;

	return id != NO_ALLOCATION && bitmap_get(allocation_used(index), id) &&
			       !php_class_at(php, id) && !php->parts.items[id] &&
			       is_start(search, id, address)
		       ? id
		       : NO_ALLOCATION;
}

static bool claim(struct part_search *search, uint64_t address, enum php_part part)
{
	struct php *php = search->php;
	allocation_id id = find_free(search, address);

	if (search->error || id == NO_ALLOCATION)
		return false;
	php->parts.items[id] = (uint8_t)part;
	search->error = address_map_add(&php->owners, id, (uint32_t)php->owned.count);
	if (!search->error)
		search->error = array_append(&php->owned, (struct php_owned){ id, search->owner });
	return !search->error;
}

/* Claim what words in the range are the start of. */
static void claim_words(struct part_search *search, uint64_t start, uint64_t size)
{
	struct heap_bounds bounds = allocation_bounds(search->php->space.index);
	uint64_t word;

	for (uint64_t i = 0; size - i >= WORD && i < size && !search->error; i += WORD)
		if (view_word(&search->view, start + i, &word) && word % WORD == 0 &&
		    heap_bounds_hold(&bounds, word))
			claim(search, word, PHP_PART_OTHER);
}

static void claim_elements(struct part_search *search, uint64_t address, enum php_part part)
{
	struct php_array array;
	uint64_t start, size;

	if (view_read(&search->view, address, &array, sizeof(array)) &&
	    php_type(&array.head) == TYPE_ARRAY && php_array_data(&array, &start, &size))
		claim(search, start, part);
}

/*
 * The descriptions of arguments follow that of the returned value; without arguments, the function
 * has the address of the end of a block.
 */
static void claim_arguments(struct part_search *search, uint64_t function)
{
	struct php *php = search->php;
	const struct allocation_index *index = php->space.index;
	uint64_t words[ARGUMENTS / WORD + 1], arguments, start;
	allocation_id id;

	if (!view_read(&search->view, function, words, sizeof(words)) || !words[ARGUMENTS / WORD])
		return;
	arguments = words[ARGUMENTS / WORD];
	if (!(words[0] >> 32 & RETURNS)) {
		claim(search, arguments, PHP_PART_MEMBER);
		return;
	}
	id = allocation_find(index, arguments - 1);
	if (id == NO_ALLOCATION || php_class_at(php, id))
		return;
	start = allocation_start(index, id);
	/* In the heap of PHP it may be that of the next block, too: zend/blocks.c holds these. */
	if (arguments == start + allocation_size(index, id) &&
	    allocation_find(index, arguments) == NO_ALLOCATION &&
	    address_map_find(&php->returned, arguments) == NOT_IN_MAP)
		search->error = address_map_add(&php->returned, arguments, id);
	claim(search, start, PHP_PART_MEMBER);
}

static void claim_function(struct part_search *search, uint64_t address)
{
	uint64_t owner = search->owner, inner;
	struct php_function function;

	if (!php_read_function(search->php, &search->view, address, &function) ||
	    search->depth >= MOST_INNER)
		return;
	claim(search, address, PHP_PART_FUNCTION);
	claim_arguments(search, address);
	if (!function.is_compiled)
		return;
	search->owner = address;
	if (claim(search, function.operations, PHP_PART_CODE)) {
		claim(search, function.names, PHP_PART_NAMES);
		claim_words(search, address, FUNCTION_SIZE);
		search->depth++;
		for (uint32_t i = 0;
		     i < function.inner_count && budget_take(&search->php->space.steps); i++)
			if (view_word(&search->view, function.inner + (uint64_t)WORD * i, &inner))
				claim_function(search, inner);
		search->depth--;
	}
	search->owner = owner;
}

static bool visit_function(void *data, const struct php_item *item)
{
	struct part_search *search = data;
	uint64_t address;

	if (view_word(&search->view, item->place, &address))
		claim_function(search, address);
	return search->error != NULL;
}

static bool visit_member(void *data, const struct php_item *item)
{
	struct part_search *search = data;
	uint64_t address;

	if (view_word(&search->view, item->place, &address))
		claim(search, address, PHP_PART_MEMBER);
	return search->error != NULL;
}

static bool visit_class(void *data, const struct php_item *item)
{
	static const int arrays[] = { CLASS_FUNCTIONS, CLASS_MEMBERS, CLASS_CONSTANTS };
	struct part_search *search = data;
	uint64_t class;

	if (!view_word(&search->view, item->place, &class) || !class || class % WORD != 0)
		return false;
	search->owner = class;
	claim(search, class, PHP_PART_CLASS);
	for (size_t i = 0; i < COUNT_OF(arrays); i++) {
		claim_elements(search, class + (uint64_t)arrays[i], PHP_PART_TABLE);
		php_visit_items(search->php, &search->view, class + (uint64_t)arrays[i],
				arrays[i] == CLASS_FUNCTIONS ? visit_function : visit_member,
				search);
	}
	claim_words(search, class, CLASS_SIZE);
	return search->error != NULL;
}

static void visit_call(void *data, const struct php_call *call)
{
	claim_function(data, call->function);
}

/* Arrays that variables of modules are. */
static bool visit_variable(struct view *view, uint64_t place, uint64_t word, void *data)
{
	struct part_search *search = data;

	if ((word >> 32 & PHP_TYPE) == TYPE_ARRAY && (uint32_t)word)
		claim_elements(search, place, PHP_PART_TABLE);
	return search->error != NULL;
}

uint32_t php_find_closures(const struct php *php, struct view *view)
{
	enum { CLASS_NAME = 8 };
	char name[sizeof("Closure") + 1];
	uint64_t text;

	for (uint32_t i = PHP_KINDS; i <= php->space.classes.list.count; i++)
		if (view_word(view, php->space.classes.list.items[i - 1].number + CLASS_NAME,
			      &text) &&
		    php_read_text(view, text, name, sizeof(name)) && strcmp(name, "Closure") == 0)
			return i;
	return 0;
}

/* zend_closures.c: a closure's function stands behind the object. */
static void visit_closures(struct part_search *search, uint32_t closures)
{
	enum { FUNCTION = 56 };
	const struct php *php = search->php;
	size_t hint = 0;

	for (size_t i = 0; closures && i < allocation_count(php->space.index) && !search->error;
	     i++) {
		if (php_class_at(php, (allocation_id)i) != closures)
			continue;
		search->owner =
			allocation_range_near(php->space.index, (allocation_id)i, &hint).start;
		claim_function(search, search->owner + FUNCTION);
	}
}

/* True if objects of the class may have data of C code. */
static bool has_data(struct part_search *search, uint32_t class)
{
	enum { INTERNAL = 1 };
	uint8_t kind;

	return php_offset_of(search->php, class) > 0 ||
	       (view_read(&search->view, search->php->space.classes.list.items[class - 1].number,
			  &kind, 1) &&
		kind == INTERNAL);
}

/* Arrays that the engine keeps lead to what is no value of a program. */
static bool is_persistent(struct part_search *search, uint64_t address)
{
	enum { PERSISTENT = 1 << 7 };
	struct php_head head;

	return view_read(&search->view, address, &head, sizeof(head)) && (head.info & PERSISTENT);
}

/* C code has arrays within its objects, as those of SplObjectStorage. */
static void claim_arrays(struct part_search *search, uint64_t start, uint64_t end)
{
	uint64_t word;

	for (; start < end && view_word(&search->view, start, &word); start += WORD)
		if ((word >> 32 & PHP_TYPE) == TYPE_ARRAY && (uint32_t)word)
			claim_elements(search, start, PHP_PART_OTHER);
}

/* Visit closures, or all others. */
static void visit_values(struct part_search *search, uint32_t closures, bool are_closures)
{
	struct php *php = search->php;
	const struct allocation_index *index = php->space.index;
	size_t hint = 0;

	for (size_t i = 0; i < allocation_count(php->space.index) && !search->error; i++) {
		uint32_t number = php_class_at(php, (allocation_id)i);
		struct memory_range range;

		if ((number != PHP_ARRAY && number != PHP_ARENA && number < PHP_KINDS) ||
		    (number == closures) != are_closures)
			continue;
		range = allocation_range_near(index, (allocation_id)i, &hint);
		search->owner = range.start;
		if (number == PHP_ARRAY && is_persistent(search, range.start))
			claim_elements(search, range.start, PHP_PART_ELEMENTS);
		else if (number == PHP_ARENA || (number >= PHP_KINDS && has_data(search, number)))
			claim_words(search, range.start, range.end - range.start);
		if (number >= PHP_KINDS && has_data(search, number))
			claim_arrays(search, range.start, range.end);
	}
}

/* Variables of the engine's own module. */
static void visit_engine(struct part_search *search)
{
	const struct runtime_context *context = &search->php->space.context;
	const struct module *module =
		program_find_module(context->program, search->php->engine.place);

	struct memory_range piece;
	size_t number = 0;

	search->owner = 0;
	while (module && module_data_next(context->image, module, &number, &piece))
		if (piece.end - piece.start < MOST_MODULE)
			claim_words(search, piece.start, piece.end - piece.start);
}

static int compare_owners(const void *one, const void *other)
{
	const struct php_owned *a = one, *b = other;

	return a->owner != b->owner ? (a->owner < b->owner ? -1 : 1)
				    : (a->id > b->id) - (a->id < b->id);
}

/* Sort the parts that objects of C code have, for links. */
static struct error *sort_inner(struct php *php)
{
	const struct allocation_index *index = php->space.index;

	array_for_each(part, &php->owned) {
		allocation_id owner = php->parts.items[part->id] == PHP_PART_OTHER && part->owner
					      ? allocation_find(index, part->owner)
					      : NO_ALLOCATION;

		if (owner != NO_ALLOCATION && php_class_at(php, owner) >= PHP_KINDS &&
		    allocation_start(index, owner) == part->owner)
			TRY(array_append(&php->inner, *part));
	}
	if (php->inner.count)
		qsort(php->inner.items, php->inner.count, sizeof(struct php_owned), compare_owners);
	return NULL;
}

/* Claim what words of parts are the start of. */
static void visit_parts(struct part_search *search)
{
	const struct allocation_index *index = search->php->space.index;

	for (; search->done < search->php->owned.count && !search->error; search->done++) {
		struct php_owned part = search->php->owned.items[search->done];

		search->owner = part.owner;
		claim_words(search, allocation_start(index, part.id),
			    allocation_size(index, part.id));
	}
}

struct error *php_find_parts(struct php *php)
{
	const struct runtime_context *context = &php->space.context;
	struct part_search search = { .php = php, .view = { context->image } };
	uint32_t closures;

	TRY(array_resize(&php->parts, allocation_count(php->space.index) + 1));
	if (!php->engine.layout)
		return NULL;
	php_visit_items(php, &search.view, php->engine.classes, visit_class, &search);
	search.owner = 0;
	php_visit_items(php, &search.view, php->engine.functions, visit_function, &search);
	php_visit_calls(php, visit_call, &search);
	module_data_search(context->image, context->program, visit_variable, &search);
	closures = php_find_closures(php, &search.view);
	visit_closures(&search, closures);
	visit_values(&search, closures, false);
	visit_parts(&search);
	/* Words that closures do not use lead to what is of others. */
	visit_values(&search, closures, true);
	visit_engine(&search);
	visit_parts(&search);
	return search.error ? search.error : sort_inner(php);
}
