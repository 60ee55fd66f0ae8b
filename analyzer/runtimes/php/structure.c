/*
 * Words of PHP that are no addresses, and no values of programs: heads of values, counts, types of
 * elements and members, what classes and functions are known by, operations of functions that run;
 * and names of these, of variables, members, constants and files. Keys of other arrays are values.
 */
#include "analyzer/runtimes/keeper.h"
#include "analyzer/runtimes/module_data.h"
#include "analyzer/runtimes/php/engine.h"
#include "analyzer/runtimes/php/frames.h"
#include "analyzer/runtimes/php/objects.h"
#include "analyzer/runtimes/php/values.h"

#include <stddef.h>

enum {
	WORD = 8,
	HALF = 4,
	OPERATION = 32, /* bytes of a zend_op */
	OPERATION_LINE = 24,
	CLASS_COUNTS = 24, /* u32 references, flags, and two counts */
	CLASS_COUNTS_END = 40,
	CALL_INFO = 40,	    /* u32, and how many arguments */
	CALL_FUNCTION = 56, /* of the first call in a page of a Fiber */
	CLOSURE_FUNCTION = 56,
	MOST_NAME = 1 << 10,
};

struct structure {
	struct keeper keeper;
	struct php *php;
	uint32_t closures; /* their class */
};

static bool read_array(struct structure *structure, uint64_t address, struct php_array *ret)
{
	return address && address % WORD == 0 &&
	       view_read(&structure->keeper.view, address, ret, sizeof(*ret)) &&
	       php_type(&ret->head) == TYPE_ARRAY && php_array_is_valid(ret);
}

void php_keep_string(struct keeper *keeper, uint64_t address)
{
	uint64_t length;
	char text[2];

	if (!php_read_text(&keeper->view, address, text, sizeof(text)) ||
	    !view_word(&keeper->view, address + 2 * (uint64_t)WORD, &length) || length > MOST_NAME)
		return;
	keep_numbers(keeper, address, WORD);
	keep_numbers(keeper, address + 2 * (uint64_t)WORD, WORD);
	keep_name(keeper, address + PHP_STRING_HEAD, length + 1);
}

static void keep_string_at(struct structure *structure, uint64_t place)
{
	uint64_t address;

	if (view_word(&structure->keeper.view, place, &address) && address)
		php_keep_string(&structure->keeper, address);
}

/* Types of values, and of those that these stand for. */
static void keep_types(struct structure *structure, uint64_t place, uint64_t count, uint64_t step)
{
	for (uint64_t i = 0; i < count && budget_take(&structure->php->space.steps); i++)
		if (keep_numbers(&structure->keeper, place + step * i + WORD, 1))
			return;
}

/* The array at address, without its next number, which may be a value. */
static void keep_array(struct structure *structure, uint64_t address)
{
	const struct php *php = structure->php;
	uint64_t start, size, unit = PHP_BUCKET;
	struct php_array array;
	allocation_id id;

	if (!read_array(structure, address, &array))
		return;
	keep_numbers(&structure->keeper, address, offsetof(struct php_array, data));
	keep_numbers(&structure->keeper, address + offsetof(struct php_array, used),
		     offsetof(struct php_array, position) - offsetof(struct php_array, used));
	if (!php_array_data(&array, &start, &size))
		return;
	id = allocation_find(php->space.index, start);
	if (id != NO_ALLOCATION)
		unit = php_array_unit(&array, allocation_size(php->space.index, id));
	else if (php->engine.layout && php->engine.layout->has_lists && php_array_is_packed(&array))
		unit = PHP_VALUE;
	keep_types(structure, array.data, array.used, unit);
}

static bool keep_key(struct structure *structure, const struct php_item *item)
{
	php_keep_string(&structure->keeper, item->key);
	return structure->keeper.error != NULL;
}

static bool keep_variable(void *data, const struct php_item *item)
{
	return keep_key(data, item);
}

/* An array within other structures, of which the keys are names. */
static void keep_table(struct structure *structure, uint64_t address, php_item_visitor *visit)
{
	keep_array(structure, address);
	php_visit_items(structure->php, &structure->keeper.view, address, visit, structure);
}

