#include "analyzer/runtimes/php/engine.h"

#include "analyzer/heap/cycle.h"
#include "analyzer/runtimes/module_data.h"
#include "analyzer/runtimes/object_links.h"

#include <string.h>

enum {
	WORD = 8,
	/* Offsets of the engine's variables, from the top of the stack of calls. */
	GLOBALS = -152,
	FUNCTIONS = -24,
	CLASSES = -16,
	CONSTANTS = -8,
	CALL = 32,
	/* struct _zend_function */
	COMPILED = 2,
	EVALUATED = 4,
	MOST_CALLS = 1 << 20,
	MOST_MEMBERS = 1 << 16,
};

static const struct php_layout layouts[] = {
	/* 7.4 */
	{ 60, 52, 64, 80, 96, 136, 48, 0, 13, false, true },
	/* 8.0, 8.1 */
	{ 68, 60, 72, 88, 104, 144, 56, 0, 12, false, false },
	/* 8.2, 8.3 */
	{ 80, 76, 88, 96, 112, 152, 72, 180, 12, true, false },
	/* 8.4 */
	{ 96, 92, 104, 112, 128, 168, 88, 188, 12, true, false },
};

struct function_words {
	uint8_t kind, flags[7];
	uint64_t name, scope;
};

static bool read_u32(struct view *view, uint64_t address, uint32_t *ret)
{
	return view_read(view, address, ret, sizeof(*ret));
}

/* Functions that it declares. */
static bool read_inner(const struct php_layout *layout, struct view *view, uint64_t address,
		       struct php_function *ret)
{
	return !layout->inner || (read_u32(view, address + layout->inner, &ret->inner_count) &&
				  view_word(view, address + layout->inner + 12, &ret->inner));
}

static bool read_compiled(const struct php_layout *layout, struct view *view, uint64_t address,
			  struct php_function *ret)
{
	enum { MOST_OPERATIONS = 1 << 24 };

	return read_u32(view, address + layout->count, &ret->count) &&
	       read_u32(view, address + layout->variables, &ret->variables) &&
	       view_word(view, address + layout->operations, &ret->operations) &&
	       view_word(view, address + layout->statics, &ret->statics) &&
	       view_word(view, address + layout->names, &ret->names) &&
	       view_word(view, address + layout->file, &ret->file) &&
	       read_inner(layout, view, address, ret) && ret->count > 0 &&
	       ret->count < MOST_OPERATIONS && ret->variables < ret->count + MOST_MEMBERS;
}

static bool read_function(const struct php_layout *layout, struct view *view, uint64_t address,
			  struct php_function *ret)
{
	struct function_words words;

	if (!address || address % WORD != 0 || !view_read(view, address, &words, sizeof(words)) ||
	    words.kind == 0 || words.kind > EVALUATED)
		return false;
	*ret = (struct php_function){
		.is_compiled = words.kind == COMPILED || words.kind == EVALUATED,
		.name = words.name,
		.scope = words.scope,
	};
	return !ret->is_compiled || read_compiled(layout, view, address, ret);
}

bool php_read_function(const struct php *php, struct view *view, uint64_t address,
		       struct php_function *ret)
{
	return read_function(php->engine.layout, view, address, ret);
}

bool php_read_value(const struct php *php, struct view *view, uint64_t place, struct php_value *ret)
{
	enum { MOST_STEPS = 4 };

	for (int i = 0; i < MOST_STEPS; i++) {
		uint64_t type;

		if (!view_word(view, place, &ret->word) || !view_word(view, place + WORD, &type))
			return false;
		ret->type = (uint8_t)type;
		if (ret->type != php->engine.layout->indirect)
			return true;
		place = ret->word;
	}
	return false;
}

allocation_id php_find_value(const struct php *php, const struct php_value *value)
{
	return value->type >= TYPE_STRING && value->type <= TYPE_REFERENCE
		       ? object_find(&php->space, value->word)
		       : NO_ALLOCATION;
}

uint64_t php_follow(const struct php *php, struct view *view, uint64_t word)
{
	uint64_t target;

	if (word % WORD == 0 && !php->engine.layout->is_doubled)
		return word;
	if (word & 1) {
		if (word / WORD >= MOST_MEMBERS * (uint64_t)WORD || !php->engine.words)
			return 0;
		word += php->engine.words;
	}
	return word && view_word(view, word, &target) ? target : 0;
}

