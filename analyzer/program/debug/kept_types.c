/*
 * The type table of a build, as it is kept for other cores of it. Names stay in the file, which is
 * mapped as long as struct debug lives. Entries are kept by their place in their section, for which
 * a module's debug information need not be opened: who asks for an entry has opened it.
 */
#include "analyzer/program/debug/build.h"
#include "analyzer/program/debug/type_table_parts.h"

#include <assert.h>
#include <string.h>

enum { TYPES, MEMBERS, VARIANTS, VARIABLES, BOUNDS, BY_NAME, SPANS, ENTRIES, NAMES };

/* A place in NAMES plus 1; 0: there is none. */
typedef uint32_t kept_name;

struct kept_type {
	uint64_t size, count;
	kept_name name;
	uint32_t target, first_member, member_count, first_bound, bound_count;
	uint8_t kind, form, is_tagged, unused[5];
};

struct kept_member {
	kept_name name;
	uint32_t offset, type, variant;
	uint8_t is_base, is_variant, bit_size, bit_offset;
};

struct kept_variant {
	uint64_t value;
	uint32_t offset, first_other, other_count;
	uint8_t size, or_more, unused[2];
};

struct kept_variable {
	uint64_t address; /* less the start of its module; thread-local: as it is */
	uint64_t size;
	kept_name name, file, function;
	uint32_t module, type, is_thread_local;
};

/* The entries of a module, by their place in its .debug_info. */
struct kept_span {
	uint32_t module, count;
};

struct kept_place {
	uint64_t offset;
	uint32_t number, unused;
};

static_assert(sizeof(struct kept_type) == 48 && sizeof(struct kept_member) == 20 &&
		      sizeof(struct kept_variant) == 24 && sizeof(struct kept_variable) == 40 &&
		      sizeof(struct kept_place) == 16,
	      "no byte of them is undefined");

static struct error *refuse(const char *why)
{
	return error_create(ERROR_BAD_DUMP, "%s", why);
}

/* ---- What is saved */

struct saved {
	struct debug *debug;
	const struct type_table *table;
	struct address_map places; /* of names, by their addresses */
	ARRAY(char) names;
};

static struct error *save_name(struct saved *saved, const char *name, kept_name *ret)
{
	uint32_t known = name ? address_map_find(&saved->places, (uintptr_t)name) : NOT_IN_MAP;
	size_t size = name ? strlen(name) + 1 : 0, before = saved->names.count;

	*ret = 0;
	if (!name)
		return NULL;
	if (known == NOT_IN_MAP) {
		if (before + size >= UINT32_MAX)
			return refuse("there are too many names");
		known = (uint32_t)before;
		TRY(array_reserve(&saved->names, size));
		memcpy(saved->names.items + before, name, size);
		saved->names.count += size;
		TRY(address_map_add(&saved->places, (uintptr_t)name, known));
	}
	*ret = known + 1;
	return NULL;
}

/* Write the array, each of whose items keep() makes of one of the table's. */
#define SAVE(saved, writer, number, array, type, keep)                            \
	do {                                                                      \
		ARRAY(type) all_ = { .count = 0 };                                \
		struct error *error_;                                             \
                                                                                  \
		all_.memory.account = (saved)->names.memory.account;              \
		error_ = array_resize(&all_, (array)->count);                     \
		for (size_t i = 0; !error_ && i < all_.count; i++)                \
			error_ = keep(saved, &(array)->items[i], &all_.items[i]); \
		if (!error_)                                                      \
			error_ = side_writer_array(writer, number, all_.items,    \
						   all_.count * sizeof(type));    \
		array_release(&all_);                                             \
		TRY(error_);                                                      \
	} while (0)

static struct error *keep_type(struct saved *saved, const struct data_type *type,
			       struct kept_type *ret)
{
	*ret = (struct kept_type){
		.size = type->size,
		.count = type->count,
		.target = type->target,
		.first_member = type->first_member,
		.member_count = type->member_count,
		.first_bound = type->first_bound,
		.bound_count = type->bound_count,
		.kind = (uint8_t)type->kind,
		.form = (uint8_t)type->form,
		.is_tagged = type->is_tagged,
	};
	return save_name(saved, type->name, &ret->name);
}

static struct error *keep_member(struct saved *saved, const struct type_member *member,
				 struct kept_member *ret)
{
	*ret = (struct kept_member){
		.offset = member->offset,
		.type = member->type,
		.variant = member->variant,
		.is_base = member->is_base,
		.is_variant = member->is_variant,
		.bit_size = member->bit_size,
		.bit_offset = member->bit_offset,
	};
	return save_name(saved, member->name, &ret->name);
}

