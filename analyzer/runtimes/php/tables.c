/*
 * Finds the engine's tables that refer to all objects without holding them:
 *
 *	EG(objects_store)  table | u32 end, u32 size | ...
 *	gc_globals         roots | ...
 *
 * Both tables are arrays of words. That of objects has each at the place of its number; free places
 * are odd. The place of a root is in its own bits; the lowest two bits of the word are flags, and 1
 * if the place is free. An object may have the same number in both.
 */
#include "analyzer/runtimes/php/space.h"
#include "analyzer/runtimes/php/values.h"

#include "analyzer/runtimes/module_data.h"

enum { WORD = 8, FLAGS = 3, MOST_LOOKED_AT = 4096, LEAST_TABLE = 512 };

/* An array of words that has an allocation for itself. */
struct table {
	allocation_id id;
	uint64_t start, count;
};

struct search {
	const struct php *php;
	struct table found;
	bool is_before_first;
};

static bool find_table(const struct php *php, uint64_t start, struct table *ret)
{
	const struct allocation_index *index = php->space.index;

	if (start % WORD != 0)
		return false;
	ret->id = allocation_find(index, start);
	if (ret->id == NO_ALLOCATION || allocation_start(index, ret->id) != start ||
	    !bitmap_get(allocation_used(index), ret->id))
		return false;
	ret->start = start;
	ret->count = allocation_size(index, ret->id) / WORD;
	return ret->count >= LEAST_TABLE;
}

static bool read_object(struct view *view, uint64_t address, uint64_t number,
			struct php_object *ret)
{
	return address % WORD == 0 && view_read(view, address, ret, sizeof(*ret)) &&
	       php_type(&ret->head) == TYPE_OBJECT && ret->number == number;
}

/* True if nearly all sampled words refer to objects at their places. */
static bool are_objects(struct view *view, const struct table *table)
{
	uint64_t right = 0, wrong = 0, word;
	struct php_object object;

	for (uint64_t i = 1; i < table->count && i < MOST_LOOKED_AT; i++) {
		if (!view_word(view, table->start + WORD * i, &word))
			return false;
		if (word & 1)
			continue;
		if (read_object(view, word, i, &object))
			right++;
		else
			wrong++;
	}
	return right > 0 && wrong <= right / 16;
}

static bool is_object_table(struct view *view, uint64_t place, uint64_t word, void *data)
{
	struct search *search = data;
	uint32_t sizes[2];
	struct table table;

	if (!word || !view_read(view, place + WORD, sizes, sizeof(sizes)) || sizes[0] < 2 ||
	    sizes[0] > sizes[1] || !find_table(search->php, word, &table) || sizes[1] > table.count)
		return false;
	table.count = sizes[0];
	search->found = table;
	return are_objects(view, &table);
}

/* True if the word is that of a root, and states its own place. */
static bool is_root(struct view *view, uint64_t word, uint64_t place)
{
	enum { PLACE_BITS = 20, COMPRESSED = 1 << 19 };
	struct php_head head;
	uint32_t known = 0;

	if (!view_read(view, word & ~(uint64_t)FLAGS, &head, sizeof(head)))
		return false;
	known = head.info >> PHP_INFO_SHIFT & ((1U << PLACE_BITS) - 1);
	return known == place ||
	       (place >= COMPRESSED && known == (place % COMPRESSED | COMPRESSED));
}

static bool is_root_table(struct view *view, uint64_t place, uint64_t word, void *data)
{
	struct search *search = data;
	uint64_t right = 0, wrong = 0, entry;
	struct table *table = &search->found;

	if (!word || !find_table(search->php, word, table) ||
	    php_class_at(search->php, table->id) == PHP_OBJECTS)
		return false;
	for (uint64_t i = 1; i < table->count && i < MOST_LOOKED_AT; i++) {
		if (!view_word(view, table->start + WORD * i, &entry))
			return false;
		if ((entry & FLAGS) == 1 || !entry)
			continue;
		if (is_root(view, entry, i))
			right++;
		else
			wrong++;
		if (wrong > right / 4 + 4)
			return false;
	}
	return right > 0;
}

/* Set the class of each object of the table. */
static struct error *know_objects(struct php *php, const struct table *table)
{
	const struct allocation_index *index = php->space.index;
	struct view view = { php->space.image }, objects = view, entries = view;
	struct php_object object;
	uint64_t word;
	uint32_t class;

