/*
 * The exception that PHP throws, handles in a catch clause, or gave to the program's handler of
 * uncaught ones. A catch clause has no end of its own: the end of the try block jumps there
 * (zend_compile.c). Properties of class Exception and Error stand in the order of their
 * declaration, those of classes derived from them behind (zend_exceptions.stub.php).
 */
#include "analyzer/runtimes/keeper.h"
#include "analyzer/runtimes/php/engine.h"
#include "analyzer/runtimes/php/objects.h"

#include "analyzer/runtimes/object_links.h"

#include <string.h>

enum {
	WORD = 8,
	TRY_WORDS = 4, /* u32: of an entry of the table of try blocks */
	/* struct _zend_op */
	OPERATION = 32,
	JUMP = 8,
	RESULT = 16,
	CODE = 28,
	RESULT_TYPE = 31,
	IS_VARIABLE = 8,
	OP_JUMP = 42,
	OP_CATCH = 107,
	OP_HANDLE = 149,
	/* Properties. */
	MESSAGE = 0,
	SOURCE = 3,
	LINE = 4,
	TRACE = 5,
};

struct search {
	struct php *php;
	struct view view;
	const char *state;
	uint64_t exception; /* 0: none was found */
	struct php_call outermost;
};

static bool is_throwable(struct view *view, uint64_t object)
{
	enum { CLASS = 16, NAME = 8, PARENT = 16, MOST_PARENTS = 64 };
	uint64_t class, parent, text;
	char name[sizeof("Exception") + 1];

	if (!view_word(view, object + CLASS, &class))
		return false;
	for (int i = 0; i < MOST_PARENTS && view_word(view, class + PARENT, &parent); i++) {
		if (!parent)
			return view_word(view, class + NAME, &text) &&
			       php_read_text(view, text, name, sizeof(name)) &&
			       (strcmp(name, "Exception") == 0 || strcmp(name, "Error") == 0);
		class = parent;
	}
	return false;
}

/* Keep the exception that the value at place is, if it is one. */
static void keep_exception(struct search *search, uint64_t place, const char *state)
{
	struct php_value value;

	if (!php_read_value(search->php, &search->view, place, &value) ||
	    (value.type == TYPE_REFERENCE &&
	     !php_read_value(search->php, &search->view, value.word + WORD, &value)) ||
	    value.type != TYPE_OBJECT || !is_throwable(&search->view, value.word))
		return;
	search->exception = value.word;
	search->state = state;
}

static bool has_code(struct view *view, uint64_t operation, uint8_t wanted)
{
	uint8_t code;

	return view_read(view, operation + CODE, &code, sizeof(code)) && code == wanted;
}

/* True if the operation at that address is in the clauses that begin at first. */
static bool is_within(struct view *view, uint64_t first, uint64_t operation)
{
	uint64_t jump = first - OPERATION;
	int32_t distance;

	return operation >= first && has_code(view, jump, OP_JUMP) &&
	       view_read(view, jump + JUMP, &distance, sizeof(distance)) &&
	       operation < jump + (uint64_t)distance;
}

/* The table of a function's try blocks: | u32 count | u32 | table |, and its file behind that. */
struct tries {
	uint64_t count_place, table;
	uint32_t count;
};

static bool read_tries(const struct php *php, struct view *view, uint64_t function,
		       struct tries *ret)
{
	enum { COUNT_BEFORE = 20, TABLE_BEFORE = 8 };
	uint64_t file = function + php->engine.layout->file;

	ret->count_place = file - COUNT_BEFORE;
	return view_read(view, ret->count_place, &ret->count, sizeof(ret->count)) &&
	       view_word(view, file - TABLE_BEFORE, &ret->table);
}

/* The variable of the innermost clause that the call is in; 0: it is in none. */
static uint64_t find_clause(struct search *search, const struct php_call *call,
			    const struct php_function *function)
{
	uint32_t entry[TRY_WORDS], variable;
	uint64_t found = 0;
	struct tries tries;
	struct budget *steps = &search->php->space.steps;
	struct view *view = &search->view;
	uint8_t type;

	if (!read_tries(search->php, view, call->function, &tries))
		return 0;
	for (uint32_t i = 0; i < tries.count && i < function->count && budget_take(steps); i++) {
		uint64_t first;

		if (!view_read(view, tries.table + i * sizeof(entry), entry, sizeof(entry)))
			break;
		first = function->operations + (uint64_t)OPERATION * entry[1];
		if (entry[1] > 0 && entry[1] < function->count && first > found &&
		    is_within(view, first, call->operation))
			found = first;
	}
	for (uint64_t at = call->operation; found && at >= found && budget_take(steps);
	     at -= OPERATION)
		if (has_code(view, at, OP_CATCH))
			return view_read(view, at + RESULT_TYPE, &type, sizeof(type)) &&
					       type == IS_VARIABLE &&
					       view_read(view, at + RESULT, &variable,
							 sizeof(variable))
				       ? call->address + variable
				       : 0;
	return 0;
}

