#include "analyzer/types/sites_parts.h"

#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"

#include <string.h>

enum {
	MOST_SITES = 1 << 20,
	MOST_NAMED_TYPES = 1 << 22,
	MOST_POINTEES = 32, /* of variables of a function */
	MOST_ROUNDS = 8,    /* wrappers of wrappers */
	MOST_OF_TYPE =
		256, /* sites of one type, and calls of the library's functions around them */
	MOST_LIBRARY_CALLS = 32, /* around each other */
};

void sites_destroy(struct sites *sites)
{
	if (!sites)
		return;
	slot_table_deinit(&sites->slots);
	arrays_release(&sites->all, &sites->pointees, &sites->library_calls, &sites->sized,
		       &sites->varying, &sites->libraries, &sites->followed,
		       &sites->regex_functions);
	tables_release(&sites->makers, &sites->looked_up, &sites->libc_sizes, &sites->held);
	free(sites);
}

static const struct maker *find_maker(const struct sites *sites, uint64_t entry)
{
	return table_find(&sites->makers, entry, item, item->entry == entry);
}

/* Allocating functions of C and C++, and which argument has the size. */
static const struct {
	const char *name;
	uint8_t size, count;
} allocators[] = {
	{ "malloc", 0, NOT_AN_ARGUMENT },
	{ "calloc", 1, 0 },
	{ "realloc", 1, NOT_AN_ARGUMENT },
	{ "reallocarray", 2, 1 },
	{ "aligned_alloc", 1, NOT_AN_ARGUMENT },
	{ "memalign", 1, NOT_AN_ARGUMENT },
	{ "valloc", 0, NOT_AN_ARGUMENT },
	{ "pvalloc", 0, NOT_AN_ARGUMENT },
	{ "_Znwm", 0, NOT_AN_ARGUMENT },
	{ "_Znam", 0, NOT_AN_ARGUMENT },
	{ "_ZnwmRKSt9nothrow_t", 0, NOT_AN_ARGUMENT },
	{ "_ZnamRKSt9nothrow_t", 0, NOT_AN_ARGUMENT },
	{ "_ZnwmSt11align_val_t", 0, NOT_AN_ARGUMENT },
	{ "_ZnamSt11align_val_t", 0, NOT_AN_ARGUMENT },
	{ "g_malloc", 0, NOT_AN_ARGUMENT },
	{ "g_malloc0", 0, NOT_AN_ARGUMENT },
	{ "g_malloc_n", 1, 0 },
	{ "g_malloc0_n", 1, 0 },
	{ "g_slice_alloc", 0, NOT_AN_ARGUMENT },
	{ "g_slice_alloc0", 0, NOT_AN_ARGUMENT },
};

/* Functions of the C library that allocate parts of regular expressions. */
static const char *const regex_functions[] = {
	"regcomp",   "regexec",	    "re_compile_pattern", "re_compile_fastmap",
	"re_search", "re_search_2", "re_match",		  "re_match_2",
};

struct visit {
	struct sites *sites;
	struct error *error;
	const struct module *module;
};

static struct error *add_maker(struct sites *sites, struct maker maker)
{
	return find_maker(sites, maker.entry) ? NULL
					      : table_append(&sites->makers, maker.entry, maker);
}

/* True if the symbol is the function of that name, of any version. */
static bool is_function(const struct symbol *symbol, const char *name)
{
	size_t length = strlen(name);

	return symbol->kind == SYMBOL_FUNCTION && strncmp(symbol->raw, name, length) == 0 &&
	       (symbol->raw[length] == '\0' || symbol->raw[length] == '@');
}

static bool add_regex_function(void *data, const struct symbol *symbol)
{
	struct visit *visit = data;

	for (size_t i = 0; !visit->error && i < COUNT_OF(regex_functions); i++)
		if (is_function(symbol, regex_functions[i]))
			visit->error = array_append(&visit->sites->regex_functions, symbol->start);
	return !visit->error;
}

