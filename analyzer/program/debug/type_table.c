#include "analyzer/base/bytes.h"
#include "analyzer/base/macros.h"
#include "analyzer/base/sort.h"
#include "analyzer/program/debug/build.h"
#include "analyzer/program/debug/libc_types.h"
#include "analyzer/program/debug/type_table_parts.h"

#include <inttypes.h>
#include <string.h>

DEFINE_COMPARE(compare_entries, struct entry, ASCENDING(address), ASCENDING(number))

/* Units follow each other as they stand in memory, but for those of other modules. */
static void sort_entries(struct type_reader *reader)
{
	for (size_t i = 1; i < reader->entries.count; i++)
		if (reader->entries.items[i].address < reader->entries.items[i - 1].address) {
			array_sort(&reader->entries, compare_entries);
			return;
		}
}

static uint32_t find_entry(const struct entry *entries, size_t count, uint64_t address)
{
	size_t place = BISECT(i, 0, count, entries[i].address < address);

	return place < count && entries[place].address == address ? entries[place].number
								  : NOT_IN_MAP;
}

enum { UNKNOWN = UINT32_MAX }; /* a raw that has no type yet */

struct linker {
	struct type_reader *reader;
	struct type_table *table;
	ARRAY(uint32_t) numbers;       /* of types, by raw */
	struct address_map derived;    /* pointers and arrays, by a hash of what they are */
	struct address_map definition; /* structures that have members, by name */
};

static void linker_deinit(struct linker *linker)
{
	array_release(&linker->numbers);
	tables_release(&linker->derived, &linker->definition);
}
DEFINE_DEINIT(linker_deinit, struct linker)

static struct error *add_type(struct linker *linker, size_t raw, struct data_type type)
{
	linker->numbers.items[raw] = (uint32_t)linker->table->types.count;
	return array_append(&linker->table->types, type);
}

/* Structures and numbers are types by themselves. */
static struct error *add_plain(struct linker *linker)
{
	const struct type_reader *reader = linker->reader;

	for (size_t i = 0; i < reader->raws.count; i++) {
		const struct raw *raw = &reader->raws.items[i];
		bool is_structure = raw->kind == TYPE_STRUCTURE || raw->kind == TYPE_UNION;

		if (!is_structure && raw->kind != TYPE_NUMBER && raw->kind != TYPE_CHARACTER)
			continue;
		if (is_structure && raw->name &&
		    address_map_find(&linker->definition, (uintptr_t)raw->name) == NOT_IN_MAP)
			TRY(address_map_add(&linker->definition, (uintptr_t)raw->name,
					    (uint32_t)linker->table->types.count));
		TRY(add_type(linker, i,
			     (struct data_type){
				     .name = raw->name,
				     .size = raw->size,
				     .first_member = raw->first_member,
				     .member_count = raw->member_count,
				     .kind = (enum type_kind)raw->kind,
				     .form = (enum number_form)raw->form,
				     .is_tagged = raw->is_tagged,
			     }));
	}
	return NULL;
}

static uint64_t hash_of_derived(const struct linker *linker, const struct raw *raw,
				type_number target)
{
	uint64_t hash = hash_add(hash_add(raw->kind, target), raw->count);

	for (size_t i = 0; i < raw->bound_count; i++)
		hash = hash_add(hash, linker->reader->bounds.items[raw->first_bound + i]);
	return hash;
}

/* A pointer to, or an array of, what is a type already. */
static struct error *add_derived(struct linker *linker, size_t number, type_number target)
{
	const struct raw *raw = &linker->reader->raws.items[number];
	uint64_t hash = hash_of_derived(linker, raw, target);
	uint32_t known = address_map_find(&linker->derived, hash);
	struct data_type type = {
		.kind = (enum type_kind)raw->kind,
		.size = raw->size,
		.count = raw->count,
		.target = target,
		.first_bound = raw->first_bound,
		.bound_count = raw->bound_count,
	};
	struct error *error;