/* An index into the table of words. */
static void keep_index(struct structure *structure, uint64_t place)
{
	uint64_t word;

	if (view_word(&structure->keeper.view, place, &word) && (word & 1) && word <= UINT32_MAX)
		keep_numbers(&structure->keeper, place, WORD);
}

static void keep_compiled(struct structure *structure, uint64_t address,
			  const struct php_function *function)
{
	const struct php_layout *layout = structure->php->engine.layout;
	struct keeper *keeper = &structure->keeper;

	keep_numbers(keeper, address + layout->count, HALF);
	keep_numbers(keeper, address + layout->variables, HALF);
	if (layout->inner)
		keep_numbers(keeper, address + layout->inner, HALF);
	keep_index(structure, address + layout->statics);
	keep_numbers(keeper, function->operations + OPERATION_LINE, HALF);
	php_keep_string(&structure->keeper, function->file);
	for (uint32_t i = 0; i < function->variables && budget_take(&structure->php->space.steps);
	     i++)
		keep_string_at(structure, function->names + (uint64_t)WORD * i);
	keep_table(structure, php_follow(structure->php, &keeper->view, function->statics),
		   keep_variable);
}

/* depth: of functions in functions. */
static void keep_function(struct structure *structure, uint64_t address, int depth)
{
	enum { MOST_INNER = 16 };
	struct php_function function;
	uint64_t inner;

	if (!php_read_function(structure->php, &structure->keeper.view, address, &function) ||
	    depth > MOST_INNER)
		return;
	keep_numbers(&structure->keeper, address, WORD);
	php_keep_string(&structure->keeper, function.name);
	if (!function.is_compiled)
		return;
	keep_compiled(structure, address, &function);
	for (uint32_t i = 0; i < function.inner_count && budget_take(&structure->php->space.steps);
	     i++)
		if (view_word(&structure->keeper.view, function.inner + (uint64_t)WORD * i, &inner))
			keep_function(structure, inner, depth + 1);
}

static bool keep_function_of(void *data, const struct php_item *item)
{
	struct structure *structure = data;
	uint64_t address;

	if (view_word(&structure->keeper.view, item->place, &address))
		keep_function(structure, address, 0);
	return structure->keeper.error != NULL;
}

/* A member's offset and flags. */
static bool keep_member(void *data, const struct php_item *item)
{
	struct structure *structure = data;
	uint64_t address;

	if (view_word(&structure->keeper.view, item->place, &address) && address)
		keep_numbers(&structure->keeper, address, WORD);
	return keep_key(structure, item);
}

static bool keep_constant(void *data, const struct php_item *item)
{
	struct structure *structure = data;
	uint64_t address;

	if (view_word(&structure->keeper.view, item->place, &address) && address)
		keep_numbers(&structure->keeper, address + WORD, 1);
	return keep_key(structure, item);
}

static void keep_class(struct structure *structure, uint64_t class)
{
	uint32_t count;
	uint64_t statics;

	keep_numbers(&structure->keeper, class, 1);
	keep_numbers(&structure->keeper, class + CLASS_COUNTS, CLASS_COUNTS_END - CLASS_COUNTS);
	keep_string_at(structure, class + WORD);
	keep_index(structure, class + CLASS_STATICS);
	if (!structure->php->engine.layout)
		return;
	statics = php_static_members(structure->php, &structure->keeper.view, class, &count);
	if (statics)
		keep_types(structure, statics, count, PHP_VALUE);
	keep_table(structure, class + CLASS_FUNCTIONS, keep_function_of);
	keep_table(structure, class + CLASS_MEMBERS, keep_member);
	keep_table(structure, class + CLASS_CONSTANTS, keep_constant);
}

static bool keep_class_of(void *data, const struct php_item *item)
{
	struct structure *structure = data;
	uint64_t class;

	if (view_word(&structure->keeper.view, item->place, &class) && class && class % WORD == 0)
		keep_class(structure, class);
	return structure->keeper.error != NULL;
}