static bool add_allocator(void *data, const struct symbol *symbol)
{
	struct visit *visit = data;

	for (size_t i = 0; !visit->error && i < COUNT_OF(allocators); i++) {
		if (!is_function(symbol, allocators[i].name))
			continue;
		visit->error =
			add_maker(visit->sites, (struct maker){ symbol->start, allocators[i].size,
								allocators[i].count, false, 0, 0 });
		if (!visit->error && i == 0)
			visit->error = array_append(&visit->sites->libraries, visit->module);
	}
	return !visit->error;
}

static bool is_open(const struct sites *sites, type_number number)
{
	const struct data_type *type = type_get(sites->input.types, number);
	enum type_kind target = type_get(sites->input.types, type->target)->kind;

	return type->kind == TYPE_POINTER && (target == TYPE_NONE || target == TYPE_CHARACTER);
}

static bool is_structure(const struct sites *sites, type_number number)
{
	enum type_kind kind = type_get(sites->input.types, number)->kind;

	return kind == TYPE_STRUCTURE || kind == TYPE_UNION;
}

/* Keep what variables of the function point to, each once. */
static struct error *note_pointees(struct sites *sites, const struct code_call *call)
{
	const struct type_table *types = sites->input.types;

	sites->first_pointee = (uint32_t)sites->pointees.count;
	sites->pointee_count = 0;
	for (size_t i = 0; i < call->local_count && sites->pointees.count < MOST_NAMED_TYPES; i++) {
		const struct data_type *type = type_get(types, call->locals[i].type);
		const type_number *first = sites->pointees.items + sites->first_pointee;
		bool is_there = type->kind != TYPE_POINTER || !is_structure(sites, type->target);

		for (size_t j = 0; !is_there && j < sites->pointee_count; j++)
			is_there = first[j] == type->target;
		if (is_there)
			continue;
		if (sites->pointee_count == MOST_POINTEES)
			break;
		TRY(array_append(&sites->pointees, type->target));
		sites->pointee_count++;
	}
	return NULL;
}

static bool is_bytes(const struct sites *sites, type_number number)
{
	return type_get(sites->input.types, number)->kind == TYPE_CHARACTER;
}

/* True if the result becomes only bytes, or nothing known. */
static bool is_untyped(const struct sites *sites, const struct site *site)
{
	return site->type_count == 0 || (site->type_count == 1 && is_bytes(sites, site->types[0]));
}

/* True if it is one of the C library's own functions, which allocate no types of programs. */
static bool is_of_library(const struct sites *sites, uint64_t callee)
{
	const struct module *module = program_find_module(sites->program, callee);

	array_for_each(library, &sites->libraries)
		if (*library == module)
			return true;
	return false;
}

/* Drop calls of the function just read that cannot allocate. */
static void drop_useless(struct sites *sites)
{
	size_t kept = sites->first;

	for (size_t i = sites->first; i < sites->all.count; i++) {
		struct site *site = &sites->all.items[i];
		bool is_unknown = !site->is_known && !find_maker(sites, site->callee);

		if (!is_unknown || !is_untyped(sites, site) || (site->is_return && !site->callee))
			sites->all.items[kept++] = *site;
	}
	sites->all.count = kept;
	sites->first = kept;
}

static bool is_regex_function(const struct sites *sites, uint64_t address)
{
	array_for_each(function, &sites->regex_functions)
		if (*function == address)
			return true;
	return false;
}

/* Keep a call of a library's function that is not named itself. */
static struct error *note_library_call(struct sites *sites, const struct code_call *call)
{
	const bool is_regex = is_regex_function(sites, call->callee);
	const struct library_call around = { is_regex ? REGEX_CALLS : call->callee, call->address,
					     call->function };

	if (!is_regex && !call->is_of_library)
		return NULL;
	sites->is_cut |= sites->library_calls.count >= MOST_SITES;
	return sites->is_cut ? NULL : array_append(&sites->library_calls, around);
}

static struct error *note_call(void *data, const struct code_call *call, uint32_t *ret)
{
	struct sites *sites = data;
	struct site site = {
		.address = call->address,
		.function = call->function,
		.callee = call->callee,
		.constant = call->constant,
		.is_known = call->is_known,
		.is_return = is_open(sites, call->function_result),
	};

