#include "analyzer/program/debug/demangle_symbol.h"

#include "analyzer/base/cleanup.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

enum { LONGEST_NAME = 1 << 16 };

struct output {
	size_t length;
	jmp_buf too_long;
	char text[LONGEST_NAME];
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

char *demangle_symbol(const char *symbol)
{
	_cleanup_(free) struct output *output = malloc(sizeof(*output));

	if (!output)
		return NULL;
	output->length = 0;
	if (!demangle(symbol, output))
		return NULL;
	return strndup(output->text, output->length);
}
