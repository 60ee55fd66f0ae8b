/*
 * Words of the Zend engine, 7.3 to 8.4, that hold nothing: values that were unset in objects and in
 * tables and arrays of C code, what is above the top of stacks, and weak references.
 *
 *	_zend_vm_stack     | top, where the page was left | end | page before | frames ... |
 *	zend_execute_data  | ... | function | ... u32 arguments | frame below | ... |
 *	zend_fiber         | ... | top frame | first frame | ... |
 *	spl_fixed_array    | count | values | ...
 *	spl_ptr_heap       | elements | ... | count | room | ...
 */
#include "analyzer/runtimes/php/engine.h"
#include "analyzer/runtimes/php/objects.h"

#include "analyzer/runtimes/module_data.h"

enum { WORD = 8, TYPE = 8 /* of a value */, LAST_EMPTY = 3 /* types that refer to nothing */ };

struct unused_search {
	struct php *php;
	struct view view, targets;
	struct unused *unused;
	struct bitmap left; /* pages of stacks that others are behind */
	struct error *error;
};

static const struct allocation_index *index_of(const struct unused_search *search)
{
	return search->php->space.index;
}

/* The size of the block in use that begins there; 0: none does. */
static uint64_t block_size(const struct unused_search *search, uint64_t address)
{
	const struct allocation_index *index = index_of(search);
	allocation_id id = allocation_used_at(index, address);

	return id != NO_ALLOCATION ? allocation_size(index, id) : 0;
}

static bool is_class(struct unused_search *search, uint32_t class, const char *name)
{
	enum class_name_kind kind;
	const char *known =
		object_class_name(&search->php->space,
				  search->php->space.classes.list.items[class - 1].number, &kind);

	return known && strcmp(known, name) == 0;
}

static bool is_name(void *data, const char *name)
{
	return strcmp(name, data) == 0;
}

/* True if the class or one of its bases has that name. */
static bool is_kind_of(struct unused_search *search, uint32_t class, const char *name)
{
	return is_class(search, class, name) ||
	       php_visit_bases(&search->php->space,
			       search->php->space.classes.list.items[class - 1].number, is_name,
			       (char *)(uintptr_t)name);
}

static bool is_weak(struct unused_search *search, uint64_t address)
{
	allocation_id id = allocation_find(index_of(search), address);
	uint32_t class = id == NO_ALLOCATION ? 0 : php_class_at(search->php, id);

	return class >= PHP_KINDS &&
	       (is_class(search, class, "WeakReference") || is_class(search, class, "WeakMap"));
}

/* The words of values that are unset, null, false or true are stale. */
static struct error *add_values(struct unused_search *search, uint64_t start, uint64_t count)
{
	uint8_t type;

	for (uint64_t i = 0; i < count && budget_take(&search->php->space.steps); i++) {
		uint64_t place = start + PHP_VALUE * i;

		if (view_read(&search->targets, place + TYPE, &type, sizeof(type)) &&
		    type <= LAST_EMPTY)
			TRY(unused_add(search->unused, place, place + WORD));
	}
	return NULL;
}

/* An integer key is none, though it be an address: tables of weak references have such. */
static struct error *add_bucket(struct unused_search *search, uint64_t bucket)
{
	struct {
		uint64_t value, type, number, key;
	} words;

	if (!view_read(&search->targets, bucket, &words, sizeof(words)))
		return NULL;
	if ((words.type & UINT8_MAX) == 0)
		return unused_add(search->unused, bucket, bucket + sizeof(words));
	if ((words.type & UINT8_MAX) >= PHP_POINTER && is_weak(search, words.value))
		TRY(unused_add(search->unused, bucket, bucket + WORD));
	if (!words.key && allocation_find(index_of(search), words.number) != NO_ALLOCATION)
		return unused_add(search->unused, bucket + PHP_VALUE, bucket + PHP_VALUE + WORD);
	return NULL;
}

/* The elements of a table that is within something else. */
static struct error *add_table(struct unused_search *search, uint64_t address)
{
	struct php_array array;
	uint64_t start, size, unit, block;