	TRY(note_library_call(sites, call));
	if (!find_maker(sites, call->callee) &&
	    (call->is_known ? !is_open(sites, call->result) : is_of_library(sites, call->callee)))
		return NULL;
	if (call->function != sites->function) {
		drop_useless(sites);
		sites->function = call->function;
		TRY(note_pointees(sites, call));
	}
	if (sites->all.count >= MOST_SITES) {
		sites->is_cut = true;
		return NULL;
	}
	site.first_pointee = sites->first_pointee;
	site.pointee_count = sites->pointee_count;
	memcpy(site.arguments, call->arguments, sizeof(site.arguments));
	memcpy(site.passed, call->passed, sizeof(site.passed));
	memcpy(site.factors, call->factors, sizeof(site.factors));
	if (call->is_known && is_bytes(sites, type_get(sites->input.types, call->result)->target))
		site.types[site.type_count++] = type_get(sites->input.types, call->result)->target;
	*ret = (uint32_t)sites->all.count;
	return array_append(&sites->all, site);
}

static void note_use(void *data, uint32_t call, type_number type)
{
	struct sites *sites = data;
	struct site *site = call < sites->all.count ? &sites->all.items[call] : NULL;

	for (size_t i = 0; site && i < site->type_count; i++)
		if (site->types[i] == type)
			return;
	/* Later types are more likely to be another value in the same register. */
	if (site && site->type_count < MOST_TYPES)
		site->types[site->type_count++] = type;
}

/* A value in the middle of what is returned is none that the function gives on. */
static void note_given(void *data, uint32_t call, uint64_t more)
{
	struct sites *sites = data;
	struct site *site = call < sites->all.count ? &sites->all.items[call] : NULL;

	if (!site)
		return;
	/* On several ways, the furthest: where it failed, nothing is added. */
	site->given = !site->is_given || more > site->given ? more : site->given;
	site->is_given = true;
}

bool site_size(const struct site *site, uint64_t *ret)
{
	uint64_t count = 1;

	if (site->size == NOT_AN_ARGUMENT || !(site->constant >> site->size & 1))
		return false;
	if (site->count != NOT_AN_ARGUMENT) {
		if (!(site->constant >> site->count & 1))
			return false;
		count = site->arguments[site->count];
	}
	return !__builtin_mul_overflow(site->arguments[site->size], count, ret) &&
	       !__builtin_add_overflow(*ret, (uint64_t)site->header, ret);
}

/* The parameter of its function that is the argument; NOT_AN_ARGUMENT: none. */
static uint8_t passed_on(const struct site *site, uint8_t argument)
{
	if (argument >= MOST_PARAMETERS || !site->passed[argument])
		return NOT_AN_ARGUMENT;
	return (uint8_t)(site->passed[argument] - 1);
}

/* True if the argument is the constant 1. */
static bool is_one(const struct site *site, uint8_t argument)
{
	return argument != NOT_AN_ARGUMENT && site->constant >> argument & 1 &&
	       site->arguments[argument] == 1;
}

/* The number that the function itself adds to its parameter. */
static uint64_t added_by(const struct site *site)
{
	return passed_on(site, site->size) == NOT_AN_ARGUMENT ? 0 : site->arguments[site->size];
}

/* The parameter of its function by which it multiplies the size; NOT_AN_ARGUMENT: none. */
static uint8_t factor_of(const struct site *site)
{
	if (site->count != NOT_AN_ARGUMENT)
		return passed_on(site, site->count);
	return site->size < MOST_PARAMETERS && site->factors[site->size]
		       ? (uint8_t)(site->factors[site->size] - 1)
		       : NOT_AN_ARGUMENT;
}

/*
 * True if the function keeps something of its own before what it returns: it asks for more by a
 * constant, and returns an address behind the start.
 */
static bool has_header(const struct site *site)
{
	return site->is_return && site->is_given && site->given > 0 &&
	       passed_on(site, site->size) != NOT_AN_ARGUMENT && site->given <= added_by(site) &&
	       added_by(site) <= LARGEST_HEADER;
}