static struct error *keep_variant(struct saved *saved, const struct type_variant *variant,
				  struct kept_variant *ret)
{
	*ret = (struct kept_variant){
		.value = variant->value,
		.offset = variant->offset,
		.first_other = variant->first_other,
		.other_count = variant->other_count,
		.size = variant->size,
		.or_more = variant->or_more,
	};
	return NULL;
}

static struct error *keep_variable(struct saved *saved, const struct type_variable *variable,
				   struct kept_variable *ret)
{
	*ret = (struct kept_variable){
		.address = variable->address -
			   (variable->is_thread_local ? 0 : variable->module->start),
		.size = variable->size,
		.module = (uint32_t)(variable->module - saved->debug->program->modules),
		.type = variable->type,
		.is_thread_local = variable->is_thread_local,
	};
	TRY(save_name(saved, variable->name, &ret->name));
	TRY(save_name(saved, variable->file, &ret->file));
	return save_name(saved, variable->function, &ret->function);
}

/* Find the start, in memory, and the size of the module's entries of debug information. */
static bool find_section(struct debug_module *module, uint64_t *ret_base, uint64_t *ret_size)
{
	uint64_t bias;
	Dwarf *dwarf = module->has_dwarf ? debug_module_dwarf(module, &bias) : NULL;
	struct cursor section;
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;

	if (!dwarf || dwarf_get_units(dwarf, NULL, &unit, NULL, NULL, &die, NULL) != 0)
		return false;
	*ret_base = (uint64_t)(uintptr_t)die.addr - dwarf_dieoffset(&die);
	section = debug_section(dwarf, ".debug_info");
	*ret_size = cursor_left(&section);
	return true;
}

struct places {
	ARRAY(struct kept_span) spans;
	ARRAY(struct kept_place) all;
};

/* The module that the entry is of, and where its section is. */
static bool find_module(struct debug *debug, uint64_t address, uint32_t *ret, uint64_t *ret_base,
			uint64_t *ret_size)
{
	for (uint32_t i = 0; i < debug->module_count; i++) {
		*ret = i;
		if (find_section(&debug->modules[i], ret_base, ret_size) &&
		    address - *ret_base < *ret_size)
			return true;
	}
	return false;
}

/* Entries are by address, so those of a module follow each other. */
static struct error *find_places(struct saved *saved, struct places *places)
{
	struct kept_span *span = NULL;
	uint64_t base = 0, size = 0;

	TRY(array_reserve(&places->all, saved->table->entries.count));
	array_for_each(entry, &saved->table->entries) {
		if (!span || entry->address - base >= size) {
			struct kept_span new = { .count = 0 };

			if (!find_module(saved->debug, entry->address, &new.module, &base, &size))
				return refuse("an entry is in another section");
			TRY(array_append(&places->spans, new));
			span = &places->spans.items[places->spans.count - 1];
		}
		places->all.items[places->all.count++] =
			(struct kept_place){ entry->address - base, entry->number, 0 };
		span->count++;
	}
	return NULL;
}

static struct error *save_places(struct saved *saved, struct side_writer *writer)
{
	struct places places = { .all.count = 0 };
	struct error *error;

	arrays_use(saved->names.memory.account, &places.spans, &places.all);
	error = find_places(saved, &places);
	if (!error)
		error = side_writer_array(writer, SPANS, places.spans.items,
					  places.spans.count * sizeof(struct kept_span));
	if (!error)
		error = side_writer_array(writer, ENTRIES, places.all.items,
					  places.all.count * sizeof(struct kept_place));
	arrays_release(&places.spans, &places.all);
	return error;
}

static struct error *save_types(const void *data, struct side_writer *writer)
{
	struct saved *saved = (struct saved *)data;
	const struct type_table *table = saved->table;

	TRY(save_places(saved, writer));
	SAVE(saved, writer, TYPES, &table->types, struct kept_type, keep_type);
	SAVE(saved, writer, MEMBERS, &table->members, struct kept_member, keep_member);
	SAVE(saved, writer, VARIANTS, &table->variants, struct kept_variant, keep_variant);
	SAVE(saved, writer, VARIABLES, &table->variables, struct kept_variable, keep_variable);
	TRY(side_writer_array(writer, BOUNDS, table->bounds.items,
			      table->bounds.count * sizeof(uint64_t)));
	TRY(side_writer_array(writer, BY_NAME, table->by_name.items,
			      table->by_name.count * sizeof(type_number)));
	return side_writer_array(writer, NAMES, saved->names.items, saved->names.count);
}

