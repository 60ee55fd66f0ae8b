#include "analyzer/classify/demangle.h"

#include "analyzer/base/cleanup.h"
#include "analyzer/program/debug/names.h"

#include <stdio.h>
#include <string.h>

char *demangle_type(const char *mangled)
{
	static const char prefix[] = "typeinfo for ";
	_cleanup_(free) char *symbol = NULL, *text = NULL;

	if (asprintf(&symbol, "_ZTI%s", mangled) < 0) {
		symbol = NULL;
		return NULL;
	}
	text = demangle_symbol(symbol);
	if (!text || strncmp(text, prefix, sizeof(prefix) - 1) != 0)
		return NULL;
	return strdup(text + sizeof(prefix) - 1);
}
