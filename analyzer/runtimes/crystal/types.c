#include "analyzer/runtimes/crystal/types.h"

#include "analyzer/base/budget.h"
#include "analyzer/base/keep.h"
#include "analyzer/base/list.h"
#include "analyzer/base/table.h"
#include "analyzer/program/debug/names.h"
#include "analyzer/runtimes/crystal/functions.h"
#include "analyzer/runtimes/crystal/symbol_name.h"

#include <inttypes.h>
#include <string.h>

enum {
	CALL = 0xe8,
	CALL_SIZE = 5,
};

/* The source of a type's name; the largest wins. */
enum source {
	SOURCE_NONE,
	SOURCE_OPTIMISED, /* a constructor that other ones may be inlined in */
	SOURCE_CODE,
	SOURCE_CONSTANT, /* a symbol */
	SOURCE_LANGUAGE, /* String is always 1 */
};

struct entry {
	struct crystal_type type;
	enum source source;
	bool disputed;	   /* two constructors claim it */
	const char *name;  /* in the pool, or NULL */
	const char *shown; /* as users see it; NULL: not asked for yet */
	bool certain;
	uint64_t store; /* of an instruction that makes one */
};

/* A type has a method of its owner. */
struct relation {
	const char *type, *owner;
};

struct crystal_types {
	const struct image *image;
	const struct program *program;
	struct debug *debug;
	const struct module *module;
	struct function_list functions;
	struct name_pool names;
	ARRAY(struct entry) entries;	  /* by number, once all are found */
	ARRAY(struct crystal_site) sites; /* by type, once all are found */
	struct address_map fields_known;  /* types whose fields were read from debug information */
	struct address_map fields;	  /* numbers of names, by type and offset */
	ARRAY(const char *) field_names;  /* debug's */
	ARRAY(struct relation) relations; /* by type */
	bool relations_known;
};

void crystal_types_destroy(struct crystal_types *types)
{
	arrays_release(&types->functions, &types->entries, &types->sites, &types->relations,
		       &types->field_names);
	tables_release(&types->fields_known, &types->fields);
	name_pool_deinit(&types->names);
	free(types);
}

/* True if the module has a text that all Crystal programs have. */
static bool is_crystal(const struct image *image, const struct module *module)
{
	static const char text[] = "CRYSTAL_LOAD_DEBUG_INFO";

	return module_holds(image, module, text, sizeof(text));
}

static const struct module *find_module(const struct image *image, const struct program *program)
{
	for (size_t i = 0; i < program->module_count; i++)
		if (is_crystal(image, &program->modules[i]))
			return &program->modules[i];
	return NULL;
}

/* A search of all functions. */
struct search {
	struct crystal_types *types;
	struct makers makers;
	struct code_reader *reader;
	struct error *error;
};

static bool allocates(const void *data, uint64_t function)
{
	return maker_at((struct makers *)data, function) != MAKER_NONE;
}

/* True if the code may call a maker, assuming that a call may begin at every byte. */
static bool calls_maker(struct search *search, const struct memory_range *function)
{
	uint64_t available, size = function->end - function->start;
	const uint8_t *code = image_bytes(search->types->image, function->start, &available);

	if (!code || available < size)
		return false;
	for (uint64_t i = 0; i + CALL_SIZE <= size; i++) {
		int32_t distance;

		if (code[i] != CALL)
			continue;
		memcpy(&distance, code + i + 1, sizeof(distance));
		if (maker_at(&search->makers,
			     function->start + i + CALL_SIZE + (uint64_t)(int64_t)distance))
			return true;
	}
	return false;
}

/* The name of the function that begins at address. */
static bool find_name(struct search *search, uint64_t address, struct symbol_name *ret)
{
	struct symbol symbol;

	return address && debug_symbol(search->types->debug, address, &symbol) &&
	       symbol.start == address && symbol_name_parse(symbol.raw, ret);
}

static const char *keep_name(struct crystal_types *types, const char *name)
{
	return name_pool_keep(&types->names, strdup(name));
}

/* The object's class is that whose constructor returns it, or whose initialize is called with it.
 */
