#include "analyzer/base/bytes.h"
#include "analyzer/image/mapped_file.h"
#include "analyzer/runtimes/rust/rust.h"

#include <inttypes.h>
#include <string.h>

enum {
	WORDS = 4,   /* of a vtable with a method */
	METHODS = 8, /* of which the names are looked at */
	COUNTS = 16, /* bytes of the two counts of Rc and Arc */
	MOST_ALIGNMENT = 4096,
	MOST_VTABLES = 1 << 20,
	/* This many percent of the references that look like one kind must be right. */
	LEAST_RIGHT = 98,
};

struct search {
	ARRAY(uint32_t) types; /* by allocation: number of its vtable plus 1, or 0 */
	const struct runtime_context *context;
	struct debug *debug;
	struct rust_values *values;
	uint64_t modules_start, modules_end;
	struct heap_bounds heap;
};

/* True if address is in code, by the headers in the module's file. */
static bool is_code_by_headers(const struct search *search, uint64_t address)
{
	const struct module *module = program_find_module(search->context->program, address);
	struct module_headers headers;

	if (!module || !module_headers_read(search->context->image, module->start, &headers))
		return false;
	for (size_t i = 0; i < headers.count; i++) {
		const Elf64_Phdr *segment = &headers.segments[i];

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_X &&
		    address - headers.bias - segment->p_vaddr < segment->p_memsz)
			return true;
	}
	return false;
}

/* A core need not have code: then the rights of its memory are not known. */
static bool is_code(const struct search *search, uint64_t address)
{
	const struct region *region = image_find(search->context->image, address);

	if (!region || !region->mapping)
		return false;
	return region->is_gap ? is_code_by_headers(search, address)
			      : region->rights & RIGHT_EXECUTE;
}

/* Read a vtable with a method, if one is there. Zero-sized types have no allocations. */
static bool read_vtable(const struct search *search, uint64_t address, struct rust_vtable *ret)
{
	const struct region *region = image_find(search->context->image, address);
	uint64_t words[WORDS];

	if (!region || !region->mapping || region->rights & (RIGHT_WRITE | RIGHT_EXECUTE) ||
	    !image_read(search->context->image, address, words, sizeof(words)))
		return false;
	*ret = (struct rust_vtable){
		.address = address, .drop = words[0], .size = words[1], .alignment = words[2]
	};
	return (words[0] == 0 || is_code(search, words[0])) && words[1] > 0 && words[2] > 0 &&
	       words[2] <= MOST_ALIGNMENT && (words[2] & (words[2] - 1)) == 0 &&
	       words[1] % words[2] == 0 && is_code(search, words[3]);
}

/* The number of the vtable there; NO_VTABLE: there is none. */
static struct error *find_vtable(struct search *search, uint64_t address, uint32_t *ret)
{
	struct rust_values *values = search->values;
	struct rust_vtable vtable;

	*ret = address_map_find(&values->numbers, address);
	if (*ret != NOT_IN_MAP)
		return NULL;
	*ret = NO_VTABLE;
	if (values->numbers.count >= MOST_VTABLES)
		return NULL;
	if (read_vtable(search, address, &vtable)) {
		*ret = vtable.first = (uint32_t)values->vtables.count;
		TRY(array_append(&values->vtables, vtable));
	}
	return address_map_add(&values->numbers, address, *ret);
}

static struct error *note_pair(void *data, const struct rust_reference *reference)
{
	struct search *search = data;
	const struct allocation_index *index = search->context->index;
	struct rust_vtable *vtable;
	uint32_t number, *type;
	uint64_t word, counts = COUNTS;

	if (!rust_word_beside(reference, 1, &word) || word % sizeof(word) != 0 ||
	    word < search->modules_start || word >= search->modules_end ||
	    heap_bounds_hold(&search->heap, word))
		return NULL;
	TRY(find_vtable(search, word, &number));
	if (number == NO_VTABLE)
		return NULL;
	vtable = &search->values->vtables.items[number];
	if (vtable->alignment > counts)
		counts = vtable->alignment;
	vtable->references++;
	if (!allocation_fits(index, reference->range, vtable->size, false) &&
	    !(vtable->size <= UINT64_MAX - counts &&
	      allocation_fits(index, reference->range, counts + vtable->size, false)))
		return NULL;
	vtable->fitting++;
	type = &search->types.items[reference->target];
	if (*type == 0)
		*type = number + 1;
	return NULL;
}

/* The type that a symbol is of: "T" of "core::ptr::drop_in_place<T>" and "<T as Trait>::method". */
static char *name_type(const char *symbol)
{
	static const char drop[] = "core::ptr::drop_in_place<", as[] = " as ";
	size_t depth = 0;
	bool is_drop = strncmp(symbol, drop, sizeof(drop) - 1) == 0;
	const char *start = symbol + (is_drop ? sizeof(drop) - 1 : 1), *end;

	if (!is_drop && symbol[0] != '<')
		return NULL;
	for (end = start; *end; end++) {
		if (depth == 0 && (is_drop ? *end == '>' : strncmp(end, as, sizeof(as) - 1) == 0))
			return end > start ? strndup(start, (size_t)(end - start)) : NULL;
		depth += strchr("<([", *end) != NULL;
		/* The > in "fn() -> T" closes nothing. */
		if (strchr(">)]", *end) && !(*end == '>' && end > start && end[-1] == '-')) {
			if (depth == 0)
				return NULL;
			depth--;
		}
	}
	return NULL;
}