static void keep_call(void *data, const struct php_call *call)
{
	struct structure *structure = data;
	struct php_function function;

	keep_numbers(&structure->keeper, call->address + CALL_INFO, WORD);
	keep_function(structure, call->function, 0);
	if (!php_read_function(structure->php, &structure->keeper.view, call->function,
			       &function) ||
	    !function.is_compiled)
		return;
	keep_numbers(&structure->keeper, function.operations, (uint64_t)OPERATION * function.count);
	keep_types(structure, call->address + CALL_VARIABLES, function.variables, PHP_VALUE);
}

/* C code has arrays in its objects, and counts of elements. */
static void keep_inside(struct structure *structure, uint64_t start, uint64_t end)
{
	enum { MOST_WORDS = 8 };
	struct view *view = &structure->keeper.view;
	struct php_array array;
	uint64_t word;

	for (uint64_t at = start; at < end && view_word(view, at, &word); at += WORD)
		if ((word >> 32 & PHP_TYPE) == TYPE_ARRAY && read_array(structure, at, &array))
			keep_array(structure, at);
	/* SplHeap keeps counts in a block for itself. */
	if (view_word(view, start, &word) &&
	    allocation_used_at(structure->php->space.index, word) != NO_ALLOCATION)
		keep_counts(&structure->keeper, word, word + (uint64_t)MOST_WORDS * WORD);
}

static void keep_object(struct structure *structure, allocation_id id, uint32_t class)
{
	struct php *php = structure->php;
	struct view *view = &structure->keeper.view;
	size_t hint = 0;
	struct memory_range block = allocation_range_near(php->space.index, id, &hint);
	uint64_t address = block.start + php_offset_of(php, class), words[2], call;
	struct php_object object;
	uint32_t count = php_count_members(view, address, block.end, &object);

	keep_numbers(&structure->keeper, address, WORD + HALF);
	keep_types(structure, address + PHP_OBJECT_HEAD, count, PHP_VALUE);
	if (address > block.start) {
		keep_inside(structure, block.start, address);
		/* SplFixedArray: a count of values. */
		if (view_read(view, block.start, words, sizeof(words)) && words[0] <= UINT32_MAX &&
		    allocation_used_at(php->space.index, words[1]) != NO_ALLOCATION) {
			keep_counts(&structure->keeper, block.start, block.start + WORD);
			keep_types(structure, words[1], words[0], PHP_VALUE);
		}
	}
	if (!php->engine.layout)
		return;
	if (class == structure->closures)
		keep_function(structure, address + CLOSURE_FUNCTION, 0);
	call = php_waiting_call(php, id);
	if (call)
		php_visit_calls_from(php, call, keep_call, structure);
}

/* The text of a string is none of it, but for the zero behind it. */
static void keep_value(struct structure *structure, allocation_id id, enum php_kind kind)
{
	size_t hint = 0;
	struct memory_range block = allocation_range_near(structure->php->space.index, id, &hint);
	struct keeper *keeper = &structure->keeper;
	uint64_t word;

	switch (kind) {
	case PHP_STRING:
		if (!view_word(&keeper->view, block.start + 2 * (uint64_t)WORD, &word))
			return;
		keep_numbers(keeper, block.start, WORD);
		keep_counts(keeper, block.start + 2 * (uint64_t)WORD,
			    block.start + PHP_STRING_HEAD);
		keep_numbers(keeper, block.start + PHP_STRING_HEAD + word, 1);
		break;
	case PHP_ARRAY:
		keep_array(structure, block.start);
		break;
	case PHP_REFERENCE:
		keep_numbers(keeper, block.start, WORD);
		keep_numbers(keeper, block.start + 2 * (uint64_t)WORD, HALF);
		break;
	case PHP_RESOURCE:
		keep_numbers(keeper, block.start, 2 * (uint64_t)WORD);
		if (block.end - block.start > 3 * (uint64_t)WORD)
			keep_numbers(keeper, block.start + 2 * (uint64_t)WORD, HALF);
		break;
	case PHP_FIBER_STACK:
		if (structure->php->engine.layout &&
		    view_word(&keeper->view, block.start + CALL_FUNCTION, &word))
			keep_function(structure, word, 0);
		break;
	case PHP_OBJECTS:
	case PHP_ROOTS: /* Free places have the number of another. */
		for (uint64_t at = block.start; at + WORD <= block.end; at += WORD)
			keep_index(structure, at);
		break;
	default:
		break;
	}
}