static void name_object(struct search *search, const struct memory_range *in,
			const struct made_object *made, struct entry *entry)
{
	bool plain = maker_at(&search->makers, made->maker) & MAKER_PLAIN;
	struct symbol_name name;

	if (find_name(search, made->user, &name)) {
		if (name.of_object && !name.is_virtual && strcmp(name.method, "initialize") == 0) {
			entry->name = keep_name(search->types, name.type);
			entry->source = SOURCE_CODE;
		}
		symbol_name_deinit(&name);
	}
	if (entry->name || !made->returned || !find_name(search, in->start, &name))
		return;
	if (!name.of_object && strcmp(name.method, "new") == 0 &&
	    strcmp(name.type, name.result) == 0) {
		entry->name = keep_name(search->types, name.type);
		entry->source = plain ? SOURCE_CODE : SOURCE_OPTIMISED;
	}
	symbol_name_deinit(&name);
}

static struct error *add_site(struct crystal_types *types, uint32_t type, uint64_t address)
{
	return array_append(&types->sites, (struct crystal_site){ type, address });
}

static struct error *search_function(struct search *search, const struct memory_range *function)
{
	const struct made_object *made;
	size_t count = code_find_objects(search->reader, function->start, function->end, &made);

	for (size_t i = 0; i < count; i++) {
		struct entry entry = {
			.type.number = made[i].type,
			.type.size = (uint32_t)made[i].size,
			.type.atomic = maker_at(&search->makers, made[i].maker) & MAKER_ATOMIC,
			.type.guessed = maker_at(&search->makers, made[i].maker) & MAKER_GUESSED,
			.store = made[i].store,
		};

		if (made[i].type > STRING_TYPE && made[i].type < MOST_TYPES)
			TRY(add_site(search->types, made[i].type, made[i].call));
		if (!made_object_has_type(&made[i]))
			continue;
		name_object(search, function, &made[i], &entry);
		TRY(array_append(&search->types->entries, entry));
	}
	return code_reader_missed(search->reader) ? add_site(search->types, 0, function->start)
						  : NULL;
}

/* True if there is no library but the vdso. */
static bool is_static(const struct search *search)
{
	const struct program *program = search->types->program;
	size_t files = 0;

	for (size_t i = 0; i < program->module_count; i++)
		files += program->modules[i].path[0] == '/';
	return files == 1;
}

static struct error *search_functions(struct search *search, struct memory_account *account)
{
	struct function_list *list = &search->types->functions;

	TRY(function_list_init(list, search->types->image, search->types->module, account));
	if (is_static(search) && !search->makers.found)
		TRY(makers_guess(&search->makers, list));
	for (size_t i = 0; i < list->count; i++)
		if (calls_maker(search, &list->items[i]))
			TRY(search_function(search, &list->items[i]));
	return NULL;
}

/* "Foo:type_id" */
static bool take_constant(void *data, const struct symbol *symbol)
{
	static const char suffix[] = ":type_id";
	size_t length = strlen(symbol->name);
	struct search *search = data;
	struct entry entry = { .source = SOURCE_CONSTANT };
	char *name, *to;

	if (length <= sizeof(suffix) - 1 ||
	    strcmp(symbol->name + length - (sizeof(suffix) - 1), suffix) != 0 ||
	    !image_read_u32(search->types->image, symbol->start, &entry.type.number) ||
	    entry.type.number <= STRING_TYPE || entry.type.number >= MOST_TYPES)
		return true;
	name = strndup(symbol->name, length - (sizeof(suffix) - 1));
	to = name;
	for (const char *c = name; c && *c; c++)
		if (*c != '+')
			*to++ = *c;
	if (name)
		*to = 0;
	entry.name = name_pool_keep(&search->types->names, name);
	search->error = array_append(&search->types->entries, entry);
	return !search->error;
}

DEFINE_COMPARE(compare_sites, struct crystal_site, ASCENDING(type), ASCENDING(address))
DEFINE_COMPARE(compare_entries, struct entry, ASCENDING(type.number), DESCENDING(source))

/* True if objects of both are allocated alike. */
static bool is_made_alike(const struct crystal_type *type, const struct crystal_type *other)
{
	return type->size == other->size && type->atomic == other->atomic;
}

/*
 * How most of the count entries for one number allocate. Code that stores the number for another
 * reason is in the minority, or else nothing is certain.
 */
static struct crystal_type find_majority(const struct entry *list, size_t count)
{
	struct crystal_type best = { 0 };
	size_t most = 0;