void php_visit_items(struct php *php, struct view *view, uint64_t address, php_item_visitor *visit,
		     void *data)
{
	uint64_t start, size, unit;
	struct php_array array;
	bool has_keys;

	if (!address || address % WORD != 0 || !view_read(view, address, &array, sizeof(array)) ||
	    !php_array_data(&array, &start, &size))
		return;
	has_keys = !php->engine.layout->has_lists || !php_array_is_packed(&array);
	unit = has_keys ? PHP_BUCKET : PHP_VALUE;
	for (uint64_t i = 0; i < array.used && budget_take(&php->space.steps); i++) {
		struct php_item item = { .place = array.data + unit * i, .number = i };
		uint64_t type;

		if (!view_word(view, item.place + WORD, &type))
			return;
		if ((type & UINT8_MAX) == 0)
			continue;
		if (has_keys && (!view_word(view, item.place + PHP_VALUE, &item.number) ||
				 !view_word(view, item.place + PHP_VALUE + WORD, &item.key)))
			return;
		if (visit(data, &item))
			return;
	}
}

uint64_t php_static_members(const struct php *php, struct view *view, uint64_t class,
			    uint32_t *ret_count)
{
	enum { STATIC_COUNT = 36 };
	uint64_t word;

	if (!class || !read_u32(view, class + STATIC_COUNT, ret_count) || *ret_count == 0 ||
	    *ret_count > MOST_MEMBERS || !view_word(view, class + CLASS_STATICS, &word) || !word)
		return 0;
	return php_follow(php, view, word);
}

bool php_read_member(struct view *view, const struct php_item *item, struct php_member *ret)
{
	uint64_t info;

	return item->key && view_word(view, item->place, &info) && info &&
	       read_u32(view, info, &ret->offset) && read_u32(view, info + 4, &ret->flags) &&
	       php_read_text(view, item->key, ret->name, sizeof(ret->name));
}

void php_tell_function(struct view *view, const struct php_function *function, char *ret,
		       size_t size)
{
	enum { CLASS_NAME = 8, MOST = 256 };
	char name[MOST], class[MOST];
	uint64_t text;

	ret[0] = '\0';
	if (!php_read_text(view, function->name, name, sizeof(name)))
		return;
	if (function->scope && view_word(view, function->scope + CLASS_NAME, &text) &&
	    php_read_text(view, text, class, sizeof(class)))
		snprintf(ret, size, "%s::%s", class, name);
	else
		snprintf(ret, size, "%s", name);
}

bool php_visit_calls_from(const struct php *php, uint64_t address,
			  void (*visit)(void *data, const struct php_call *call), void *data)
{
	enum { OBJECT = TYPE_OBJECT, IS_CODE = 1 << 16 };
	struct view view = { php->space.image };
	struct {
		uint64_t operation, call, value, function, self;
		uint32_t info, arguments;
		uint64_t previous;
	} words;
	struct cycle_search search = { .power = 1 };

	for (int i = 0; address && i < MOST_CALLS; i++, address = words.previous) {
		struct php_call call = { .address = address };

		if (cycle_closes(&search, address) || address % WORD != 0 ||
		    !view_read(&view, address, &words, sizeof(words)))
			return false;
		call.operation = words.operation;
		call.function = words.function;
		call.self = (words.info & PHP_TYPE) == OBJECT ? words.self : 0;
		call.is_code = (words.info & IS_CODE) != 0;
		if (call.function)
			visit(data, &call);
	}
	return true;
}

bool php_visit_calls(const struct php *php, void (*visit)(void *data, const struct php_call *call),
		     void *data)
{
	return php_visit_calls_from(php, php->engine.call, visit, data);
}

struct votes {
	struct php *php;
	struct view view;
	size_t counts[COUNT_OF(layouts)];
};