	if (!view_read(&search->view, address, &array, sizeof(array)) ||
	    php_type(&array.head) != TYPE_ARRAY || !php_array_data(&array, &start, &size))
		return NULL;
	block = block_size(search, start);
	unit = php_array_unit(&array, block);
	if (block < array.data - start + unit * array.size)
		return NULL;
	TRY(unused_add_rest(search->unused, start, array.data - start + unit * array.used));
	if (unit == PHP_VALUE)
		return add_values(search, array.data, array.used);
	for (uint64_t i = 0; i < array.used && budget_take(&search->php->space.steps); i++)
		TRY(add_bucket(search, array.data + PHP_BUCKET * i));
	return NULL;
}

static struct error *add_fixed_array(struct unused_search *search, uint64_t start)
{
	uint64_t words[2];

	return view_read(&search->view, start, words, sizeof(words)) &&
			       block_size(search, words[1]) / PHP_VALUE >= words[0]
		       ? add_values(search, words[1], words[0])
		       : NULL;
}

/* Elements have one value, or two with priorities; counts are words from 8.3 on, and ints before.
 */
static struct error *add_heap(struct unused_search *search, uint64_t start)
{
	enum { FIRST = 2, LAST = 7, MOST_UNIT = 48 };
	uint64_t heap, elements, block, counts[2];

	if (!view_word(&search->view, start, &heap) || block_size(search, heap) < WORD * LAST ||
	    !view_word(&search->view, heap, &elements))
		return NULL;
	block = block_size(search, elements);
	for (uint64_t i = FIRST; block && i < LAST; i++) {
		uint64_t unit;

		if (!view_read(&search->view, heap + WORD * i, counts, sizeof(counts)))
			return NULL;
		if (counts[0] >> 32 && counts[0] >> 32 <= UINT16_MAX * UINT64_C(256)) {
			counts[1] = counts[0] >> 32;
			counts[0] &= UINT32_MAX;
		}
		unit = counts[1] ? block / counts[1] / PHP_VALUE * PHP_VALUE : 0;
		if (counts[0] <= counts[1] && unit >= PHP_VALUE && unit <= MOST_UNIT)
			return unused_add_rest(search->unused, elements, unit * counts[0]);
	}
	return NULL;
}

/* A frame of C code: its arguments are behind it. */
static uint64_t end_of_frame(struct unused_search *search, uint64_t frame)
{
	enum { FUNCTION = 24, ARGUMENTS = 44, INTERNAL = 1, MOST = 1 << 10 };
	uint64_t function;
	uint32_t arguments;
	uint8_t kind;

	return view_word(&search->targets, frame + FUNCTION, &function) &&
			       view_read(&search->targets, function, &kind, sizeof(kind)) &&
			       kind == INTERNAL &&
			       view_read(&search->targets, frame + ARGUMENTS, &arguments,
					 sizeof(arguments)) &&
			       arguments < MOST
		       ? frame + CALL_VARIABLES + PHP_VALUE * (uint64_t)arguments
		       : 0;
}

/* The page of a Fiber's stack that the address is in, or NO_ALLOCATION. */
static allocation_id find_fiber_page(const struct unused_search *search, uint64_t address)
{
	allocation_id id = address ? allocation_find(index_of(search), address) : NO_ALLOCATION;

	return id != NO_ALLOCATION && php_class_at(search->php, id) == PHP_FIBER_STACK
		       ? id
		       : NO_ALLOCATION;
}

/* One that waits does so in a function of C code, and nothing is below its first frame. */
static struct error *add_fiber(struct unused_search *search, struct memory_range block)
{
	enum { BELOW = 48, PAGE_HEAD = 32 };
	const struct allocation_index *index = index_of(search);
	uint64_t frames[2], below, top;

	for (uint64_t at = block.start; at + sizeof(frames) <= block.end; at += WORD) {
		allocation_id page, first;

		if (!view_read(&search->view, at, frames, sizeof(frames)))
			return NULL;
		page = find_fiber_page(search, frames[0]);
		first = find_fiber_page(search, frames[1]);
		if (page == NO_ALLOCATION || first == NO_ALLOCATION ||
		    frames[1] != allocation_start(index, first) + PAGE_HEAD ||
		    !view_word(&search->targets, frames[1] + BELOW, &below) || below)
			continue;
		top = end_of_frame(search, frames[0]);
		below = allocation_start(index, page);
		return top ? unused_add_rest(search->unused, below, top - below) : NULL;
	}
	return NULL;
}

/*
 * Behind the members of an object whose class the program declares, if there is no room for a value
 * more, with which the engine guards its own methods.
 */
