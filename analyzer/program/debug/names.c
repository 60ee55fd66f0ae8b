#include "analyzer/program/debug/names.h"

#include "analyzer/base/macros.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <search.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

/* A name may be as long as its file wants; nobody reads that. */
enum { LONGEST_NAME = 1 << 14, LONGEST_SHOWN = 1 << 16 };

void name_pool_deinit(struct name_pool *pool)
{
	tdestroy(pool->names, free);
	pool->names = NULL;
}

static int compare_texts(const void *text, const void *other)
{
	return strcmp(text, other);
}

const char *name_pool_keep(struct name_pool *pool, char *text)
{
	char **node = text ? tsearch(text, &pool->names, compare_texts) : NULL;

	if (!node || *node != text)
		free(text);
	return node ? *node : NULL;
}

const char *name_pool_print(struct name_pool *pool, const char *format, ...)
{
	return name_pool_keep(pool, FORMATTED(format));
}

/* The length of a method's name that begins there. */
static size_t method_length(const char *method)
{
	static const char *const operators[] = { "<=>", "<<", "<=", "<" };

	for (size_t i = 0; i < COUNT_OF(operators); i++) {
		size_t length = strlen(operators[i]);

		if (strncmp(method, operators[i], length) == 0 && strchr("<:", method[length]))
			return length;
	}
	return strcspn(method, "<:");
}

/* The end of the parentheses that text may begin with. */
static const char *skip_parentheses(const char *text)
{
	size_t depth = 0;

	do {
		depth += *text == '(';
		depth -= *text == ')';
		text++;
	} while (depth > 0 && *text);
	return text;
}

/* The last part of the path of the file that a block is in. */
static const char *print_block(struct name_pool *pool, const char *name)
{
	const char *place = strrchr(name, '@'), *slash = strrchr(name, '/');

	if (!place)
		return NULL;
	return name_pool_print(pool, "(block at %s)", slash > place ? slash + 1 : place + 1);
}

/*
 * Crystal's symbols also name a method's type, its arguments' types and its result:
 *
 *	*Cat@Animal::new<String, Int32>:Cat	Cat::new
 *	~procProc(Nil)@app.cr:301		(block at app.cr:301)
 */
static const char *demangle_crystal(struct name_pool *pool, const char *name)
{
	const char *type_end = NULL, *at = name + 1, *method;

	if (name[0] == '~')
		return print_block(pool, name);
	if (!name[1])
		return NULL;
	while (*at && *at != '#' && *at != '<' &&
	       !(at[0] == ':' && at[1] == ':' && islower(at[2]))) {
		if (*at == '@' && !type_end)
			type_end = at;
		at = *at == '(' ? skip_parentheses(at) : at + 1;
	}
	if (*at != '#' && *at != ':')
		return name_pool_print(pool, "%.*s", (int)method_length(name + 1), name + 1);
	method = at + (*at == '#' ? 1 : 2);
	if (!type_end)
		type_end = at;
	return name_pool_print(pool, "%.*s%.*s%.*s", (int)(type_end - name - 1), name + 1,
			       (int)(method - at), at, (int)method_length(method), method);
}

static bool is_of_crystal(const char *name)
{
	static const char block[] = "~proc";

	return name[0] == '*' || strncmp(name, block, sizeof(block) - 1) == 0;
}

struct output {
	size_t length;
	jmp_buf too_long;
	char text[LONGEST_SHOWN];
};

/*
 * The demanglers cannot be told to stop, but own nothing when they call this (their parts are on
 * the stack), so they can be left from here.
 */
static void take_output(const char *text, size_t length, void *data)
{
	struct output *output = data;

	if (length >= sizeof(output->text) - output->length)
		longjmp(output->too_long, 1);
	memcpy(output->text + output->length, text, length);
	output->length += length;
}

/* Rust's first: its older names are such of C++ as well. */
static int demangle(const char *symbol, struct output *output)
{
	enum { OPTIONS = DMGL_PARAMS | DMGL_ANSI };

	if (setjmp(output->too_long))
		return 0;
	if (rust_demangle_callback(symbol, OPTIONS, take_output, output))
		return 1;
	output->length = 0;
	return cplus_demangle_v3_callback(symbol, OPTIONS, take_output, output);
}

/* "names[abi:cxx11]" has its tag for the linker alone: the source says "names". */
static void drop_abi_tags(char *text)
{
	static const char tag[] = "[abi:";

	for (char *end; (text = strstr(text, tag)) && (end = strchr(text, ']'));)
		memmove(text, end + 1, strlen(end));
}

char *demangle_symbol(const char *symbol)
{
	_cleanup_(free) struct output *output = malloc(sizeof(*output));

	if (!output)
		return NULL;
	output->length = 0;
	if (!demangle(symbol, output))
		return NULL;
	output->text[output->length] = '\0';
	drop_abi_tags(output->text);
	return strdup(output->text);
}

const char *name_demangle(struct name_pool *pool, const char *name)
{
	char *text = NULL;
	const char *kept;

	if (is_of_crystal(name) && strnlen(name, LONGEST_NAME) < LONGEST_NAME) {
		kept = demangle_crystal(pool, name);
		return kept ? kept : name;
	}
	if (name[0] != '_' || strnlen(name, LONGEST_NAME) == LONGEST_NAME)
		return name;
	if (name[1] == 'D')
		text = dlang_demangle(name, DMGL_PARAMS);
	if (!text)
		text = demangle_symbol(name);
	kept = text ? name_pool_keep(pool, text) : NULL;
	return kept ? kept : name;
}

static bool begins_with_any(const char *text, const char *const *beginnings, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strncmp(text, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	return false;
}

/* The end of what opens at the text, a bracket of any kind; NULL: nothing closes it. */
static const char *end_of_brackets(const char *text)
{
	size_t depth = 0;

	for (; *text; text++) {
		if (strchr("<({[", *text))
			depth++;
		else if (strchr(">)}]", *text) && --depth == 0)
			return text + 1;
	}
	return NULL;
}

/*
 * Find where a function's name begins, behind its result type: after the last blank before its
 * parameters that is outside of brackets. Brackets within a name, as in "(anonymous namespace)" and
 * in "f(int)" of "f(int)::{lambda()#1}", are followed by "::"; operators end the search, because
 * some are brackets.
 */
static const char *name_without_result(const char *function)
{
	const char *name = function, *at = function;

	while (*at) {
		if ((at == name || at[-1] == ':') && strncmp(at, "operator", 8) == 0)
			break;
		if (*at == ' ')
			name = ++at;
		else if (strchr("<({[", *at)) {
			const char *end = end_of_brackets(at);
			bool is_of_name =
				*at != '(' || !end || strncmp(end, "::", 2) == 0 ||
				(at >= function + 9 && strncmp(at - 9, "decltype ", 9) == 0);

			if (!end || !is_of_name)
				break;
			at = end;
		} else
			at++;
	}
	return name;
}

bool name_is_of_library(const char *function)
{
	static const char *const readable[] = { "std::", "__gnu_cxx::" };
	static const char *const mangled[] = { "St",  "NSt",  "NKSt",	     "NSa",	    "NKSa",
					       "NSs", "NKSs", "N9__gnu_cxx", "NK9__gnu_cxx" };

	if (strncmp(function, "_Z", 2) != 0)
		return begins_with_any(name_without_result(function), readable, COUNT_OF(readable));
	/* A function within another, as of a lambda, begins with Z. */
	function += 2 + strspn(function + 2, "Z");
	return begins_with_any(function, mangled, COUNT_OF(mangled));
}