static void visit_call(void *data, const struct php_call *call)
{
	struct search *search = data;
	struct php_function function;
	uint64_t place;

	search->outermost = *call;
	if (search->exception ||
	    !php_read_function(search->php, &search->view, call->function, &function) ||
	    !function.is_compiled ||
	    call->operation - function.operations >= (uint64_t)OPERATION * function.count)
		return;
	place = find_clause(search, call, &function);
	if (place)
		keep_exception(search, place, "while handling");
}

/*
 * True if two of the operations that handle an exception stand there: all three are alike. The code
 * alone may be a byte of an address.
 */
static bool has_handlers(struct view *view, uint64_t place)
{
	enum { LAST_TYPE = 8, TYPES = 3 };
	struct {
		uint64_t handler;
		uint32_t numbers[5];
		uint8_t code, types[TYPES];
	} operations[2];

	if (!view_read(view, place, operations, sizeof(operations)))
		return false;
	for (int i = 0; i < TYPES; i++)
		if (operations[0].types[i] > LAST_TYPE)
			return false;
	return operations[0].code == OP_HANDLE && operations[0].handler &&
	       memcmp(&operations[0], &operations[1], sizeof(*operations)) == 0;
}

/* EG(exception) stands behind the table of objects, before three operations that handle it. */
static void find_thrown(struct search *search)
{
	enum { MOST = 24, OPERATIONS = 3 * WORD };
	uint64_t place = search->php->store;

	for (int i = 0; place && i < MOST; i++, place += WORD)
		if (has_handlers(&search->view, place + OPERATIONS)) {
			if (view_word(&search->view, place, &search->exception) &&
			    !is_throwable(&search->view, search->exception))
				search->exception = 0;
			search->state = "while throwing";
			return;
		}
}

static bool read_property(struct search *search, unsigned int number, uint8_t type, uint64_t *ret)
{
	uint64_t place = search->exception + PHP_OBJECT_HEAD + (uint64_t)PHP_VALUE * number;
	struct php_value value;

	if (!php_read_value(search->php, &search->view, place, &value) || value.type != type)
		return false;
	*ret = value.word;
	return true;
}

static void read_message(struct search *search, struct runtime_exception *ret)
{
	uint64_t string, length;

	if (!read_property(search, MESSAGE, TYPE_STRING, &string) ||
	    !view_word(&search->view, string + 2 * WORD, &length))
		return;
	length = MIN(length, sizeof(ret->message) - 1);
	if (!view_read(&search->view, string + PHP_STRING_HEAD, ret->message, length))
		length = 0;
	ret->message[length] = '\0';
}

/* The function that an entry of a trace is of. */
struct traced {
	struct search *search;
	char class[256], name[256];
};

static bool keep_text(void *data, const struct php_item *item)
{
	struct traced *traced = data;
	struct view *view = &traced->search->view;
	char key[sizeof("function") + 1];
	struct php_value value;

	if (!item->key || !php_read_text(view, item->key, key, sizeof(key)) ||
	    !php_read_value(traced->search->php, view, item->place, &value) ||
	    value.type != TYPE_STRING)
		return false;
	if (strcmp(key, "function") == 0)
		php_read_text(view, value.word, traced->name, sizeof(traced->name));
	else if (strcmp(key, "class") == 0)
		php_read_text(view, value.word, traced->class, sizeof(traced->class));
	return false;
}

static bool read_entry(void *data, const struct php_item *item)
{
	struct traced *traced = data;
	struct php_value value;

	if (php_read_value(traced->search->php, &traced->search->view, item->place, &value) &&
	    value.type == TYPE_ARRAY)
		php_visit_items(traced->search->php, &traced->search->view, value.word, keep_text,
				traced);
	return true;
}

static void visit_place(struct search *search, const struct frame_visitor *visitor)
{
	enum { INTEGER = 4 };
	struct traced traced = { search, "", "" };
	char function[sizeof(traced.class) + sizeof(traced.name) + 2], file[512];
	struct runtime_frame frame = { .function = function };
	uint64_t string, trace;

	if (read_property(search, TRACE, TYPE_ARRAY, &trace))
		php_visit_items(search->php, &search->view, trace, read_entry, &traced);
	snprintf(function, sizeof(function), "%s%s%s", traced.class, traced.class[0] ? "::" : "",
		 traced.name[0] ? traced.name : "{main}");
	if (read_property(search, SOURCE, TYPE_STRING, &string) &&
	    php_read_text(&search->view, string, file, sizeof(file)))
		frame.file = file;
	read_property(search, LINE, INTEGER, &frame.line);
	visitor->frame(visitor->data, &frame);
}