void kept_types_save(struct debug *debug, const struct cache_key *key,
		     const struct type_table *table)
{
	struct saved saved = { .debug = debug, .table = table };

	arrays_use(table->types.memory.account, &saved.names, &saved.places);
	cache_keep(build_cache(debug), key, save_types, &saved);
	array_release(&saved.names);
	table_release(&saved.places);
}

/* ---- What is loaded */

struct loading {
	struct debug *debug;
	struct type_table *table;
	struct side_array names;
};

static struct error *damaged(void)
{
	return refuse("it is damaged");
}

static bool find_name(const struct loading *loading, kept_name name, const char **ret)
{
	*ret = name ? (const char *)loading->names.bytes + (name - 1) : NULL;
	return name <= loading->names.size;
}

/* True if the range is within all entries. */
static bool is_within(uint32_t first, uint32_t count, size_t all)
{
	return first <= all && count <= all - first;
}

static bool load_type(const struct loading *loading, const struct kept_type *kept,
		      struct data_type *ret)
{
	const struct type_table *table = loading->table;
	size_t number = (size_t)(ret - table->types.items);

	*ret = (struct data_type){
		.size = kept->size,
		.count = kept->count,
		.target = kept->target,
		.first_member = kept->first_member,
		.member_count = kept->member_count,
		.first_bound = kept->first_bound,
		.bound_count = kept->bound_count,
		.kind = (enum type_kind)kept->kind,
		.form = (enum number_form)kept->form,
		.is_tagged = kept->is_tagged,
	};
	/* A type made from another one follows it, so there are no cycles. */
	return find_name(loading, kept->name, &ret->name) && kept->kind < TYPE_KINDS &&
	       kept->form <= FORM_BOOLEAN && kept->is_tagged <= 1 &&
	       (kept->target == 0 || kept->target < number) &&
	       is_within(kept->first_member, kept->member_count, table->members.count) &&
	       is_within(kept->first_bound, kept->bound_count, table->bounds.count);
}

static bool load_member(const struct loading *loading, const struct kept_member *kept,
			struct type_member *ret)
{
	*ret = (struct type_member){
		.offset = kept->offset,
		.type = kept->type,
		.variant = kept->variant,
		.is_base = kept->is_base,
		.is_variant = kept->is_variant,
		.bit_size = kept->bit_size,
		.bit_offset = kept->bit_offset,
	};
	return find_name(loading, kept->name, &ret->name) &&
	       kept->type < loading->table->types.count && kept->is_base <= 1 &&
	       kept->is_variant <= 1 && kept->variant <= loading->table->variants.count;
}

static bool load_variant(const struct loading *loading, const struct kept_variant *kept,
			 struct type_variant *ret)
{
	*ret = (struct type_variant){
		.value = kept->value,
		.offset = kept->offset,
		.first_other = kept->first_other,
		.other_count = kept->other_count,
		.size = kept->size,
		.or_more = kept->or_more,
	};
	return kept->or_more <= 1 &&
	       is_within(kept->first_other, kept->other_count, loading->table->variants.count);
}

static bool load_variable(const struct loading *loading, const struct kept_variable *kept,
			  struct type_variable *ret)
{
	const struct program *program = loading->debug->program;

	if (kept->module >= program->module_count || kept->is_thread_local > 1 || !kept->name ||
	    kept->type >= loading->table->types.count)
		return false;
	*ret = (struct type_variable){
		.module = &program->modules[kept->module],
		.address = kept->address,
		.size = kept->size,
		.type = kept->type,
		.is_thread_local = kept->is_thread_local,
	};
	if (!ret->is_thread_local)
		ret->address += ret->module->start;
	return find_name(loading, kept->name, &ret->name) &&
	       find_name(loading, kept->file, &ret->file) &&
	       find_name(loading, kept->function, &ret->function);
}

/* Give the table's array as many items as that of the file has. */
#define RESIZE(loading, number, array, type)                                          \
	({                                                                            \
		struct side_array kept_;                                              \
		struct error *resized_ =                                              \
			side_file_find((loading)->debug->kept_types, number, &kept_); \
                                                                                      \
		if (!resized_ && (!kept_.bytes || kept_.size % sizeof(type) != 0))    \
			resized_ = damaged();                                         \
		resized_ ? resized_ : array_resize(array, kept_.size / sizeof(type)); \
	})

/* Set each of the items by load(). */
#define LOAD(loading, number, array, type, load)                                               \
	do {                                                                                   \
		struct side_array kept_;                                                       \
                                                                                               \
		TRY(side_file_find((loading)->debug->kept_types, number, &kept_));             \
		for (size_t i = 0; i < (array)->count; i++)                                    \
			if (!load(loading, (const type *)kept_.bytes + i, &(array)->items[i])) \
				return damaged();                                              \
	} while (0)