	for (size_t i = 0; i < count; i++) {
		size_t alike = 0;

		if (list[i].type.size == 0)
			continue;
		/* A constructor knows. */
		if (list[i].name && list[i].source == SOURCE_CODE)
			return list[i].type;
		for (size_t j = 0; j < count; j++)
			alike += is_made_alike(&list[i].type, &list[j].type);
		if (alike <= most)
			continue;
		most = alike;
		best = list[i].type;
	}
	return best;
}

/* Merge the entries for a number, which are sorted by source. */
static struct entry merge(const struct entry *list, size_t count)
{
	struct entry merged = list[0];

	merged.type = find_majority(list, count);
	merged.type.number = list[0].type.number;
	for (size_t i = 0; i < count; i++) {
		if (list[i].store && !merged.store)
			merged.store = list[i].store;
		if (list[i].source == merged.source && list[i].name &&
		    strcmp(list[i].name, merged.name) != 0)
			merged.disputed = true;
	}
	return merged;
}

static void merge_entries(struct crystal_types *types)
{
	struct entry *list = types->entries.items;
	size_t count = types->entries.count, kept = 0, next;

	array_sort(&types->entries, compare_entries);
	for (size_t i = 0; i < count; i = next) {
		struct entry merged;

		for (next = i + 1; next < count && list[next].type.number == list[i].type.number;)
			next++;
		merged = merge(&list[i], next - i);
		/* A type that nothing makes, such as an abstract class, has no objects. */
		if (merged.type.size)
			list[kept++] = merged;
	}
	types->entries.count = kept;
}

static void search_deinit(struct search *search)
{
	makers_deinit(&search->makers);
}
DEFINE_DEINIT(search_deinit, struct search)

static struct error *find_types(struct crystal_types *types, struct memory_account *account)
{
	_cleanup_(code_reader_destroy) struct code_reader *reader = NULL;
	_cleanup_(search_deinit) struct search search = { .types = types };

	TRY(code_reader_create(types->image, allocates, &search.makers, &reader));
	makers_init(&search.makers, types->image, types->debug, types->module, account);
	search.reader = reader;
	debug_visit_symbols(types->debug, types->module, take_constant, &search);
	TRY(search.error);
	TRY(search_functions(&search, account));
	merge_entries(types);
	array_sort(&types->sites, compare_sites);
	return NULL;
}

struct error *crystal_types_create(const struct image *image, const struct program *program,
				   struct debug *debug, struct memory_account *account,
				   struct crystal_types **ret)
{
	_cleanup_(crystal_types_destroy) struct crystal_types *types = NULL;
	const struct module *module = find_module(image, program);

	*ret = NULL;
	if (!module)
		return NULL;
	types = calloc(1, sizeof(*types));
	TRY_MEMORY(types);
	types->image = image;
	types->program = program;
	types->debug = debug;
	types->module = module;
	arrays_use(account, &types->entries, &types->sites, &types->relations, &types->fields_known,
		   &types->fields, &types->field_names);
	TRY(find_types(types, account));
	*ret = take(types);
	return NULL;
}

size_t crystal_type_count(const struct crystal_types *types)
{
	return types->entries.count;
}

const struct crystal_type *crystal_type_at(const struct crystal_types *types, size_t rank)
{
	return &types->entries.items[rank].type;
}

size_t crystal_type_index(const struct crystal_types *types, uint32_t number)
{
	const struct entry *list = types->entries.items;
	size_t count = types->entries.count, above = LIST_ABOVE(list, count, type.number, number);

	return above > 0 && list[above - 1].type.number == number ? above - 1 : count;
}

static struct entry *find_entry(const struct crystal_types *types, uint32_t number)
{
	size_t index = crystal_type_index(types, number);

	return index < types->entries.count ? &types->entries.items[index] : NULL;
}

void crystal_types_set_fiber(struct crystal_types *types, uint32_t number)
{
	struct entry *entry = find_entry(types, number);

	if (!entry || entry->source > SOURCE_OPTIMISED)
		return;
	entry->name = keep_name(types, "Fiber");
	entry->source = SOURCE_LANGUAGE;
	entry->disputed = false;
	entry->shown = NULL;
}

const struct crystal_type *crystal_type_find(const struct crystal_types *types, uint32_t number)
{
	static const struct crystal_type string = { STRING_TYPE, 0, true };
	const struct entry *entry = find_entry(types, number);

	if (number == STRING_TYPE)
		return &string;
	return entry ? &entry->type : NULL;
}