/* Set what a wrapper adds to what it is asked for: not to one of two factors. */
static void add_header(struct maker *maker, const struct site *site)
{
	uint64_t more = added_by(site), header = more + site->header;
	uint64_t offset = site->offset + (site->is_given ? site->given : 0);

	if (maker->size == NOT_AN_ARGUMENT)
		return;
	if (more > LARGEST_HEADER || header > LARGEST_HEADER || offset > header ||
	    (more && site->count != NOT_AN_ARGUMENT && !is_one(site, site->count))) {
		maker->size = maker->count = NOT_AN_ARGUMENT;
		return;
	}
	maker->header = (uint16_t)header;
	maker->offset = (uint16_t)offset;
}

static bool are_alike(const struct maker *one, const struct maker *other)
{
	return one->size == other->size && one->count == other->count &&
	       one->header == other->header && one->offset == other->offset;
}

/* True if its function returns the result of another call that asks for as much as its parameter
 * says. */
static bool is_beside_given(const struct sites *sites, const struct site *site)
{
	const struct site *other = site, *end = sites->all.items + sites->all.count;

	while (other > sites->all.items && other[-1].function == site->function)
		other--;
	for (; other < end && other->function == site->function; other++) {
		const struct maker *maker = find_maker(sites, other->callee);

		if (maker && other->is_given && passed_on(other, maker->size) != NOT_AN_ARGUMENT)
			return true;
	}
	return false;
}

/* Its function returns what it gives: calls of the function are sites, too. */
static struct error *add_wrapper(struct sites *sites, const struct site *site)
{
	struct maker maker = {
		site->function, passed_on(site, site->size), factor_of(site), false, 0, 0
	};
	const struct maker *known = find_maker(sites, site->function);
	struct maker *changed;
	uint64_t size;

	maker.is_constant = site_size(site, &size);
	/* A request for nothing, for which malloc returns the least. */
	if (known && maker.is_constant && size <= 1)
		return NULL;
	/* It cuts up that block, for it returns another. */
	if (maker.is_constant && !site->is_given && is_beside_given(sites, site))
		return NULL;
	if (is_one(site, site->size))
		maker = (struct maker){ site->function,	   maker.count, NOT_AN_ARGUMENT,
					maker.is_constant, 0,		0 };
	else if (maker.count == NOT_AN_ARGUMENT && site->count != NOT_AN_ARGUMENT &&
		 !is_one(site, site->count))
		maker.size = NOT_AN_ARGUMENT;
	add_header(&maker, site);
	if (!known)
		return table_append(&sites->makers, maker.entry, maker);
	changed = &sites->makers.items[known - sites->makers.items];
	if (!are_alike(known, &maker)) {
		changed->size = changed->count = NOT_AN_ARGUMENT;
		changed->header = changed->offset = 0;
	}
	changed->is_constant &= maker.is_constant;
	return NULL;
}

static void update_size(struct site *site, const struct maker *maker)
{
	site->size = maker ? maker->size : NOT_AN_ARGUMENT;
	site->count = maker ? maker->count : NOT_AN_ARGUMENT;
	site->header = maker ? maker->header : 0;
	site->offset = maker ? maker->offset : 0;
}

static struct error *find_makers(struct sites *sites, bool *ret_any)
{
	*ret_any = false;
	array_for_each(site, &sites->all) {
		const struct maker *maker = find_maker(sites, site->callee);

		if (site->is_maker || (site->is_known && !maker))
			continue;
		site->is_maker = *ret_any = true;
		update_size(site, maker);
		if ((site->is_return && is_untyped(sites, site)) || has_header(site))
			TRY(add_wrapper(sites, site));
	}
	return NULL;
}

type_number site_structure(const struct sites *sites, const struct site *site)
{
	type_number found = NO_TYPE;

	for (size_t i = 0; i < site->type_count; i++) {
		if (!is_structure(sites, site->types[i]))
			continue;
		if (found != NO_TYPE)
			return NO_TYPE;
		found = site->types[i];
	}
	return found;
}

/*
 * The constant argument of a call through a pointer, such as one in a structure, that is the size
 * of the result's type.
 */