/* Bounds are loaded unchanged. */
static bool load_bound(const struct loading *loading, const uint64_t *kept, uint64_t *ret)
{
	*ret = *kept;
	return true;
}

static bool load_by_name(const struct loading *loading, const type_number *kept, type_number *ret)
{
	*ret = *kept;
	return *kept < loading->table->types.count && loading->table->types.items[*kept].name;
}

struct kept_entries {
	struct debug *debug;
	const struct kept_span *spans;
	const struct kept_place *places;
	size_t span_count, type_count;
	uint64_t bases[]; /* of the spans; 0: not known yet */
};

static struct error *load_entries(struct loading *loading)
{
	struct side_file *file = loading->debug->kept_types;
	struct side_array spans, places;
	struct kept_entries *kept;
	uint64_t count = 0;
	size_t span_count;

	TRY(side_file_find(file, SPANS, &spans));
	TRY(side_file_find(file, ENTRIES, &places));
	span_count = spans.size / sizeof(struct kept_span);
	if (!spans.bytes || !places.bytes || span_count > loading->debug->program->module_count)
		return damaged();
	kept = calloc(1, sizeof(*kept) + span_count * sizeof(*kept->bases));
	TRY_MEMORY(kept);
	loading->table->kept = kept;
	*kept = (struct kept_entries){ loading->debug, spans.bytes, places.bytes, span_count,
				       loading->table->types.count };
	for (size_t i = 0; i < span_count; i++) {
		count += kept->spans[i].count;
		if (kept->spans[i].module >= loading->debug->program->module_count)
			return damaged();
	}
	return count == places.size / sizeof(struct kept_place) ? NULL : damaged();
}

static struct error *load_types(struct loading *loading)
{
	struct type_table *table = loading->table;
	const char *names;

	TRY(side_file_find(loading->debug->kept_types, NAMES, &loading->names));
	names = loading->names.bytes;
	if (!names || (loading->names.size && names[loading->names.size - 1] != '\0'))
		return damaged();
	TRY(RESIZE(loading, TYPES, &table->types, struct kept_type));
	TRY(RESIZE(loading, MEMBERS, &table->members, struct kept_member));
	TRY(RESIZE(loading, VARIANTS, &table->variants, struct kept_variant));
	TRY(RESIZE(loading, VARIABLES, &table->variables, struct kept_variable));
	TRY(RESIZE(loading, BOUNDS, &table->bounds, uint64_t));
	TRY(RESIZE(loading, BY_NAME, &table->by_name, type_number));
	if (table->types.count == 0)
		return damaged();
	LOAD(loading, TYPES, &table->types, struct kept_type, load_type);
	LOAD(loading, MEMBERS, &table->members, struct kept_member, load_member);
	LOAD(loading, VARIANTS, &table->variants, struct kept_variant, load_variant);
	LOAD(loading, VARIABLES, &table->variables, struct kept_variable, load_variable);
	LOAD(loading, BOUNDS, &table->bounds, uint64_t, load_bound);
	LOAD(loading, BY_NAME, &table->by_name, type_number, load_by_name);
	return load_entries(loading);
}

bool kept_types_load(struct debug *debug, const struct cache_key *key, struct type_table *table)
{
	struct loading loading = { .debug = debug, .table = table };
	struct error *error;

	if (!debug->kept_types)
		debug->kept_types = cache_find(build_cache(debug), key);
	if (!debug->kept_types)
		return false;
	error = load_types(&loading);
	if (!error)
		return true;
	error_destroy(error);
	type_table_clear(table);
	return false;
}

void kept_entries_destroy(struct kept_entries *kept)
{
	free(kept);
}

/* The type of the entry in the span whose places begin there. */
static type_number find_in_span(const struct kept_entries *kept, size_t first, size_t count,
				uint64_t offset)
{
	const struct kept_place *places = kept->places + first;
	size_t place = BISECT(i, 0, count, places[i].offset < offset);

	return place < count && places[place].offset == offset &&
			       places[place].number < kept->type_count
		       ? places[place].number
		       : NO_TYPE;
}

type_number kept_entries_find(struct kept_entries *kept, uint64_t address)
{
	size_t first = 0;

	for (size_t i = 0; i < kept->span_count; first += kept->spans[i++].count) {
		struct debug_module *module = &kept->debug->modules[kept->spans[i].module];
		uint64_t size;
		type_number found;

		if (!kept->bases[i] && !find_section(module, &kept->bases[i], &size))
			continue;
		found = address < kept->bases[i] ? NO_TYPE
						 : find_in_span(kept, first, kept->spans[i].count,
								address - kept->bases[i]);
		if (found != NO_TYPE)
			return found;
	}
	return NO_TYPE;
}