static bool is_constructor(const char *function)
{
	return strncmp(function, "new", 3) == 0 && (function[3] == 0 || function[3] == ':');
}

/*
 * Classes of Crystal's library. A constructor of another name, in optimised code without debug
 * information, might be a struct's that returns an object it holds.
 */
static bool is_of_library(const char *name)
{
	static const char *const known[] = {
		"Array(",	   "Hash(",  "Deque(", "Channel(", "Fiber",
		"String::Builder", "Thread", "Mutex",  "File",	   "IO::",
	};
	static const char *const suffixes[] = { "Error", "Exception" };
	size_t length = strlen(name);

	for (size_t i = 0; i < COUNT_OF(known); i++)
		if (strncmp(name, known[i], strlen(known[i])) == 0)
			return true;
	for (size_t i = 0; i < COUNT_OF(suffixes); i++) {
		size_t size = strlen(suffixes[i]);

		if (length >= size && strcmp(name + length - size, suffixes[i]) == 0)
			return true;
	}
	return false;
}

/* True if the entry's name is certainly that of its class. */
static bool is_certain(const struct entry *entry, bool inlined, bool debug_known)
{
	if (!entry->name || entry->disputed)
		return false;
	if (entry->source != SOURCE_OPTIMISED)
		return true;
	return debug_known ? !inlined : is_of_library(entry->name);
}

/* The file in which Crystal declares the default constructor. */
static bool is_default(const char *source)
{
	static const char file[] = "primitives.cr:";

	return strncmp(source, file, sizeof(file) - 1) == 0;
}

static const char *find_shown(struct crystal_types *types, struct entry *entry)
{
	struct inlined inlined = { NULL, NULL };
	bool debug_known = false, is_inlined;

	if (entry->source > SOURCE_OPTIMISED && entry->name && !entry->disputed) {
		entry->certain = true;
		return entry->name;
	}
	is_inlined = debug_find_inlined(types->debug, entry->store, is_constructor, &inlined,
					&debug_known);
	entry->certain = is_certain(entry, is_inlined, debug_known);
	if (entry->certain)
		return entry->name;
	if (inlined.source && !is_default(inlined.source))
		return name_pool_print(&types->names, "type#%" PRIu32 "@%s", entry->type.number,
				       inlined.source);
	return name_pool_print(&types->names, "type#%" PRIu32, entry->type.number);
}

const char *crystal_type_name(struct crystal_types *types, uint32_t number, bool *ret_certain)
{
	struct entry *entry = find_entry(types, number);

	*ret_certain = number == STRING_TYPE;
	if (number == STRING_TYPE)
		return "String";
	if (!entry)
		return name_pool_print(&types->names, "type#%" PRIu32, number);
	if (!entry->shown)
		entry->shown = find_shown(types, entry);
	*ret_certain = entry->certain;
	return entry->shown;
}

enum { OFFSET_BITS = 32 };

/* The reading of a type's fields. */
struct reading {
	struct crystal_types *types;
	uint32_t number;
	struct error *error;
};

static uint64_t field_key(uint32_t number, uint64_t offset)
{
	return (uint64_t)number << OFFSET_BITS | offset;
}

/* If several fields begin at an offset, the outermost comes first. */
static bool add_field(void *data, uint64_t offset, const char *name)
{
	struct reading *reading = data;
	struct crystal_types *types = reading->types;
	uint64_t key = field_key(reading->number, offset);

	if (offset >> OFFSET_BITS || address_map_find(&types->fields, key) != NOT_IN_MAP)
		return true;
	reading->error = array_reserve(&types->field_names, 1);
	if (!reading->error)
		reading->error =
			address_map_add(&types->fields, key, (uint32_t)types->field_names.count);
	if (reading->error)
		return false;
	types->field_names.items[types->field_names.count++] = name;
	return true;
}

const char *crystal_type_field(struct crystal_types *types, uint32_t number, uint64_t offset)
{
	struct reading reading = { types, number };
	bool certain;
	const char *name = crystal_type_name(types, number, &certain);
	uint32_t place;

	if (!name || !certain || offset >> OFFSET_BITS)
		return NULL;
	if (address_map_find(&types->fields_known, number) == NOT_IN_MAP) {
		reading.error = address_map_add(&types->fields_known, number, 1);
		if (!reading.error)
			debug_visit_members(types->debug, types->module, name, add_field, &reading);
	}
	/* Without memory for them, fields are not known. */
	if (reading.error)
		error_destroy(reading.error);
	place = address_map_find(&types->fields, field_key(number, offset));
	return place < types->field_names.count ? types->field_names.items[place] : NULL;
}