	if (known != NOT_IN_MAP) {
		linker->numbers.items[number] = known;
		return NULL;
	}
	if (type.kind == TYPE_ARRAY &&
	    __builtin_mul_overflow(type.count, linker->table->types.items[target].size, &type.size))
		type.size = 0;
	error = address_map_add(&linker->derived, hash, (uint32_t)linker->table->types.count);
	return error ? error : add_type(linker, number, type);
}

/* Let a declaration refer to its definition. */
static struct error *link_declared(struct linker *linker, size_t number)
{
	const struct raw *raw = &linker->reader->raws.items[number];
	uint32_t known = raw->name ? address_map_find(&linker->definition, (uintptr_t)raw->name)
				   : NOT_IN_MAP;

	if (known != NOT_IN_MAP) {
		linker->numbers.items[number] = known;
		return NULL;
	}
	if (raw->name) {
		TRY(address_map_add(&linker->definition, (uintptr_t)raw->name,
				    (uint32_t)linker->table->types.count));
	}
	return add_type(linker, number,
			(struct data_type){ .kind = TYPE_DECLARED,
					    .name = raw->name,
					    .is_tagged = raw->is_tagged });
}

static uint32_t find_raw(const struct linker *linker, uint64_t address)
{
	const struct type_reader *reader = linker->reader;

	return find_entry(reader->entries.items, reader->entries.count, address);
}

/* Find the type of the raw, and first those of what it is made from. */
static struct error *link_one(struct linker *linker, size_t number)
{
	const struct raw *raws = linker->reader->raws.items;
	uint32_t *numbers = linker->numbers.items;
	size_t path[MOST_LINKS], depth = 0;
	type_number target = NO_TYPE;

	for (size_t at = number; depth < MOST_LINKS; at = find_raw(linker, raws[at].target)) {
		if (numbers[at] != UNKNOWN) {
			target = numbers[at];
			break;
		}
		path[depth++] = at;
		if (raws[at].kind == TYPE_DECLARED || raws[at].kind == TYPE_FUNCTION ||
		    raws[at].target == 0 || find_raw(linker, raws[at].target) == NOT_IN_MAP)
			break;
	}
	while (depth-- > 0) {
		size_t at = path[depth];
		struct data_type *type;

		switch (raws[at].kind) {
		case TYPE_DECLARED:
			TRY(link_declared(linker, at));
			break;
		case ALIAS:
			type = &linker->table->types.items[target];
			if (target != NO_TYPE && !type->name &&
			    (type->kind == TYPE_STRUCTURE || type->kind == TYPE_UNION))
				type->name = raws[at].name;
			numbers[at] = target;
			break;
		default:
			TRY(add_derived(linker, at, target));
			break;
		}
		target = numbers[at];
	}
	return NULL;
}

static type_number number_at(const struct linker *linker, uint64_t address)
{
	uint32_t raw = address ? find_raw(linker, address) : NOT_IN_MAP;

	return raw == NOT_IN_MAP ? NO_TYPE : linker->numbers.items[raw];
}

/* An array's size is known only once its elements' is, which may be an array of later ones. */
static struct error *link_members(struct linker *linker)
{
	const struct type_reader *reader = linker->reader;
	struct type_table *table = linker->table;

	TRY(array_resize(&table->members, reader->members.count));
	TRY(array_resize(&table->variants, reader->variants.count));
	for (size_t i = 0; i < reader->variants.count; i++)
		table->variants.items[i] = reader->variants.items[i];
	for (size_t i = 0; i < reader->members.count; i++) {
		const struct raw_member *raw = &reader->members.items[i];

		table->members.items[i] = (struct type_member){
			.name = raw->name,
			.offset = raw->offset,
			.type = number_at(linker, raw->type),
			.is_base = raw->is_base,
			.is_variant = raw->is_variant,
			.variant = raw->variant,
			.bit_size = raw->bit_size,
			.bit_offset = raw->bit_offset,
		};
	}
	array_for_each(raw, &reader->variables) {
		TRY(array_append(&table->variables, (struct type_variable){
							    .name = raw->name,
							    .module = raw->module,
							    .address = raw->address,
							    .size = raw->size,
							    .file = raw->file,
							    .function = raw->function,
							    .type = number_at(linker, raw->type),
							    .is_thread_local = raw->is_thread_local,
						    }));
	}
	return NULL;
}