/* Sizes of the blocks that SQLite asked for are in front of what it uses. */
static void keep_asked(struct structure *structure, allocation_id id)
{
	const struct allocation_index *index = structure->php->space.index;
	uint64_t size = allocation_size(index, id), asked;

	if (view_word(&structure->keeper.view, allocation_start(index, id), &asked) && asked > 0 &&
	    asked <= size - WORD && size - WORD - asked < 2 * (uint64_t)WORD)
		keep_numbers(&structure->keeper, allocation_start(index, id), WORD);
}

static void keep_blocks(struct structure *structure)
{
	const struct php *php = structure->php;

	for (size_t i = 0; i < allocation_count(php->space.index) && !structure->keeper.error;
	     i++) {
		uint32_t class = php_class_at(php, (allocation_id)i);

		if (class >= PHP_KINDS)
			keep_object(structure, (allocation_id)i, class);
		else if (class)
			keep_value(structure, (allocation_id)i, (enum php_kind) class);
		else if (php->parts.items[i])
			keep_asked(structure, (allocation_id)i);
	}
}

/* register_shutdown_function() keeps the size, 64, and a value. */
static bool keep_ending(void *data, const struct php_item *item)
{
	enum { CALL_SIZE = 64 };
	struct structure *structure = data;
	uint64_t call, size;

	if (!view_word(&structure->keeper.view, item->place, &call) || call % WORD != 0 ||
	    !view_word(&structure->keeper.view, call, &size) || size != CALL_SIZE)
		return true;
	keep_numbers(&structure->keeper, call, WORD);
	return keep_numbers(&structure->keeper, call + 2 * (uint64_t)WORD, 1);
}

/* Arrays that variables of modules are, or lead to. */
static bool keep_module_word(struct view *view, uint64_t place, uint64_t word, void *data)
{
	struct structure *structure = data;
	const struct php *php = structure->php;
	struct php_array array;
	allocation_id id;

	(void)view;
	if ((word >> 32 & PHP_TYPE) == TYPE_ARRAY && read_array(structure, place, &array))
		keep_array(structure, place);
	id = word && php->engine.layout ? allocation_used_at(php->space.index, word)
					: NO_ALLOCATION;
	if (id != NO_ALLOCATION && php_class_at(php, id) == PHP_ARRAY)
		php_visit_items(structure->php, &structure->keeper.view, word, keep_ending,
				structure);
	return structure->keeper.error != NULL;
}

/* Counts of the engine's tables, and whether the collector runs. */
static void keep_engine(struct structure *structure)
{
	enum { SEGMENT = 40, SIZES = 4 };
	struct php *php = structure->php;
	const struct php_engine *engine = &php->engine;
	struct keeper *keeper = &structure->keeper;

	if (php->store)
		keep_numbers(keeper, php->store + WORD, WORD);
	if (php->collector)
		keep_numbers(keeper, php->collector + WORD, 2);
	if (engine->words_place)
		keep_counts(keeper, engine->words_place + WORD,
			    engine->words_place + (uint64_t)SIZES * WORD);
	if (!engine->layout)
		return;
	keep_table(structure, engine->globals, keep_variable);
	keep_table(structure, engine->functions, keep_function_of);
	keep_table(structure, engine->classes, keep_class_of);
	keep_table(structure, engine->constants, keep_constant);
	php_visit_calls(php, keep_call, structure);
}

struct error *php_visit_structure(struct object_space *space,
				  const struct structure_visitor *visitor)
{
	struct php *php = (struct php *)space;
	struct structure structure = { { visitor, { space->image }, NULL }, php };

	php->space.steps.left = space->image->size;
	list_for_each(class, space->classes.list.items, space->classes.list.count) {
		if (class->number >= PHP_KINDS)
			keep_class(&structure, class->number);
	}
	structure.closures = php_find_closures(php, &structure.keeper.view);
	keep_engine(&structure);
	keep_blocks(&structure);
	module_data_search(space->image, space->program, keep_module_word, &structure);
	if (!structure.keeper.error)
		structure.keeper.error = php_shared_visit_structure(php, visitor);
	return structure.keeper.error ? structure.keeper.error
				      : php_errors_visit_structure(php, visitor);
}