const char *crystal_type_phrase(struct crystal_types *types, const char *part, uint32_t number)
{
	bool certain;
	const char *name = crystal_type_name(types, number, &certain);

	return name ? name_pool_print(&types->names, "%s of the %s", part, name) : NULL;
}

bool crystal_types_have_function(const struct crystal_types *types, uint64_t address)
{
	const struct function_list *list = &types->functions;
	const struct memory_range *function = LIST_LAST(list->items, list->count, start, address);

	return function && function->start == address;
}

/* ~procProc(Int32, Nil)@file.cr:12 */
bool crystal_types_may_be_block(const struct crystal_types *types, uint64_t address)
{
	struct symbol symbol;

	if (address < types->module->start || address >= types->module->end ||
	    !crystal_types_have_function(types, address))
		return false;
	return !debug_symbol(types->debug, address, &symbol) || symbol.start != address ||
	       symbol.raw[0] == '~';
}

size_t crystal_types_sites(const struct crystal_types *types, const struct crystal_site **ret)
{
	*ret = types->sites.items;
	return types->sites.count;
}

size_t crystal_types_functions(const struct crystal_types *types, const struct memory_range **ret)
{
	*ret = types->functions.items;
	return types->functions.count;
}

const struct module *crystal_types_module(const struct crystal_types *types)
{
	return types->module;
}

static bool take_relation(void *data, const struct symbol *symbol)
{
	struct search *search = data;
	struct crystal_types *types = search->types;
	struct relation relation;
	struct symbol_name name;

	if (!strchr(symbol->name, '@') || !symbol_name_parse(symbol->name, &name))
		return true;
	relation.type = keep_name(types, name.type);
	relation.owner = keep_name(types, name.owner);
	symbol_name_deinit(&name);
	if (!relation.type || !relation.owner)
		return true;
	search->error = array_append(&types->relations, relation);
	return !search->error;
}

/* Names are kept once, so equal ones are at the same place. */
DEFINE_COMPARE(compare_relations, struct relation, ASCENDING(type), ASCENDING(owner))

static void find_relations(struct crystal_types *types)
{
	struct search search = { .types = types };

	types->relations_known = true;
	debug_visit_symbols(types->debug, types->module, take_relation, &search);
	if (search.error)
		error_destroy(search.error);
	array_sort(&types->relations, compare_relations);
	array_keep(&types->relations, relation, last,
		   !last || compare_relations(last, relation) != 0);
}

/* The first relation of the type, or the end of all that are below it. */
static size_t first_relation(const struct crystal_types *types, const char *type)
{
	const struct relation *list = types->relations.items;
	size_t first = LIST_ABOVE(list, types->relations.count, type, type);

	while (first > 0 && list[first - 1].type == type)
		first--;
	return first;
}

struct base_visit {
	struct crystal_types *types;
	bool (*visit)(void *data, const char *name);
	void *data;
	struct budget left; /* that may still be looked at */
};

/* Bases in common are visited on each path to them; there can be very many. */
static bool visit_bases(struct base_visit *visit, const char *type, unsigned int depth)
{
	enum { DEEPEST = 32 };
	const struct crystal_types *types = visit->types;
	const struct relation *list = types->relations.items;

	if (depth > DEEPEST)
		return false;
	for (size_t i = first_relation(types, type);
	     i < types->relations.count && list[i].type == type && budget_take(&visit->left); i++)
		if (visit->visit(visit->data, list[i].owner) ||
		    (list[i].owner != type && visit_bases(visit, list[i].owner, depth + 1)))
			return true;
	return false;
}

bool crystal_type_visit_bases(struct crystal_types *types, uint32_t number,
			      bool (*visit)(void *data, const char *name), void *data)
{
	enum { MOST_BASES = 4096 };
	struct base_visit inner = { types, visit, data, { MOST_BASES } };
	const char *name;
	bool certain;

	if (!types->relations_known)
		find_relations(types);
	name = crystal_type_name(types, number, &certain);
	if (name)
		name = keep_name(types, name);
	return name && certain && visit_bases(&inner, name, 0);
}
