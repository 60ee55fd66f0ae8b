#include "analyzer/runtimes/php/frames.h"

#include "analyzer/runtimes/php/engine.h"
#include "analyzer/runtimes/php/objects.h"

#include "analyzer/base/text.h"

#include <inttypes.h>

enum {
	WORD = 8,
	OPERATION = 32, /* bytes of a zend_op */
	LINE = 24,
	SELF = 32, /* of a call */
	MOST_TEXT = 512,
	MOST_VALUE = 80,
};

struct reading {
	struct php *php;
	struct view view;
	const struct frame_visitor *visitor;
	void (*visit)(void *data, const struct php_variable *variable);
	void *data;
	struct php_function function; /* of the call at hand */
	char name[MOST_TEXT];
	uint64_t number;
	struct error *error;
};

static void visit_variables(struct reading *reading, const struct php_call *call)
{
	const struct php_function *function = &reading->function;
	struct php_variable variable = { .function = reading->name, .name = "this" };
	char name[MOST_VALUE];
	uint64_t text;

	variable.place = call->address + SELF;
	if (call->self)
		reading->visit(reading->data, &variable);
	variable.name = name;
	variable.place = call->address + CALL_VARIABLES;
	for (uint32_t i = 0; i < function->variables && !reading->error;
	     i++, variable.place += PHP_VALUE)
		if (view_word(&reading->view, function->names + (uint64_t)WORD * i, &text) &&
		    php_read_text(&reading->view, text, name, sizeof(name)))
			reading->visit(reading->data, &variable);
}

static bool read_call(struct reading *reading, const struct php_call *call)
{
	if (!php_read_function(reading->php, &reading->view, call->function, &reading->function))
		return false;
	php_tell_function(&reading->view, &reading->function, reading->name, sizeof(reading->name));
	return true;
}

static void visit_call(void *data, const struct php_call *call)
{
	struct reading *reading = data;

	if (!reading->error && read_call(reading, call) && reading->function.is_compiled)
		visit_variables(reading, call);
}

void php_visit_variables(const struct php *php,
			 void (*visit)(void *data, const struct php_variable *variable), void *data)
{
	struct reading reading = {
		.php = (struct php *)php,
		.view = { php->space.image },
		.visit = visit,
		.data = data,
	};

	php_visit_calls(php, visit_call, &reading);
}

/* True if objects of that class of C code are waiting calls. */
static bool is_waiting(const struct php *php, struct view *view, uint32_t class)
{
	enum { INTERNAL = 1, NAME = 8 };
	uint64_t address, text;
	char name[MOST_VALUE];
	uint8_t kind;

	if (class < PHP_KINDS)
		return false;
	address = php->space.classes.list.items[class - 1].number;
	return view_read(view, address, &kind, 1) && kind == INTERNAL &&
	       view_word(view, address + NAME, &text) &&
	       php_read_text(view, text, name, sizeof(name)) &&
	       (strcmp(name, "Generator") == 0 || strcmp(name, "Fiber") == 0);
}

/* True if a call of compiled code, or one from there of C code, is at address. */
static bool is_call(struct reading *reading, uint64_t address, bool may_be_c)
{
	enum { CODE, FUNCTION = 3, PREVIOUS = 6, WORDS };
	struct php_function *function = &reading->function;
	uint64_t words[WORDS];

	if (!address || address % WORD != 0 ||
	    !view_read(&reading->view, address, words, sizeof(words)) || !words[FUNCTION] ||
	    !php_read_function(reading->php, &reading->view, words[FUNCTION], function))
		return false;
	if (function->is_compiled)
		return words[CODE] - function->operations < (uint64_t)OPERATION * function->count;
	return may_be_c && is_call(reading, words[PREVIOUS], false);
}

/* The call that a word of the object behind its head leads to; 0: it waits in none. */
static uint64_t find_call(struct reading *reading, allocation_id id)
{
	enum { HEAD = 56, MOST_SIZE = 512 };
	size_t hint = 0;
	struct memory_range range = allocation_range_near(reading->php->space.index, id, &hint);
	uint64_t call;

	for (uint64_t at = range.start + HEAD; at < range.end && at - range.start < MOST_SIZE;
	     at += WORD)
		if (view_word(&reading->view, at, &call) && is_call(reading, call, true))
			return call;
	return 0;
}

uint64_t php_waiting_call(const struct php *php, allocation_id id)
{
	struct reading reading = { .php = (struct php *)php, .view = { php->space.image } };

	return php->engine.layout && is_waiting(php, &reading.view, php_class_at(php, id))
		       ? find_call(&reading, id)
		       : 0;
}

void php_visit_waiting(const struct php *php, allocation_id id,
		       void (*visit)(void *data, const struct php_variable *variable), void *data)
{
	struct reading reading = {
		.php = (struct php *)php,
		.view = { php->space.image },
		.visit = visit,
		.data = data,
	};
	uint64_t call = php_waiting_call(php, id);

	if (call)
		php_visit_calls_from(php, call, visit_call, &reading);
}