/* The type whose method the function at that address is, or NULL. */
static char *name_by_function(const struct search *search, uint64_t address)
{
	struct symbol symbol;

	if (!address || !debug_symbol(search->debug, address, &symbol) || symbol.start != address)
		return NULL;
	return name_type(symbol.name);
}

/*
 * The type that all functions of the vtable say. The compiler joins equal functions of several
 * types: then they differ.
 */
static char *name_by_functions(const struct search *search, const struct rust_vtable *vtable)
{
	_cleanup_(free) char *name = name_by_function(search, vtable->drop);

	for (uint64_t i = 0; i < METHODS; i++) {
		_cleanup_(free) char *other = NULL;
		uint64_t method;

		/* The next vtable begins by a number, or a null. */
		if (!image_read_u64(search->context->image, vtable->address + 8 * (3 + i),
				    &method) ||
		    !is_code(search, method))
			break;
		/* Perhaps the next vtable's drop function. */
		if (i > 0 &&
		    read_vtable(search, vtable->address + 8 * (3 + i), &(struct rust_vtable){ 0 }))
			break;
		other = name_by_function(search, method);
		if (other && name && strcmp(name, other) != 0)
			return NULL;
		if (!name)
			name = take(other);
	}
	return take(name);
}

static char *name_by_place(const struct search *search, uint64_t address)
{
	const struct module *module = program_find_module(search->context->program, address);
	char *name;

	if (!module)
		return strdup("dyn value");
	return asprintf(&name, "dyn value (vtable %s+0x%" PRIx64 ")", module_name(module),
			address - module->start) < 0
		       ? NULL
		       : name;
}

static struct error *name_vtable(const struct search *search, struct rust_vtable *vtable)
{
	vtable->name = name_by_functions(search, vtable);
	vtable->is_named = vtable->name;
	if (!vtable->name)
		vtable->name = name_by_place(search, vtable->address);
	return vtable->name ? NULL : &error_no_memory;
}

/* Vtables of one type for several traits are one. */
static struct error *join_equal(struct rust_values *values)
{
	_cleanup_(table_release) struct address_map firsts = {
		.memory.account = values->numbers.memory.account
	};

	array_for_each(vtable, &values->vtables) {
		uint64_t hash;
		uint32_t first;

		if (!vtable->is_right || !vtable->is_named)
			continue;
		hash = hash_text(vtable->size, vtable->name);
		first = address_map_find(&firsts, hash);
		if (first == NOT_IN_MAP)
			TRY(address_map_add(&firsts, hash, vtable->first));
		else if (strcmp(values->vtables.items[first].name, vtable->name) == 0)
			vtable->first = first;
	}
	return NULL;
}

static bool is_right(const struct rust_vtable *vtable)
{
	return vtable->fitting > 0 &&
	       vtable->fitting >= (vtable->references * LEAST_RIGHT + 99) / 100;
}

static struct error *set_classes(struct search *search, struct object_classes *ret)
{
	const struct rust_vtable *vtables = search->values->vtables.items;
	uint32_t place;

	array_for_each(vtable, &search->values->vtables) {
		const struct rust_vtable *first = &vtables[vtable->first];

		if (!vtable->is_right)
			continue;
		TRY(object_classes_know(ret, first->address, &place));
		ret->list.items[place].name = first->name;
		ret->list.items[place].kind = first->is_named ? CLASS_NAMED : CLASS_PLACED;
	}
	array_for_each(type, &search->types) {
		if (!*type || !vtables[*type - 1].is_right)
			continue;
		place = address_map_find(&ret->places, vtables[vtables[*type - 1].first].address);
		TRY(object_classes_set(ret, (allocation_id)(type - search->types.items), place));
	}
	return NULL;
}

struct error *rust_find_values(const struct runtime_context *context, struct debug *debug,
			       struct rust_values *ret, struct object_classes *ret_classes)
{
	_cleanup_(array_release) struct search search = {
		.types.memory.account = context->account,
		.context = context,
		.debug = debug,
		.values = ret,
		.modules_start = UINT64_MAX,
		.heap = allocation_bounds(context->index),
	};

	list_for_each(module, context->program->modules, context->program->module_count) {
		search.modules_start = MIN(search.modules_start, module->start);
		search.modules_end = MAX(search.modules_end, module->end);
	}
	TRY(array_resize(&search.types, allocation_count(context->index)));
	TRY(rust_visit_references(context, note_pair, &search));
	array_for_each(vtable, &ret->vtables) {
		vtable->is_right = is_right(vtable);
		if (vtable->is_right)
			TRY(name_vtable(&search, vtable));
	}
	TRY(join_equal(ret));
	return set_classes(&search, ret_classes);
}

void rust_values_release(struct rust_values *values)
{
	array_for_each(vtable, &values->vtables)
		free(vtable->name);
	array_release(&values->vtables);
	table_release(&values->numbers);
}
