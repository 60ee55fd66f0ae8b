#include "analyzer/runtimes/crystal/symbol_name.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 4096 };

static bool is_open(char c)
{
	return c == '(' || c == '{';
}

static bool is_close(char c)
{
	return c == ')' || c == '}';
}

/* Behind the parentheses that text begins with, or its end. */
static const char *skip_nested(const char *text)
{
	size_t depth = 0;

	for (; *text; text++) {
		if (is_open(*text))
			depth++;
		else if (is_close(*text) && --depth == 0)
			return text + 1;
	}
	return text;
}

/* Find the start of the method's name, or NULL; *ret_at is the first @, or NULL. */
static const char *find_method(const char *text, const char **ret_at, bool *ret_of_object)
{

	*ret_at = NULL;
	while (*text && *text != '<') {
		if (is_open(*text)) {
			text = skip_nested(text);
			continue;
		}
		if (*text == '@' && !*ret_at)
			*ret_at = text;
		if (*text == '#') {
			*ret_of_object = true;
			return text + 1;
		}
		/* Names of types begin with capitals, those of methods do not.
		 */
		if (text[0] == ':' && text[1] == ':') {
			text += 2;
			if (*text < 'A' || *text > 'Z') {
				*ret_of_object = false;
				return text;
			}
			continue;
		}
		text++;
	}
	return NULL;
}

/* Behind the last colon that is alone and in no parentheses, or "". */
static const char *find_result(const char *method)
{
	const char *result = "";
	size_t depth = 0;

	for (const char *c = method; *c; c++) {
		if (is_open(*c) || (*c == '<' && c != method))
			depth++;
		else if ((is_close(*c) || *c == '>') && depth > 0)
			depth--;
		if (*c != ':')
			continue;
		if (c[1] == ':') {
			c++;
			continue;
		}
		if (depth == 0)
			result = c + 1;
	}
	return result;
}

static size_t method_length(const char *method)
{
	return strcspn(method, "<:");
}

/* A copy of [start, end) without the marks of derived types. */
static char *copy_type(const char *start, const char *end, bool *ret_virtual)
{
	char *copy = malloc((size_t)(end - start) + 1), *to = copy;

	if (!copy)
		return NULL;
	*ret_virtual = end > start && end[-1] == '+';
	for (; start < end; start++)
		if (*start != '+')
			*to++ = *start;
	*to = 0;
	return copy;
}

bool symbol_name_parse(const char *text, struct symbol_name *ret)
{
	const char *method, *at, *end, *result;
	struct symbol_name name = { 0 };
	bool ignored;

	if (text[0] != '*' || strnlen(text, LONGEST) == LONGEST)
		return false;
	text++;
	method = find_method(text, &at, &name.of_object);
	if (!method)
		return false;
	end = method - (name.of_object ? 1 : 2);
	if (at && at > end)
		at = NULL;
	result = find_result(method);
	name.type = copy_type(text, at ? at : end, &name.is_virtual);
	name.owner = copy_type(at ? at + 1 : text, end, &ignored);
	name.method = strndup(method, method_length(method));
	name.result = copy_type(result, result + strlen(result), &ignored);
	if (!name.type || !name.owner || !name.method || !name.result || !*name.type) {
		symbol_name_deinit(&name);
		return false;
	}
	*ret = name;
	return true;
}

void symbol_name_deinit(struct symbol_name *name)
{
	free(name->type);
	free(name->owner);
	free(name->method);
	free(name->result);
	*name = (struct symbol_name){ 0 };
}