	for (uint64_t i = 1; i < table->count; i++) {
		allocation_id id;

		if (!view_word(&view, table->start + WORD * i, &word) || (word & 1) ||
		    !read_object(&objects, word, i, &object))
			continue;
		id = allocation_find(index, word);
		if (id == NO_ALLOCATION || !bitmap_get(allocation_used(index), id))
			continue;
		TRY(php_class_know(php, &entries, object.class_entry, &class));
		if (!class)
			continue;
		TRY(object_classes_set(&php->space.classes, id, class - 1));
		if (php->offsets.count <= class)
			TRY(array_resize(&php->offsets, class + 1));
		php->offsets.items[class] = word - allocation_start(index, id);
	}
	return NULL;
}

/* EG(vm_stack_top), which stands before the end of the stack's last page and its start. */
static bool is_stack_top(struct view *view, uint64_t place, uint64_t word, void *data)
{
	struct search *search = data;
	uint64_t next[2];
	struct table table;

	if (!word || !view_read(view, place + WORD, next, sizeof(next)) || word > next[0] ||
	    word < next[1] || !find_table(search->php, next[1], &table) ||
	    next[0] != table.start + WORD * table.count)
		return false;
	search->found = (struct table){ .start = word };
	return true;
}

static bool read_table(struct view *view, uint64_t address, struct php_array *ret)
{
	return address && address % WORD == 0 && view_read(view, address, ret, sizeof(*ret)) &&
	       php_type(&ret->head) == TYPE_ARRAY && php_array_is_valid(ret) && ret->count > 0;
}

/* True if the array's first element is a function of C code. */
static bool has_function(struct view *view, const struct php_array *array)
{
	enum { INTERNAL = 1 };
	uint64_t function, name;
	uint8_t kind;
	char text[2];

	return view_word(view, array->data, &function) &&
	       view_read(view, function, &kind, sizeof(kind)) && kind == INTERNAL &&
	       view_word(view, function + WORD, &name) && php_read_text(view, name, text, 2);
}

/*
 * EG(function_table), before EG(class_table), EG(zend_constants) and the stack, which is gone
 * between requests; before the first request, CG(function_table), which has no stack behind it.
 */
static bool is_function_table(struct view *view, uint64_t place, uint64_t word, void *data)
{
	enum { STACK = 3, STACK_SIZE = 256 << 10, LEAST_FUNCTIONS = 100 };
	const struct search *search = data;
	uint64_t words[6];
	struct php_array functions, other;

	return word && read_table(view, word, &functions) && functions.count >= LEAST_FUNCTIONS &&
	       has_function(view, &functions) && view_read(view, place, words, sizeof(words)) &&
	       read_table(view, words[1], &other) && read_table(view, words[2], &other) &&
	       (search->is_before_first || (words[STACK + 1] - words[STACK + 2] == STACK_SIZE &&
					    words[STACK] - words[STACK + 2] <= STACK_SIZE));
}

/* Find the stack, or where it was. */
static void find_place(struct php *php, struct search *search)
{
	const struct runtime_context *context = &php->space.context;
	struct php_engine *engine = &php->engine;
	uint64_t place;

	engine->place = module_data_search(context->image, context->program, is_stack_top, search);
	if (engine->place) {
		php->stack_top = search->found.start;
		return;
	}
	engine->is_idle = true;
	place = module_data_search(context->image, context->program, is_function_table, search);
	if (!place) {
		search->is_before_first = true;
		place = module_data_search(context->image, context->program, is_function_table,
					   search);
	}
	engine->is_before_first = search->is_before_first;
	engine->place = place ? place + (uint64_t)3 * WORD : 0;
}

struct error *php_find_tables(struct php *php)
{
	const struct runtime_context *context = &php->space.context;
	struct search search = { .php = php };

	find_place(php, &search);
	php->store = module_data_search(context->image, context->program, is_object_table, &search);
	if (php->store) {
		TRY(object_classes_set(&php->space.classes, search.found.id, PHP_OBJECTS - 1));
		TRY(know_objects(php, &search.found));
	}
	php->collector =
		module_data_search(context->image, context->program, is_root_table, &search);
	return php->collector
		       ? object_classes_set(&php->space.classes, search.found.id, PHP_ROOTS - 1)
		       : NULL;
}