static uint8_t find_size_of_type(const struct sites *sites, const struct site *site)
{
	const type_number type = site_structure(sites, site);

	for (uint8_t i = 0; i < MOST_PARAMETERS && type != NO_TYPE; i++)
		if (site->constant >> i & 1 &&
		    site->arguments[i] == type_get(sites->input.types, type)->size)
			return i;
	return NOT_AN_ARGUMENT;
}

/* Sizes of wrappers may have become known since the calls were found. */
static void update_sizes(struct sites *sites)
{
	array_for_each(site, &sites->all) {
		update_size(site, find_maker(sites, site->callee));
		if (site->size == NOT_AN_ARGUMENT && !site->callee)
			site->size = find_size_of_type(sites, site);
	}
}

type_number site_leads_to(const struct sites *sites, const struct site *site)
{
	type_number type = site_structure(sites, site);
	enum type_kind kind;

	if (type != NO_TYPE || site->type_count == 0)
		return type;
	/* Later types are more likely to be another value in the same register. */
	kind = type_get(sites->input.types, site->types[0])->kind;
	return kind == TYPE_POINTER || kind == TYPE_CHARACTER || kind == TYPE_NUMBER
		       ? site->types[0]
		       : NO_TYPE;
}

DEFINE_COMPARE(compare_callees, struct library_call, ASCENDING(callee), ASCENDING(address))
DEFINE_COMPARE(compare_varying, struct varying_call, ASCENDING(type), ASCENDING(offset),
	       ASCENDING(site))
DEFINE_COMPARE(compare_sized, struct sized_call, ASCENDING(size), ASCENDING(site))

/*
 * Which calls give which sizes. A wrapper stands for none of its own, for its callers do, unless
 * its sizes are constants, as of a function that gives nodes: then it stands for its callers.
 */
static struct error *index_sizes(struct sites *sites)
{
	for (uint32_t i = 0; i < sites->all.count; i++) {
		const struct site *site = &sites->all.items[i];
		const struct maker *around = find_maker(sites, site->function);
		const struct maker *maker = find_maker(sites, site->callee);
		struct sized_call sized = { .site = i };

		if (!site->is_maker || (maker && maker->is_constant) ||
		    (around && !around->is_constant))
			continue;
		if (site_size(site, &sized.size))
			TRY(array_append(&sites->sized, sized));
		else
			TRY(array_append(&sites->varying,
					 (struct varying_call){ site_leads_to(sites, site),
								site->offset, i }));
	}
	array_sort(&sites->sized, compare_sized);
	array_sort(&sites->varying, compare_varying);
	array_sort(&sites->library_calls, compare_callees);
	return NULL;
}

static struct error *read_code(struct sites *sites)
{
	const struct typing_input *input = &sites->input;
	const struct code_listener listener = { note_call, note_use, note_given, sites };
	const struct casts_input casts_input = {
		.image = input->image,
		.listener = &listener,
		.debug = input->debug,
		.types = input->types,
		.slots = &sites->slots,
		.account = input->account,
		.progress = input->progress,
	};
	struct casts casts = { 0 };
	struct error *error = casts_read(&casts, &casts_input);

	array_swap(&sites->followed, &casts.followed);
	sites->was_read = casts.was_read;
	casts_deinit(&casts);
	return error;
}

/* True if code that is not read may allocate, apart from the libraries of the languages. */
static bool may_allocate_unread(const struct sites *sites, size_t number)
{
	const struct module *module = &sites->program->modules[number];

	array_for_each(library, &sites->libraries)
		if (*library == module)
			return false;
	return !module_is_of_language(module) && !debug_has_functions(sites->input.debug, number);
}

static struct error *read_all(struct sites *sites)
{
	const struct program *program = sites->program;
	struct visit visit = { sites, NULL, NULL };
	bool is_more = true;

	for (size_t i = 0; i < program->module_count; i++) {
		visit.module = &program->modules[i];
		debug_visit_symbols(sites->input.debug, visit.module, add_allocator, &visit);
		if (module_is_of_language(visit.module))
			debug_visit_symbols(sites->input.debug, visit.module, add_regex_function,
					    &visit);
	}
	if (visit.error)
		return visit.error;
	for (size_t i = 0; !sites->has_unread && i < program->module_count; i++)
		sites->has_unread = may_allocate_unread(sites, i);
	TRY(slot_table_init(&sites->slots, sites->input.types, sites->input.account));
	TRY(read_code(sites));
	drop_useless(sites);
	for (size_t i = 0; is_more && i < MOST_ROUNDS; i++)
		TRY(find_makers(sites, &is_more));
	return NULL;
}

