/*
 * PHP 7.4 to 8.4 without threads: the calls that executor_globals leads to, zend_compile.h.
 *
 *	call       operation | inner call | result | function | this, its info | outer call | ...
 *	function   u8 kind | ... | name | class | ...
 *	operation  32 bytes, with its line
 *
 * What differs between versions is found by what it holds.
 */
#include "cli/live/recorder/language.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum {
	WORD = 8,
	LINE = 24, /* of an operation */
	NAME = 8,  /* of a function, and of a class */
	CLASS = 16,
	LENGTH = 16, /* of a string */
	TEXT = 24,
	COMPILED = 2, /* kinds of functions */
	EVALUATED = 4,
	IS_FIRST = 1 << 17,
	MOST_GLOBALS = 300, /* words of executor_globals that are looked at */
	STACK_SIZE = 256 << 10,
	FIRST_FILE = 128, /* where a function may have its file's name */
	LAST_FILE = 176,
};

struct call {
	const char *operation, *inner, *result, *function, *self;
	uint32_t type, info;
	const struct call *outer;
};

/* The stack of calls, and the innermost of them, among the engine's variables. */
struct calls {
	const char *top, *end, *start;
	uint64_t size;
	const struct call *innermost;
};

static const char *globals;
static const char *(*find_file)(void); /* of the innermost compiled function: a string, or NULL */
static const struct calls *calls;      /* NULL: not found yet */
static size_t file;		       /* where functions have it; 0: not found yet */

static bool php_open(void)
{
	return FIND_EXPORTED(globals, "executor_globals") &&
	       FIND_EXPORTED(find_file, "zend_get_executed_filename_ex");
}

/* The engine sets them when it begins. */
static bool find_calls(void)
{
	for (size_t i = 0; !calls && i < MOST_GLOBALS; i++) {
		const struct calls *found = (const struct calls *)(globals + WORD * i);

		if (found->size == STACK_SIZE && found->start && found->top >= found->start &&
		    found->top <= found->end)
			calls = found;
	}
	return calls;
}

static bool is_compiled(const char *function)
{
	return function && (*function == COMPILED || *function == EVALUATED);
}

/* The innermost compiled function has the file that the engine names. */
static bool find_place_of_file(const char *function)
{
	const char *name = file ? NULL : find_file();

	for (size_t at = FIRST_FILE; name && !file && at <= LAST_FILE; at += WORD)
		if (word_at(function + at) == name)
			file = at;
	return file;
}

static void add_string(struct script_call *call, const char *string)
{
	script_call_add(call, string + TEXT, (size_t)word_at(string + LENGTH), 0);
}

static void add_function(struct script_call *call, const char *function)
{
	const char *name = word_at(function + NAME), *class = word_at(function + CLASS);
	char text[RECORDER_SCRIPT_TEXT];

	if (!name)
		script_call_add(call, "{main}", strlen("{main}"), 0);
	else if (!class)
		add_string(call, name);
	else {
		snprintf(text, sizeof(text), "%s::%s", word_at(class + NAME) + TEXT, name + TEXT);
		script_call_add(call, text, strlen(text), 0);
	}
}

static void php_visit(script_visitor *visit, void *data)
{
	if (!find_calls())
		return;
	for (const struct call *at = calls->innermost; at; at = at->outer) {
		struct script_call call;
		uint32_t line;

		if (!is_compiled(at->function) || !at->operation ||
		    !find_place_of_file(at->function))
			continue;
		memcpy(&line, at->operation + LINE, sizeof(line));
		call.line = line;
		call.size = 0;
		call.is_first = at->info & IS_FIRST;
		add_string(&call, word_at(at->function + file));
		add_function(&call, at->function);
		if (!visit(data, &call))
			return;
	}
}

const struct language language_php = {
	.loop = "execute_ex",
	.open = php_open,
	.visit = php_visit,
};