/* True if the function at address is consistent with that layout. */
static bool fits(struct votes *votes, const struct php_layout *layout, uint64_t address)
{
	struct view *view = &votes->view;
	struct php_function function;
	uint64_t line, handler;
	const struct region *code;
	char file[4];

	if (!read_function(layout, view, address, &function))
		return false;
	if (function.is_compiled)
		return function.operations % WORD == 0 &&
		       view_word(view, function.operations + 24, &line) &&
		       php_read_text(view, function.file, file, sizeof(file));
	if (!view_word(view, address + layout->handler, &handler))
		return false;
	code = image_find(votes->php->space.image, handler);
	return code && (code->rights & RIGHT_EXECUTE);
}

static bool vote(void *data, const struct php_item *item)
{
	struct votes *votes = data;
	uint64_t address;

	if (!view_word(&votes->view, item->place, &address))
		return false;
	for (size_t i = 0; i < COUNT_OF(layouts); i++)
		if (fits(votes, &layouts[i], address))
			votes->counts[i]++;
	return false;
}

static bool vote_in_class(void *data, const struct php_item *item)
{
	struct votes *votes = data;
	uint64_t class;

	if (view_word(&votes->view, item->place, &class) && class)
		php_visit_items(votes->php, &votes->view, class + CLASS_FUNCTIONS, vote, votes);
	return false;
}

static void vote_in_call(void *data, const struct php_call *call)
{
	struct votes *votes = data;
	uint64_t place = call->address + 24;

	vote(votes, &(struct php_item){ .place = place });
}

static void choose_layout(struct php *php)
{
	struct votes votes = { .php = php, .view = { php->space.image } };
	struct php_engine *engine = &php->engine;
	size_t best = 0;

	/* Tables of functions and classes have keys: any layout reads them. */
	engine->layout = &layouts[0];
	php_visit_items(php, &votes.view, engine->functions, vote, &votes);
	php_visit_items(php, &votes.view, engine->classes, vote_in_class, &votes);
	php_visit_calls(php, vote_in_call, &votes);
	for (size_t i = 0; i < COUNT_OF(layouts); i++)
		if (votes.counts[i] > votes.counts[best])
			best = i;
	engine->layout = votes.counts[best] ? &layouts[best] : NULL;
}

/*
 * CG(map_ptr_base), a table of words that do not stand in what processes share: { table, u64 size,
 * used }, and from 8.0 on { block, table - 1, size, used }. Places in it are odd.
 */
static bool is_word_table(struct view *view, uint64_t place, uint64_t word, void *data)
{
	enum { UNIT = 4096, MOST = 1 << 24 };
	const struct php *php = data;
	const struct allocation_index *index = php->space.index;
	uint64_t words[3], size, used;
	allocation_id id;

	if (!word || word % WORD != 0 || !view_read(view, place + WORD, words, sizeof(words)))
		return false;
	size = words[0] & 1 ? words[1] : words[0];
	used = words[0] & 1 ? words[2] : words[1];
	if (size == 0 || size % UNIT != 0 || size > MOST || used == 0 || used > size ||
	    ((words[0] & 1) && words[0] + 1 - word > (uint64_t)WORD * MOST))
		return false;
	id = allocation_find(index, word);
	return id != NO_ALLOCATION && allocation_start(index, id) == word &&
	       allocation_size(index, id) >= WORD * size;
}

static void find_words(struct php *php)
{
	const struct runtime_context *context = &php->space.context;
	struct view view = { context->image };
	uint64_t words[2],
		place = module_data_search(context->image, context->program, is_word_table, php);

	php->engine.words_place = place;
	if (place && view_read(&view, place, words, sizeof(words)))
		php->engine.words = words[1] & 1 ? words[1] : words[0] - 1;
}

void php_find_engine(struct php *php)
{
	struct php_engine *engine = &php->engine;
	struct view view = { php->space.image };
	uint64_t place = engine->place;

	php->space.steps.left = php->space.image->size;
	if (!place || !view_word(&view, place + FUNCTIONS, &engine->functions) ||
	    !view_word(&view, place + CLASSES, &engine->classes) ||
	    !view_word(&view, place + CONSTANTS, &engine->constants) ||
	    !view_word(&view, place + CALL, &engine->call))
		return;
	engine->globals = engine->is_idle ? 0 : place + GLOBALS;
	if (engine->is_idle)
		engine->call = 0;
	if (engine->is_before_first)
		engine->constants = 0;
	choose_layout(php);
	if (engine->layout)
		find_words(php);
}