static void tell_string(struct view *view, uint64_t address, char *ret, size_t size)
{
	uint64_t length = 0;
	char text[MOST_VALUE];

	if (!view_word(view, address + 2 * (uint64_t)WORD, &length))
		ret[0] = '\0';
	else if (length == 0)
		snprintf(ret, size, "''");
	else if (length < size - sizeof("''") && php_read_text(view, address, text, sizeof(text)) &&
		 strlen(text) == length && text_run(text, length) == length)
		snprintf(ret, size, "'%s'", text);
	else
		snprintf(ret, size, "%" PRIu64 " bytes", length);
}

const char *php_tell_value(struct php *php, struct view *view, const struct php_value *value,
			   char *ret, size_t size)
{
	static const char *const plain[] = { "undefined", "null", "false", "true" };
	allocation_id id = php_find_value(php, value);
	struct php_array array;
	double number;

	ret[0] = '\0';
	if (value->type < COUNT_OF(plain))
		return plain[value->type];
	switch (value->type) {
	case 4:
		snprintf(ret, size, "%" PRId64, (int64_t)value->word);
		return "int";
	case 5:
		memcpy(&number, &value->word, sizeof(number));
		snprintf(ret, size, "%.17g", number);
		return "float";
	case TYPE_STRING:
		tell_string(view, value->word, ret, size);
		return "string";
	case TYPE_ARRAY:
		if (view_read(view, value->word, &array, sizeof(array)))
			snprintf(ret, size, "%u element%s", array.count,
				 array.count == 1 ? "" : "s");
		return "array";
	case TYPE_OBJECT:
		return id == NO_ALLOCATION ? "object" : object_class_name_at(&php->space, id);
	default:
		return value->type == TYPE_RESOURCE ? "resource"
		       : value->type >= PHP_POINTER ? "pointer"
						    : "value";
	}
}

static void visit_local(void *data, const struct php_variable *variable)
{
	struct reading *reading = data;
	char name[MOST_VALUE + 1], text[MOST_VALUE];
	struct runtime_local local = { .name = name, .address = variable->place };
	struct php_value value;

	if (!php_read_value(reading->php, &reading->view, variable->place, &value))
		return;
	if (value.type == TYPE_REFERENCE &&
	    !php_read_value(reading->php, &reading->view, value.word + WORD, &value))
		return;
	if (value.type >= TYPE_STRING && value.type < TYPE_REFERENCE)
		local.address = value.word;
	snprintf(name, sizeof(name), "$%s", variable->name);
	local.class_name = php_tell_value(reading->php, &reading->view, &value, text, sizeof(text));
	local.value = text[0] ? text : NULL;
	if (!local.class_name)
		reading->error = &error_no_memory;
	else if (value.type != 0)
		reading->visitor->local(reading->visitor->data, &local);
}

static uint64_t find_line(struct reading *reading, const struct php_call *call)
{
	const struct php_function *function = &reading->function;
	uint32_t line;

	return call->operation - function->operations < (uint64_t)OPERATION * function->count &&
			       view_read(&reading->view, call->operation + LINE, &line,
					 sizeof(line))
		       ? line
		       : 0;
}

static void visit_frame(void *data, const struct php_call *call)
{
	struct reading *reading = data;
	char file[MOST_TEXT];
	struct runtime_frame found = { .number = reading->number };

	if (reading->error || !read_call(reading, call))
		return;
	found.function = reading->name[0] ? reading->name : NULL;
	if (!reading->function.is_compiled) {
		found.kind = "in C";
	} else {
		if (php_read_text(&reading->view, reading->function.file, file, sizeof(file)))
			found.file = file;
		found.line = find_line(reading, call);
		if (!found.function)
			found.function = "{main}";
	}
	reading->visitor->frame(reading->visitor->data, &found);
	reading->number++;
	if (reading->function.is_compiled && reading->visitor->local)
		visit_variables(reading, call);
}

bool php_runs_in(const struct php *php, uint32_t thread)
{
	return php->space.program->thread_count <= 1 ||
	       php->space.program->threads[thread].id == php->space.image->origin.process;
}

struct error *php_visit_frames(struct object_space *space, uint32_t thread,
			       const struct frame_visitor *visitor)
{
	struct php *php = (struct php *)space;
	struct reading reading = {
		.php = php,
		.view = { php->space.image },
		.visitor = visitor,
		.visit = visit_local,
		.data = &reading,
	};
	struct runtime_frame damage = { .damage = "a call of PHP is not there" };

	if (!php->engine.layout || !php_runs_in(php, thread))
		return NULL;
	if (!php_visit_calls(php, visit_frame, &reading) && !reading.error) {
		damage.number = reading.number;
		visitor->frame(visitor->data, &damage);
	}
	return reading.error;
}