static struct error *add_end(struct unused_search *search, uint64_t address, uint64_t end,
			     const struct php_object *object, uint32_t count)
{
	enum { USER = 2 };
	uint64_t start = address + PHP_OBJECT_HEAD + (uint64_t)PHP_VALUE * count;
	uint8_t kind;

	if (!view_read(&search->targets, object->class_entry, &kind, sizeof(kind)) || kind != USER)
		return NULL;
	if (end - start >= PHP_VALUE)
		start += PHP_VALUE;
	return start < end ? unused_add(search->unused, start, end) : NULL;
}

static struct error *add_object(struct unused_search *search, struct memory_range block,
				uint32_t class)
{
	uint64_t address = block.start + php_offset_of(search->php, class);
	struct php_object object;
	uint32_t count = php_count_members(&search->view, address, block.end, &object);

	TRY(add_values(search, address + PHP_OBJECT_HEAD, count));
	TRY(add_end(search, address, block.end, &object, count));
	if (is_class(search, class, "Fiber"))
		return add_fiber(search, block);
	if (address - block.start < WORD)
		return NULL;
	if (is_class(search, class, "WeakReference"))
		return unused_add(search->unused, block.start, address);
	TRY(add_table(search, block.start));
	if (is_kind_of(search, class, "SplFixedArray"))
		return add_fixed_array(search, block.start);
	return is_kind_of(search, class, "SplHeap") || is_kind_of(search, class, "SplPriorityQueue")
		       ? add_heap(search, block.start)
		       : NULL;
}

/* Which pages of stacks say where they were left. */
static void find_left(struct unused_search *search)
{
	enum { BEFORE = 16 };
	const struct php *php = search->php;
	uint64_t before;

	for (size_t i = 0; i < allocation_count(php->space.index); i++)
		if ((php_class_at(php, (allocation_id)i) == PHP_STACK ||
		     php_class_at(php, (allocation_id)i) == PHP_FIBER_STACK) &&
		    view_word(&search->view,
			      allocation_start(index_of(search), (allocation_id)i) + BEFORE,
			      &before) &&
		    block_size(search, before))
			bitmap_set(&search->left, allocation_find(index_of(search), before));
}

/* Arenas say always where what they have ends; of a stack, the page that is in use does not. */
static struct error *add_page(struct unused_search *search, allocation_id id,
			      struct memory_range page)
{
	uint64_t top = search->php->stack_top;

	if (top - page.start > page.end - page.start &&
	    ((php_class_at(search->php, id) != PHP_ARENA && !bitmap_get(&search->left, id)) ||
	     !view_word(&search->view, page.start, &top) || top <= page.start))
		return NULL;
	return unused_add_rest(search->unused, page.start, top - page.start);
}

static struct error *add_one(struct unused_search *search, allocation_id id,
			     struct memory_range block)
{
	uint32_t class = php_class_at(search->php, id);

	if (class == PHP_STACK || class == PHP_FIBER_STACK || class == PHP_ARENA)
		return add_page(search, id, block);
	return class >= PHP_KINDS ? add_object(search, block, class) : NULL;
}

/* Tables of the engine's own, within its variables. */
static bool look_at_variable(struct view *view, uint64_t place, uint64_t word, void *data)
{
	struct unused_search *search = data;

	(void)view;
	if (!search->error && (word >> 32 & PHP_TYPE) == TYPE_ARRAY && (uint32_t)word)
		search->error = add_table(search, place);
	return search->error != NULL;
}

static struct error *find_all(struct unused_search *search)
{
	struct php *php = search->php;
	const struct runtime_context *context = &php->space.context;
	size_t hint = 0;

	TRY(bitmap_init(&search->left, allocation_count(context->index), context->account));
	find_left(search);
	for (size_t i = 0; i < allocation_count(php->space.index); i++)
		if (php_class_at(php, (allocation_id)i))
			TRY(add_one(
				search, (allocation_id)i,
				allocation_range_near(context->index, (allocation_id)i, &hint)));
	module_data_search(context->image, context->program, look_at_variable, search);
	return search->error;
}

struct error *php_find_unused(struct object_space *space, struct unused *ret)
{
	struct php *php = (struct php *)space;
	struct unused_search search = {
		.php = php,
		.view = { php->space.image },
		.targets = { php->space.image },
		.unused = ret,
	};
	struct error *error;

	if (!space->has_objects)
		return NULL;
	php->space.steps.left = php->space.image->size;
	error = find_all(&search);
	bitmap_deinit(&search.left);
	return error;
}
