#include "analyzer/types/variable_names.h"

#include "analyzer/base/list.h"
#include "analyzer/program/debug/variables.h"

#include <inttypes.h>
#include <string.h>

/* How well a name fits, from the best on; those of functions are behind all others. */
enum { RANK_EXACT, RANK_SCOPED, RANK_OF_FUNCTION, RANK_NONE = RANK_OF_FUNCTION + 2 };

/* So many of one name are listed; the rest is counted. */
enum { MOST_CANDIDATES = 8 };

struct candidate {
	struct named_variable variable;
	const char *file, *function; /* or NULL */
	bool is_thread_local;
};

struct search {
	const struct variable_context *context;
	const char *name, *last;
	size_t scope; /* the length of what is in front of "::last"; 0: nothing is */
	int rank;     /* of those found */
	struct candidate found[MOST_CANDIDATES];
	size_t count; /* including those left out */
};

const char *variable_last_name(const char *name)
{
	const char *last = name;

	for (const char *next; (next = strstr(last, "::"));)
		last = next + 2;
	return last;
}

/* True if the scope is text, or the last parts of text behind a separator. */
static bool ends_with_scope(const struct search *search, const char *text, size_t length,
			    char separator)
{
	if (length < search->scope ||
	    strncmp(text + length - search->scope, search->name, search->scope) != 0)
		return false;
	return length == search->scope || text[length - search->scope - 1] == separator;
}

static bool is_in_module(const struct search *search, const struct module *module)
{
	const char *const names[] = { module_name(module), module_file_name(module) };

	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (ends_with_scope(search, names[i], strlen(names[i]), '/'))
			return true;
	return false;
}

static bool has_scope(const struct search *search, const struct type_variable *variable,
		      size_t own_scope)
{
	if (own_scope && ends_with_scope(search, variable->name, own_scope, ':'))
		return true;
	if (variable->file && ends_with_scope(search, variable->file, strlen(variable->file), '/'))
		return true;
	return is_in_module(search, variable->module);
}

/* True if the last part of the scope is the function, whose own scope is unknown. */
static bool is_of_function(const struct search *search, const struct type_variable *variable)
{
	size_t length = variable->function ? strlen(variable->function) : 0;
	const char *start = search->name + search->scope - length;

	if (!length || search->scope < length || strncmp(start, variable->function, length) != 0)
		return false;
	return start == search->name || start[-1] == ':';
}

static int rank_of(const struct search *search, const struct type_variable *variable)
{
	const char *last = variable_last_name(variable->name);
	size_t own_scope = last == variable->name ? 0 : (size_t)(last - variable->name) - 2;
	int rank = variable->function ? RANK_OF_FUNCTION : RANK_EXACT;

	if (strcmp(last, search->last) != 0)
		return RANK_NONE;
	if (is_of_function(search, variable))
		return RANK_EXACT;
	if (search->scope && !has_scope(search, variable, own_scope))
		return RANK_NONE;
	return own_scope > search->scope ? rank + RANK_SCOPED : rank;
}

/* Each unit that includes a variable's definition describes it once more. */
static void add_candidate(struct search *search, int rank, const struct candidate *candidate)
{
	if (rank < search->rank)
		search->count = 0;
	search->rank = rank;
	for (size_t i = 0; i < search->count && i < MOST_CANDIDATES; i++) {
		const struct candidate *other = &search->found[i];

		if (other->variable.address == candidate->variable.address &&
		    other->is_thread_local == candidate->is_thread_local &&
		    (!other->is_thread_local ||
		     other->variable.module == candidate->variable.module))
			return;
	}
	if (search->count < MOST_CANDIDATES)
		search->found[search->count] = *candidate;
	search->count++;
}

static void search_types(struct search *search)
{
	const struct type_table *types = search->context->types;

	list_for_each(variable, type_variables(types), type_variable_count(types)) {
		const struct candidate candidate = {
			.variable = { variable->module, variable->address, variable->size,
				      variable->type },
			.file = variable->file,
			.function = variable->function,
			.is_thread_local = variable->is_thread_local,
		};
		int rank = rank_of(search, variable);

		if (rank < RANK_NONE && rank <= search->rank)
			add_candidate(search, rank, &candidate);
	}
}

static bool add_symbol(void *data, const struct symbol *symbol)
{
	struct search *search = data;
	const struct candidate candidate = {
		.variable = { symbol->module, symbol->start,
			      symbol->size ? symbol->size : UINT64_MAX, NO_TYPE },
	};

	if (!search->scope || is_in_module(search, symbol->module))
		add_candidate(search, RANK_EXACT, &candidate);
	return true;
}

/* A scope that may distinguish a candidate, from the shortest on; NULL: there are no more. */
static const char *scope_at(const struct candidate *candidate, size_t number)
{
	const char *slash = candidate->file ? strrchr(candidate->file, '/') : NULL;

	switch (number) {
	case 0:
		return candidate->function;
	case 1:
		return slash ? slash + 1 : candidate->file;
	case 2:
		return module_name(candidate->variable.module);
	default:
		return candidate->file;
	}
}

static bool is_alone(const struct search *search, size_t which, size_t number)
{
	const char *scope = scope_at(&search->found[which], number);

	for (size_t i = 0; scope && i < search->count && i < MOST_CANDIDATES; i++) {
		const char *other = scope_at(&search->found[i], number);

		if (i != which && other && strcmp(other, scope) == 0)
			return false;
	}
	return scope;
}

static void print_candidate(const struct search *search, size_t which, FILE *out)
{
	enum { SCOPES = 4 };

	for (size_t number = 0; number < SCOPES; number++)
		if (is_alone(search, which, number)) {
			fprintf(out, "%s::%s", scope_at(&search->found[which], number),
				search->last);
			return;
		}
	fprintf(out, "0x%" PRIx64, search->found[which].variable.address);
}

static struct error *say_ambiguous(const struct search *search)
{
	_cleanup_(free) char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	TRY_MEMORY(out);
	for (size_t i = 0; i < search->count && i < MOST_CANDIDATES; i++) {
		fputs(i ? ", " : "", out);
		print_candidate(search, i, out);
	}
	if (search->count > MOST_CANDIDATES)
		fprintf(out, " and %zu more", search->count - MOST_CANDIDATES);
	if (fclose(out) != 0)
		return &error_no_memory;
	return error_create(ERROR_USAGE, "several variables are called '%s': say which by %s",
			    search->name, text);
}

static struct error *place(const struct search *search, struct named_variable *ret)
{
	const struct candidate *found = &search->found[0];
	const struct type_variable variable = {
		.module = found->variable.module,
		.address = found->variable.address,
		.is_thread_local = found->is_thread_local,
	};

	*ret = found->variable;
	if (!debug_variable_address(search->context->debug, &variable, &ret->address))
		return error_create(ERROR_USAGE,
				    "'%s' is thread-local, and the main thread has none (yet)",
				    search->name);
	return NULL;
}

struct error *variable_find(const struct variable_context *context, const char *name,
			    struct named_variable *ret)
{
	const char *last = variable_last_name(name);
	struct search search = {
		.context = context,
		.name = name,
		.last = last,
		.scope = last == name ? 0 : (size_t)(last - name) - 2,
		.rank = RANK_NONE,
	};

	*ret = (struct named_variable){ .module = NULL };
	search_types(&search);
	if (search.count == 0)
		debug_visit_data_symbols(context->debug, last, add_symbol, &search);
	if (search.count == 0)
		return NULL;
	return search.count == 1 ? place(&search, ret) : say_ambiguous(&search);
}