static struct error *make(struct sites *sites)
{
	struct kept_entry entry =
		kept_entry_of("sites", sites->input.debug, sites->input.types, true);

	if (!kept_sites_load(&entry, sites)) {
		TRY(read_all(sites));
		if (sites->was_read)
			kept_sites_save(&entry, sites);
	}
	update_sizes(sites);
	return index_sizes(sites);
}

struct error *sites_create(const struct typing_input *input, const struct program *program,
			   struct sites **ret)
{
	_cleanup_(sites_destroy) struct sites *sites = calloc(1, sizeof(*sites));

	TRY_MEMORY(sites);
	sites->input = *input;
	arrays_use(input->account, &sites->all, &sites->pointees, &sites->makers, &sites->libraries,
		   &sites->library_calls, &sites->sized, &sites->varying, &sites->looked_up,
		   &sites->regex_functions, &sites->libc_sizes, &sites->held, &sites->followed);
	sites->program = program;
	TRY(make(sites));
	*ret = take(sites);
	return NULL;
}

/* True if the first member of one structure is the other one, or begins with it. */
static bool begins_with(const struct sites *sites, type_number number, type_number other)
{
	enum { DEEPEST = 16 };
	const struct type_table *types = sites->input.types;

	for (size_t i = 0; i < DEEPEST; i++) {
		const struct data_type *type = type_get(types, number);

		if (number == other)
			return true;
		if (!is_structure(sites, number) || !type->member_count)
			return false;
		number = type_members(types, type)->type;
	}
	return false;
}

bool sites_are_alike(const struct sites *sites, type_number type, type_number other)
{
	return begins_with(sites, type, other) || begins_with(sites, other, type);
}

/* True if its result becomes a pointer to the type, or to one with the same beginning. */
static bool is_of_type(const struct sites *sites, const struct site *site, type_number type)
{
	for (size_t i = 0; i < site->type_count; i++)
		if (is_structure(sites, site->types[i]) &&
		    sites_are_alike(sites, site->types[i], type))
			return true;
	return false;
}

/* True if a structure has a pointer to the type, or a target of its pointers has. */
static bool refers_to(const struct sites *sites, type_number number, type_number type, size_t steps)
{
	const struct type_table *types = sites->input.types;
	const struct data_type *whole = type_get(types, number);
	const struct type_member *members;

	if (!is_structure(sites, number))
		return false;
	members = type_members(types, whole);
	for (size_t i = 0; i < whole->member_count; i++) {
		const struct data_type *member = type_get(types, members[i].type);

		if (member->kind == TYPE_POINTER &&
		    (member->target == type ||
		     (steps > 1 && refers_to(sites, member->target, type, steps - 1))))
			return true;
	}
	return false;
}

static bool names_type(const struct sites *sites, const struct site *site, type_number type)
{
	const type_number *pointees = sites->pointees.items + site->first_pointee;

	if (site->pointee_count == MOST_POINTEES)
		return true;
	for (size_t i = 0; i < site->pointee_count; i++)
		if (pointees[i] == type || refers_to(sites, pointees[i], type, 2))
			return true;
	return false;
}

/*
 * True if that many bytes are too few for a value, even after malloc's rounding: then another site
 * made the allocation, although it may be larger than malloc rounds. Types that end with an array
 * may be cut.
 */
static bool is_too_small(const struct sites *sites, uint64_t size, type_number number)
{
	enum { ROUNDED_BY = 16 };
	const struct type_table *types = sites->input.types;
	const struct data_type *type = type_get(types, number), *last;

	if (type->kind != TYPE_STRUCTURE || type->member_count == 0)
		return false;
	last = type_get(types, type_members(types, type)[type->member_count - 1].type);
	return last->kind != TYPE_ARRAY && size < type->size && type->size - size >= ROUNDED_BY;
}