/* Let entries name types. */
static void number_entries(struct linker *linker)
{
	struct type_reader *reader = linker->reader;
	size_t kept = 0;

	array_for_each(entry, &reader->entries)
		if (!libc_type_is(entry->address))
			reader->entries.items[kept++] =
				(struct entry){ entry->address,
						linker->numbers.items[entry->number] };
	reader->entries.count = kept;
	array_swap(&linker->table->entries, &reader->entries);
}

static struct error *link_all(struct linker *linker)
{
	struct type_reader *reader = linker->reader;

	TRY(array_append(&linker->table->types, (struct data_type){ 0 }));
	TRY(array_resize(&linker->numbers, reader->raws.count));
	for (size_t i = 0; i < reader->raws.count; i++)
		linker->numbers.items[i] = UNKNOWN;
	sort_entries(reader);
	TRY(add_plain(linker));
	for (size_t i = 0; i < reader->raws.count; i++)
		if (linker->numbers.items[i] == UNKNOWN)
			TRY(link_one(linker, i));
	TRY(link_members(linker));
	number_entries(linker);
	array_swap(&linker->table->bounds, &reader->bounds);
	return NULL;
}

static int compare_names(const void *left, const void *right, void *data)
{
	const struct data_type *types = data;
	const struct data_type *a = &types[*(const type_number *)left];
	const struct data_type *b = &types[*(const type_number *)right];
	int order = strcmp(a->name, b->name);

	return order ? order : (a > b) - (a < b);
}

static struct error *sort_names(struct type_table *table)
{
	for (size_t i = 1; i < table->types.count; i++) {
		const struct data_type *type = &table->types.items[i];

		if (type->name && (type->kind == TYPE_STRUCTURE || type->kind == TYPE_UNION))
			TRY(array_append(&table->by_name, (type_number)i));
	}
	if (table->by_name.count > 1)
		qsort_r(table->by_name.items, table->by_name.count, sizeof(type_number),
			compare_names, table->types.items);
	return NULL;
}

struct error *type_table_create(struct debug *debug, struct memory_account *account,
				struct progress *progress, struct type_table **ret)
{
	_cleanup_(type_table_destroy) struct type_table *table = calloc(1, sizeof(*table));
	_cleanup_(type_reader_deinit) struct type_reader reader;
	_cleanup_(linker_deinit) struct linker linker = { .reader = &reader, .table = table };

	struct cache_key key = cache_key_begin("types");
	bool is_kept = build_cache(debug) && build_identify(debug, false, &key);
	size_t said = debug->findings->count;

	type_reader_init(&reader, debug, account, progress);
	arrays_use(account, &linker.numbers, &linker.derived, &linker.definition);
	TRY_MEMORY(table);
	table->names = &debug->names;
	table->word_size = image_word_size(debug->image);
	arrays_use(account, &table->types, &table->members, &table->variables, &table->by_name,
		   &table->bounds, &table->variants, &table->entries);
	if (is_kept && kept_types_load(debug, &key, table)) {
		*ret = take(table);
		return NULL;
	}
	TRY(type_reader_read(&reader));
	TRY(libc_types_add(&reader));
	TRY(link_all(&linker));
	TRY(sort_names(table));
	if (is_kept && table->entries.count > 0 && said == debug->findings->count &&
	    build_was_read_whole(debug))
		kept_types_save(debug, &key, table);
	*ret = take(table);
	return NULL;
}

void type_table_clear(struct type_table *table)
{
	arrays_release(&table->types, &table->members, &table->variants, &table->variables,
		       &table->entries, &table->bounds, &table->by_name);
	if (table->kept)
		kept_entries_destroy(table->kept);
	table->kept = NULL;
}

void type_table_destroy(struct type_table *table)
{
	type_table_clear(table);
	free(table);
}