/* Find the exception that is thrown, handled, or was not caught. */
static void find_any(struct search *search)
{
	find_thrown(search);
	php_visit_calls(search->php, visit_call, search);
	/* A function that no file called: what set_exception_handler() was called with. */
	if (!search->exception && search->outermost.address && !search->outermost.is_code)
		keep_exception(search, search->outermost.address + CALL_VARIABLES, "uncaught");
}

struct error *php_find_exception(struct object_space *space, uint32_t thread,
				 const struct frame_visitor *visitor, struct runtime_exception *ret)
{
	struct php *php = (struct php *)space;
	struct search search = { .php = php, .view = { space->image } };
	allocation_id id;

	if (!php->engine.layout || !php_runs_in(php, thread))
		return NULL;
	find_any(&search);
	id = object_find(space, search.exception);
	if (!search.exception || id == NO_ALLOCATION || !object_class_of(space, id))
		return NULL;
	ret->state = search.state;
	ret->class_name = object_class_name_at(space, id);
	TRY_MEMORY(ret->class_name);
	read_message(&search, ret);
	visit_place(&search, visitor);
	return NULL;
}

/* Keeps what is read above, and is no address. */
struct keeping {
	struct search search;
	struct keeper keeper;
};

/* Keep the places where the try blocks of a running function begin and end. */
static void keep_tries(void *data, const struct php_call *call)
{
	struct keeping *keeping = data;
	struct php *php = keeping->search.php;
	struct view *view = &keeping->search.view;
	struct php_function function;
	struct tries tries;

	if (!php_read_function(php, view, call->function, &function) || !function.is_compiled ||
	    !read_tries(php, view, call->function, &tries) || tries.count > function.count)
		return;
	keep_numbers(&keeping->keeper, tries.count_place, sizeof(tries.count));
	keep_numbers(&keeping->keeper, tries.table,
		     (uint64_t)tries.count * TRY_WORDS * sizeof(uint32_t));
}

/* The function and class of the first entry of a trace. */
static bool keep_traced(void *data, const struct php_item *item)
{
	struct keeping *keeping = data;
	struct view *view = &keeping->search.view;
	char key[sizeof("function") + 1];
	struct php_value value;

	if (item->key && php_read_text(view, item->key, key, sizeof(key)) &&
	    (strcmp(key, "function") == 0 || strcmp(key, "class") == 0) &&
	    php_read_value(keeping->search.php, view, item->place, &value)) {
		php_keep_string(&keeping->keeper, item->key);
		php_keep_string(&keeping->keeper, value.word);
	}
	return keeping->keeper.error != NULL;
}

static bool keep_entry(void *data, const struct php_item *item)
{
	struct keeping *keeping = data;
	struct php_value value;

	if (php_read_value(keeping->search.php, &keeping->search.view, item->place, &value) &&
	    value.type == TYPE_ARRAY)
		php_visit_items(keeping->search.php, &keeping->search.view, value.word, keep_traced,
				keeping);
	return true;
}

/* Keep the place that it was thrown at. */
static void keep_place(struct keeping *keeping)
{
	enum { INTEGER = 4, MOST_LINE = 1 << 24 };
	struct search *search = &keeping->search;
	uint64_t word;

	if (read_property(search, LINE, INTEGER, &word) && word < MOST_LINE)
		keep_numbers(&keeping->keeper,
			     search->exception + PHP_OBJECT_HEAD + (uint64_t)PHP_VALUE * LINE,
			     WORD);
	if (read_property(search, SOURCE, TYPE_STRING, &word))
		php_keep_string(&keeping->keeper, word);
	if (read_property(search, TRACE, TYPE_ARRAY, &word))
		php_visit_items(search->php, &search->view, word, keep_entry, keeping);
}

struct error *php_errors_visit_structure(struct php *php, const struct structure_visitor *visitor)
{
	enum { WORDS = 40 };
	struct keeping keeping = {
		{ .php = php, .view = { php->space.image } },
		{ visitor, { php->space.image }, NULL },
	};
	uint64_t place = php->store;

	if (!php->engine.layout)
		return NULL;
	/* The operations behind the exception that is thrown: see find_thrown(). */
	for (int i = 0; place && i < WORDS; i++, place += WORD)
		if (has_code(&keeping.search.view, place, OP_HANDLE))
			keep_numbers(&keeping.keeper, place + CODE, 1);
	php_visit_calls(php, keep_tries, &keeping);
	find_any(&keeping.search);
	if (keeping.search.exception)
		keep_place(&keeping);
	return keeping.keeper.error;
}
