#include "analyzer/kinds/known_names.h"

#include "analyzer/base/list.h"
#include "analyzer/classify/type_names.h"

#include <string.h>

/* A hostile file may have any number of symbols. */
enum { MOST_NAMES = 1 << 17, MOST_SYMBOLS = 1 << 22 };

struct collector {
	struct known_names *names;
	size_t symbols; /* visited */
	struct error *error;
};

/* Takes over the name, which may be NULL: memory is short. */
static struct error *add_name(struct known_names *names, char *name)
{
	if (name && LIST_GROW(names->list, names->count)) {
		names->list[names->count++] = name;
		return NULL;
	}
	free(name);
	return &error_no_memory;
}

static bool add_class(void *data, const struct symbol *symbol)
{
	static const char vtable[] = "_ZTV";
	struct collector *collector = data;
	_cleanup_(free) char *name = NULL;

	if (strncmp(symbol->name, vtable, strlen(vtable)) == 0)
		name = demangle_type(symbol->name + strlen(vtable));
	if (name)
		collector->error = add_name(collector->names, short_name(name));
	return !collector->error && collector->names->count < MOST_NAMES &&
	       ++collector->symbols < MOST_SYMBOLS;
}

static bool has_types(const struct analysis *analysis)
{
	return analysis_cost(analysis, STAGE_TYPES).built;
}

static struct error *add_types(const struct type_table *types, struct known_names *names)
{
	for (type_number i = 1; i < type_count(types) && names->count < MOST_NAMES; i++) {
		const struct data_type *type = type_get(types, i);

		if (type->name && (type->kind == TYPE_STRUCTURE || type->kind == TYPE_UNION))
			TRY(add_name(names, strdup(type->name)));
	}
	return NULL;
}

static int compare_names(const void *first, const void *second)
{
	return strcmp(*(char *const *)first, *(char *const *)second);
}

static void sort_names(struct known_names *names)
{
	size_t kept = 0;

	if (names->count == 0)
		return;
	qsort(names->list, names->count, sizeof(*names->list), compare_names);
	for (size_t i = 1; i < names->count; i++) {
		if (strcmp(names->list[kept], names->list[i]) == 0)
			free(names->list[i]);
		else
			names->list[++kept] = names->list[i];
	}
	names->count = kept + 1;
}

struct error *known_names_find(struct analysis *analysis, struct known_names *ret)
{
	const struct program *program = analysis_program(analysis);
	_cleanup_(known_names_deinit) struct known_names names = { 0 };
	struct collector collector = { .names = &names };

	for (size_t i = 0; i < program->module_count && !collector.error; i++)
		debug_visit_symbols(analysis_debug(analysis), &program->modules[i], add_class,
				    &collector);
	TRY(collector.error);
	names.has_types = has_types(analysis);
	if (names.has_types && analysis_typing(analysis))
		TRY(add_types(typing_types(analysis_typing(analysis)), &names));
	sort_names(&names);
	*ret = take_struct(names);
	return NULL;
}

void known_names_deinit(struct known_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->list[i]);
	free(names->list);
	*names = (struct known_names){ 0 };
}

bool known_names_are_old(const struct known_names *names, const struct analysis *analysis)
{
	return has_types(analysis) != names->has_types;
}