static bool may_make(const struct sites *sites, const struct site *site, struct memory_range range,
		     type_number type)
{
	uint64_t size;
	bool has_size = site_size(site, &size);

	if (!site->is_maker ||
	    (has_size && (is_too_small(sites, size, type) ||
			  !allocation_fits(sites->input.index, range, size, !site->type_count))))
		return false;
	if (site->type_count)
		return is_of_type(sites, site, type);
	/* The callers of a wrapper are sites. */
	return !find_maker(sites, site->function) && (has_size || names_type(sites, site, type));
}

/* If memory is short, the result is not cached. */
static bool find_function(struct sites *sites, uint64_t address, type_number type,
			  struct code_function *ret)
{
	uint64_t key = address ^ (uint64_t)type << 48;
	const struct looked_up *known = table_find(&sites->looked_up, key, item,
						   item->address == address && item->type == type);
	struct looked_up now = { .address = address, .type = type };

	if (!known) {
		now.is_found = debug_find_function(sites->input.debug, sites->input.types, address,
						   type, &now.function);
		error_destroy(table_append(&sites->looked_up, key, now));
		known = &now;
	}
	*ret = known->function;
	return known->is_found;
}

/* Add the name; false: there are too many. */
static bool add_name(struct site_search *search, const struct code_function *function)
{
	struct site_functions *found = &search->found;

	for (size_t i = 0; i < found->count; i++)
		if (strcmp(found->names[i], function->name) == 0) {
			found->source = NULL;
			return true;
		}
	if (found->count == MOST_MAKERS_NAMED)
		return false;
	found->source = found->count ? NULL : function->source;
	found->names[found->count++] = function->name;
	return true;
}

/* The functions that call one of the C++ library, by way of others of its own; false: see above. */
static bool add_callers(struct site_search *search, uint64_t entry, type_number type, size_t depth)
{
	const struct sites *sites = search->sites;
	const struct library_call *calls = sites->library_calls.items;
	size_t count = sites->library_calls.count;
	size_t first = BISECT(i, 0, count, calls[i].callee < entry);
	struct code_function function;

	if (depth == MOST_LIBRARY_CALLS || first == count || calls[first].callee != entry)
		return false;
	for (size_t i = first; i < count && calls[i].callee == entry; i++) {
		bool is_known = ++search->looked_up <= MOST_OF_TYPE &&
				find_function(search->sites, calls[i].address, type, &function);

		if (search->looked_up > MOST_OF_TYPE)
			return false;
		if (is_known && function.name
			    ? !add_name(search, &function)
			    : !add_callers(search, calls[i].function, type, depth + 1))
			return false;
	}
	return true;
}

bool site_search_add_regex(struct site_search *search)
{
	return add_callers(search, REGEX_CALLS, NO_TYPE, 0);
}

bool site_search_add(struct site_search *search, const struct site *site)
{
	const struct sites *sites = search->sites;
	type_number type = search->type == NO_TYPE ? site_structure(sites, site) : search->type;
	struct code_function function;

	if (++search->looked_up > MOST_OF_TYPE)
		return false;
	if (!find_function(search->sites, site->address, type, &function))
		return add_callers(search, site->function, type, 0);
	if (search->type != NO_TYPE && function.allocated != NO_TYPE && function.allocated != type)
		return true;
	return function.name ? add_name(search, &function)
			     : add_callers(search, site->function, type, 0);
}

struct error *sites_find(struct sites *sites, allocation_id id, type_number type,
			 struct site_functions *ret)
{
	uint64_t start = allocation_start(sites->input.index, id);
	struct memory_range range = { start, start + allocation_size(sites->input.index, id) };
	struct site_search search = { .sites = sites, .type = type };

	*ret = (struct site_functions){ .count = 0 };
	if (sites->is_cut)
		return NULL;
	if (sites_is_of_regex(sites, type)) {
		if (site_search_add_regex(&search))
			*ret = search.found;
		return NULL;
	}
	array_for_each(site, &sites->all)
		if (may_make(sites, site, range, type) && !site_search_add(&search, site))
			return NULL;
	*ret = search.found;
	return NULL;
}

size_t sites_count(const struct sites *sites)
{
	return sites->all.count;
}