type_number type_of_entry(const struct type_table *table, const void *entry)
{
	uint32_t number;

	if (table->kept)
		return kept_entries_find(table->kept, (uint64_t)(uintptr_t)entry);
	number = find_entry(table->entries.items, table->entries.count, (uint64_t)(uintptr_t)entry);
	return number == NOT_IN_MAP ? NO_TYPE : number;
}

unsigned int type_word_size(const struct type_table *table)
{
	return table->word_size;
}

size_t type_count(const struct type_table *table)
{
	return table->types.count;
}

const struct data_type *type_get(const struct type_table *table, type_number number)
{
	return &table->types.items[number];
}

const struct type_variant *type_variants(const struct type_table *table, uint32_t number)
{
	return &table->variants.items[number];
}

const struct type_variant *type_variant(const struct type_table *table,
					const struct type_member *member)
{
	const struct type_variant *variant =
		member->variant ? type_variants(table, member->variant - 1) : NULL;

	return variant && variant->size ? variant : NULL;
}

const struct type_member *type_members(const struct type_table *table, const struct data_type *type)
{
	return &table->members.items[type->first_member];
}

const uint64_t *type_bounds(const struct type_table *table, const struct data_type *type)
{
	return &table->bounds.items[type->first_bound];
}

const char *type_text(const struct type_table *table, type_number number, const char *before,
		      const char *behind)
{
	const struct data_type *type = &table->types.items[number];
	const char *tag, *name;
	char text[256] = "";
	size_t start = sizeof(text) - 1;

	/* From the outside in, each part stands in front of the last. */
	for (; type->kind == TYPE_POINTER || type->kind == TYPE_ARRAY;
	     type = &table->types.items[type->target]) {
		char part[32] = " *";

		if (type->kind == TYPE_ARRAY && type->count)
			snprintf(part, sizeof(part), "[%" PRIu64 "]", type->count);
		else if (type->kind == TYPE_ARRAY)
			snprintf(part, sizeof(part), "[]");
		if (start < sizeof(part))
			break;
		for (size_t i = strlen(part); i-- > 0;)
			text[--start] = part[i];
	}
	name = type->kind == TYPE_NONE	     ? "void"
	       : type->kind == TYPE_FUNCTION ? "function"
	       : type->name		     ? type->name
					     : "struct without a name";
	tag = !type->is_tagged ? "" : type->kind == TYPE_UNION ? "union " : "struct ";
	return name_pool_print(table->names, "%s%s%s%s%s", before, tag, name, text + start, behind);
}

size_t type_variable_count(const struct type_table *table)
{
	return table->variables.count;
}

const struct type_variable *type_variables(const struct type_table *table)
{
	return table->variables.items;
}

/* The first in the order of names that is not before it. */
static size_t find_name(const struct type_table *table, const char *name)
{
	const struct data_type *types = table->types.items;
	const type_number *by_name = table->by_name.items;

	return BISECT(i, 0, table->by_name.count, strcmp(types[by_name[i]].name, name) < 0);
}

bool type_begins(const struct type_table *table, const char *start)
{
	size_t place = find_name(table, start);

	return place < table->by_name.count &&
	       strncmp(table->types.items[table->by_name.items[place]].name, start,
		       strlen(start)) == 0;
}

const char *type_keep(const struct type_table *table, char *text)
{
	return name_pool_keep(table->names, text);
}

type_number type_find(const struct type_table *table, const char *name)
{
	static const char *const tags[] = { "struct ", "union ", "class " };
	const struct data_type *types = table->types.items;
	const type_number *by_name = table->by_name.items;
	size_t place;

	for (size_t i = 0; i < COUNT_OF(tags); i++)
		if (strncmp(name, tags[i], strlen(tags[i])) == 0) {
			name += strlen(tags[i]);
			break;
		}
	place = find_name(table, name);
	if (place == table->by_name.count || strcmp(types[by_name[place]].name, name) != 0)
		return NO_TYPE;
	return by_name[place];
}
