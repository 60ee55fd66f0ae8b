/*
 * Names that a core holds or a user types: demangled, shortened, taken apart.
 */
#include "tests/fuzz/target.h"

#include "analyzer/base/text.h"
#include "analyzer/classify/type_names.h"
#include "analyzer/gate/suppressions.h"
#include "analyzer/query/extension_rules.h"
#include "analyzer/runtimes/crystal/symbol_name.h"
#include "cli/prompt/lexer.h"

#include <string.h>

static void name(const char *text)
{
	_cleanup_(free) char *type = demangle_type(text);
	_cleanup_(free) char *shorter = short_name(text);
	struct symbol_name symbol;

	if (type)
		free(short_name(type));
	if (symbol_name_parse(text, &symbol))
		symbol_name_deinit(&symbol);
}

static void take_rules(const struct line *line)
{
	_cleanup_(extension_rules_deinit) struct extension_rules rules = { NULL };
	struct error *error = NULL;

	for (size_t i = 0; !error && i < line->count; i++)
		error = extension_rules_take(&rules, line->words[i]);
	if (!error)
		error = extension_rules_check(&rules);
	if (error)
		error_destroy(error);
}

static void split(const char *text)
{
	_cleanup_(line_deinit) struct line line = { 0 };
	struct error *error = line_split(text, &line);

	line_continues(text);
	if (error)
		error_destroy(error);
	else
		take_rules(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	_cleanup_(free) char *text = strndup((const char *)bytes, size);

	name(text);
	split(text);
	return 0;
}
