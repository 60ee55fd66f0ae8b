#include "analyzer/classify/demangle.h"

#include "analyzer/base/cleanup.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

enum { LONGEST_NAME = 1 << 16 };

struct output {
	char text[LONGEST_NAME];
	size_t length;
	jmp_buf too_long;
};

/*
 * The demangler cannot be told to stop, but it owns nothing when it calls this
 * (its components are on the stack), so it can be left from here.
 */
static void take_output(const char *text, size_t length, void *data)
{
	struct output *output = data;

	if (length >= sizeof(output->text) - output->length)
		longjmp(output->too_long, 1);
	memcpy(output->text + output->length, text, length);
	output->length += length;
}

static bool demangle(const char *symbol, struct output *output)
{
	if (setjmp(output->too_long))
		return false;
	return cplus_demangle_v3_callback(symbol, DMGL_PARAMS | DMGL_ANSI,
					  take_output, output);
}

char *demangle_type(const char *mangled)
{
	static const char prefix[] = "typeinfo for ";
	_cleanup_(free) struct output *output = calloc(1, sizeof(*output));
	_cleanup_(free) char *symbol = NULL;

	if (!output || asprintf(&symbol, "_ZTI%s", mangled) < 0) {
		symbol = NULL;
		return NULL;
	}
	if (!demangle(symbol, output) ||
	    strncmp(output->text, prefix, sizeof(prefix) - 1) != 0)
		return NULL;
	return strdup(output->text + sizeof(prefix) - 1);
}
