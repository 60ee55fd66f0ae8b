#include "analyzer/query/columns.h"

#include "analyzer/analysis/liveness.h"
#include "analyzer/base/text.h"
#include "analyzer/kinds/object_census.h"

#include <string.h>

void column_facts_deinit(struct column_facts *facts)
{
	named_kinds_deinit(&facts->kinds);
	arrays_release(&facts->parents, &facts->object_blocks);
}

void column_row_init(struct column_row *row, const struct column_facts *facts)
{
	row->facts = facts;
	row->read_id = NO_ALLOCATION;
}

void column_row_end(struct column_row *row)
{
	while (row->text_count)
		free(row->texts[--row->text_count]);
}

static const struct allocation_index *index_of(const struct column_row *row)
{
	return analysis_index(row->facts->analysis);
}

static const struct runtimes *runtimes_of(const struct column_row *row)
{
	return analysis_runtimes(row->facts->analysis);
}

/* Text of the program, escaped, that belongs to the row. */
static struct value made_text(struct column_row *row, const char *text)
{
	char *escaped = text ? text_as_is(text) : NULL;

	row->no_memory |= !escaped;
	if (escaped)
		row->texts[row->text_count++] = escaped;
	return VALUE(escaped);
}

static struct value get_id(struct column_row *row)
{
	return VALUE(row->id);
}

static struct value get_address(struct column_row *row)
{
	return VALUE(allocation_range_near(index_of(row), row->id, &row->hint).start);
}

static struct value get_size(struct column_row *row)
{
	struct memory_range range = allocation_range_near(index_of(row), row->id, &row->hint);

	return VALUE(range.end - range.start);
}

static struct value get_state(struct column_row *row)
{
	return VALUE(liveness_word(liveness_of(row->facts->analysis, row->id)));
}

static struct value get_anchor(struct column_row *row)
{
	return VALUE(
		root_kind_name(roots_first_kind(analysis_roots(row->facts->analysis), row->id)));
}

static struct error *find_kinds(struct column_facts *facts)
{
	return named_kinds_find(facts->analysis, &facts->kinds);
}

static const struct named_kind *named_kind_of(const struct column_row *row)
{
	const struct named_kinds *kinds = &row->facts->kinds;

	return &kinds->list.items[kinds->numbers.items[row->id]];
}

static struct value get_kind(struct column_row *row)
{
	return VALUE(named_kind_of(row)->name);
}

static bool is_class(const struct column_row *row, uint64_t signature)
{
	return signature && (runtimes_have_class(runtimes_of(row), signature) ||
			     classes_is_class(analysis_classes(row->facts->analysis), signature));
}

static struct value get_known_by(struct column_row *row)
{
	kind_key key = named_kind_of(row)->key;
	uint64_t signature = kind_signature(key);

	if (runtimes_is_part(runtimes_of(row), signature))
		return VALUE("holder");
	return VALUE(is_class(row, signature) ? "class" : kind_known_by(key));
}

/* How sure what an allocation is called is; see type_reason.h for what the words mean. */
static struct value get_sureness(struct column_row *row)
{
	kind_key key = named_kind_of(row)->key;
	struct typed typed;

	switch (kind_tag(key)) {
	case BY_SIGNATURE:
		return VALUE(runtimes_is_part(runtimes_of(row), kind_signature(key)) ? "held by"
										     : "certain");
	case BY_TYPE:
		typed = kind_type_of(key);
		return VALUE(typed.fit >= FIT_ARRAY && !typed_is_like(typed) ? "typed"
									     : "looks like");
	case BY_PATTERN:
		return VALUE(pattern_is_text(kind_pattern(key)) ? "text" : "certain");
	case BY_IDENTITY:
		return VALUE("looks like");
	default:
		return ABSENT;
	}
}

static struct value get_class(struct column_row *row)
{
	uint64_t signature = analysis_signature(row->facts->analysis, row->id);
	_cleanup_(free) char *name = NULL;

	if (!is_class(row, signature) || runtimes_is_part(runtimes_of(row), signature))
		return ABSENT;
	name = kind_text(row->facts->analysis, kind_make(BY_SIGNATURE, signature));
	return made_text(row, name);
}

static struct value get_pattern(struct column_row *row)
{
	struct analysis *analysis = row->facts->analysis;
	pattern_number pattern =
		analysis_pattern_shown(analysis, analysis_patterns(analysis), row->id);

	return VALUE_IF(pattern != NO_PATTERN, pattern_name(pattern));
}

static struct value get_type(struct column_row *row)
{
	const struct analysis *analysis = row->facts->analysis;
	struct typed typed;

	return analysis_type_of(analysis, row->id, &typed)
		       ? made_text(row, typing_name(analysis_typing(analysis), typed))
		       : ABSENT;
}

/* Numbers of runtimes' classes are no addresses. */
static struct value get_signature(struct column_row *row)
{
	uint64_t signature = analysis_signature(row->facts->analysis, row->id);

	return VALUE_IF(signature && !runtimes_have_class(runtimes_of(row), signature), signature);
}

static const struct heap_region *region_of(const struct column_row *row)
{
	return heap_region_find(index_of(row), allocation_start(index_of(row), row->id));
}

static struct value get_arena(struct column_row *row)
{
	const struct heap_region *region = region_of(row);

	return VALUE_IF(region, region->arena);
}

static struct value get_allocator(struct column_row *row)
{
	const struct heap_region *region = region_of(row);
	const struct heaps *heaps = analysis_heaps(row->facts->analysis);

	return VALUE_IF(region, heaps_arena_allocator(heaps, region->arena)->name);
}

static struct value get_retained(struct column_row *row)
{
	return VALUE(dominators_retained(analysis_dominators(row->facts->analysis), row->id));
}

static struct value get_leak_root(struct column_row *row)
{
	return VALUE(leak_root_find(analysis_leaks(row->facts->analysis), row->id) != NULL);
}

/* The allocation that it is part of, as a body of what it holds, or a block of that. */
static allocation_id next_owner(const struct analysis *analysis, allocation_id id)
{
	uint64_t address = patterns_owner(analysis_owners(analysis), id);
	allocation_id owner =
		address ? allocation_find(analysis_index(analysis), address) : NO_ALLOCATION;

	return owner != id ? owner : NO_ALLOCATION;
}

allocation_id allocation_owner(const struct analysis *analysis, allocation_id id)
{
	enum { MOST_STEPS = 16 };
	allocation_id last = id, owner = next_owner(analysis, id);

	for (int i = 0; owner != NO_ALLOCATION && i < MOST_STEPS; i++) {
		last = owner;
		owner = next_owner(analysis, last);
	}
	return last != id ? last : NO_ALLOCATION;
}

static struct value get_owner(struct column_row *row)
{
	allocation_id owner = allocation_owner(row->facts->analysis, row->id);

	return VALUE_IF(owner != NO_ALLOCATION, owner);
}

static struct error *sort_free(struct column_facts *facts)
{
	return heaps_sort_free(analysis_heaps(facts->analysis));
}

static struct value get_free_kind(struct column_row *row)
{
	return VALUE(
		heaps_free_kind(analysis_heaps(row->facts->analysis), row->id, &row->region_hint)
			->name);
}

/* In the row of the tree, those that an allocation dominates follow it. */
static struct error *find_parents(struct column_facts *facts)
{
	const struct dominators *tree = analysis_dominators(facts->analysis);
	size_t count = dominators_count(tree), parent = SIZE_MAX;
	_cleanup_(free) uint32_t *above = calloc(count + 1, sizeof(*above));

	if (facts->parents.count)
		return NULL;
	TRY_MEMORY(above);
	facts->parents.memory.account = analysis_account(facts->analysis);
	TRY(array_resize(&facts->parents, allocation_count(analysis_index(facts->analysis))));
	for (size_t i = 0; i < count; i++) {
		while (parent != SIZE_MAX && i >= dominators_end(tree, parent))
			parent = above[parent] == UINT32_MAX ? SIZE_MAX : above[parent];
		above[i] = parent == SIZE_MAX ? UINT32_MAX : (uint32_t)parent;
		facts->parents.items[dominators_at(tree, i)] =
			parent == SIZE_MAX ? NO_ALLOCATION : dominators_at(tree, parent);
		parent = i;
	}
	return NULL;
}

static struct value get_parent(struct column_row *row)
{
	allocation_id parent = row->facts->parents.items[row->id];

	return VALUE_IF(parent != NO_ALLOCATION, parent);
}

static struct value get_retained_count(struct column_row *row)
{
	const struct dominators *tree = analysis_dominators(row->facts->analysis);
	size_t position;

	return VALUE_IF(dominators_position(tree, row->id, &position),
			dominators_end(tree, position) - position);
}

static struct object_space *space_of(const struct column_row *row)
{
	return runtimes_space_of(runtimes_of(row), row->id);
}

static struct value get_runtime(struct column_row *row)
{
	const struct object_space *space = space_of(row);

	return VALUE_IF(space, space->runtime->name);
}

static kind_key key_of_id(const void *data, allocation_id id)
{
	return kind_make(BY_SIZE, (uint64_t)id + 1);
}

/* The blocks of all objects: a group for each. */
static struct error *find_blocks(struct column_facts *facts)
{
	const struct allocation_index *index = analysis_index(facts->analysis);
	_cleanup_(object_census_deinit) struct object_census census = { 0 };
	struct object_census_input input = {
		.analysis = facts->analysis,
		.members = allocation_used(index),
		.key_of = key_of_id,
	};

	if (facts->object_blocks.count)
		return NULL;
	TRY(object_census_take(&input, &census));
	facts->object_blocks.memory.account = analysis_account(facts->analysis);
	TRY(array_resize(&facts->object_blocks, allocation_count(index)));
	array_for_each(group, &census.groups)
		facts->object_blocks.items[kind_value(group->key) - 1] = group->block_bytes;
	return NULL;
}

static struct value get_with_blocks(struct column_row *row)
{
	return VALUE_IF(space_of(row), allocation_size(index_of(row), row->id) +
					       row->facts->object_blocks.items[row->id]);
}

static struct value get_kept(struct column_row *row)
{
	char text[256];

	return runtimes_tell(runtimes_of(row), row->id, text, sizeof(text)) ? made_text(row, text)
									    : ABSENT;
}

/* The object's value; NULL: it is no object. */
static const struct object_value *read_value(struct column_row *row)
{
	struct object_space *space = space_of(row);
	struct object_link link = { .target = space ? object_target(space, row->id) : 0 };

	if (!space)
		return NULL;
	row->view.image = analysis_image(row->facts->analysis);
	if (row->read_id != row->id && !object_value_read(space, &row->view, &link, &row->value))
		row->value = (struct object_value){ .kind = OBJECT_SAYS_NOTHING };
	row->read_id = row->id;
	return &row->value;
}

struct value value_of_object(const struct object_value *value, bool no_content)
{
	if (value->kind == OBJECT_SAYS_NOTHING)
		return ABSENT;
	if (no_content)
		return VALUE(report_left_out);
	if (value->kind == OBJECT_IS_TEXT)
		return VALUE((const char *)value->text);
	return value->kind == OBJECT_IS_REAL ? VALUE(value->real) : VALUE((uint64_t)value->integer);
}

static struct value get_value(struct column_row *row)
{
	const struct object_value *object = read_value(row);
	struct value value = object ? value_of_object(object, row->facts->no_content) : ABSENT;

	return value.text ? made_text(row, value.text) : value;
}

static struct value get_length(struct column_row *row)
{
	const struct object_value *object = read_value(row);

	return VALUE_IF(object && object->has_length, object->length);
}

/*
 * A list of columns: X(NAME, KIND, SUMMARY, GET, STAGES, NEED). AS_COLUMN makes the column that
 * reports show of a line, AS_GETTER what reads it.
 */
#define AS_COLUMN(name, kind, ...) { name, kind },
#define AS_GETTER(name, kind, ...) { __VA_ARGS__ },

#define PLACE(X)                                                                             \
	X("id", VALUE_NUMBER, "its rank by address among used and free allocations", get_id) \
	X("address", VALUE_ADDRESS, "where it begins", get_address)
#define SIZE(X) X("size", VALUE_BYTES, "bytes that the program may use", get_size)
#define STATE(X)                                                                                   \
	X("state", VALUE_TEXT, "'anchored', 'leaked' and the like; of a free one, how it is free", \
	  get_state, 1 << STAGE_REACHABILITY)
#define ORIGIN(X)                                                                     \
	X("allocator", VALUE_TEXT, "the allocator that it comes from", get_allocator) \
	X("arena", VALUE_NUMBER, "the number of the arena", get_arena)
#define RETAINED(X)                                                                             \
	X("retained", VALUE_BYTES, "bytes that would be freed along with it, its own included", \
	  get_retained, 1 << STAGE_RETAINED)

#define NEED_TYPES (1U << STAGE_TYPES | 1U << STAGE_LEAKED_TYPES)
#define ALLOCATION_COLUMNS(X)                                                                    \
	PLACE(X)                                                                                 \
	SIZE(X)                                                                                  \
	X("kind", VALUE_TEXT, "what it is counted as; of a free one, the list that it is on",    \
	  get_kind, 0, find_kinds)                                                               \
	X("known_by", VALUE_TEXT, "by what the kind is known: its class, type, pattern ...",     \
	  get_known_by, 0, find_kinds)                                                           \
	X("class", VALUE_TEXT, "the class of an object of C++ or a language", get_class,         \
	  1 << STAGE_SIGNATURES)                                                                 \
	X("pattern", VALUE_TEXT, "the pattern, as 'help patterns' has them", get_pattern, 0,     \
	  find_kinds)                                                                            \
	X("type", VALUE_TEXT, "the type by debug information", get_type, NEED_TYPES)             \
	X("sureness", VALUE_TEXT,                                                                \
	  "how sure the kind is: certain, typed, looks like, text or held by", get_sureness,     \
	  NEED_TYPES, find_kinds)                                                                \
	X("signature", VALUE_ADDRESS, "the vtable or the like that its first word refers to",    \
	  get_signature, 1 << STAGE_SIGNATURES)                                                  \
	STATE(X)                                                                                 \
	X("anchor", VALUE_TEXT, "the kind of root that refers to it", get_anchor,                \
	  1 << STAGE_REACHABILITY)                                                               \
	ORIGIN(X)                                                                                \
	RETAINED(X)                                                                              \
	X("is_leak_root", VALUE_NUMBER, "1 where a leak began", get_leak_root, 1 << STAGE_LEAKS) \
	X("owner", VALUE_NUMBER, "the id of the object that it is part of, as a body or node",   \
	  get_owner, 1 << STAGE_OWNERS)
#define FREE_COLUMNS(X)                                          \
	PLACE(X)                                                 \
	SIZE(X)                                                  \
	X("state", VALUE_TEXT, NULL, get_state)                  \
	X("kind", VALUE_TEXT, NULL, get_free_kind, 0, sort_free) \
	ORIGIN(X)
#define DOMINATOR_COLUMNS(X)                                                                      \
	PLACE(X)                                                                                  \
	SIZE(X)                                                                                   \
	X("parent", VALUE_NUMBER, "the id of the nearest allocation that all paths lead through", \
	  get_parent, 1 << STAGE_RETAINED, find_parents)                                          \
	RETAINED(X)                                                                               \
	X("retained_count", VALUE_COUNT,                                                          \
	  "allocations that would be freed along with it, itself included", get_retained_count,   \
	  1 << STAGE_RETAINED)
#define OBJECT_COLUMNS(X)                                                                        \
	PLACE(X)                                                                                 \
	X("class", VALUE_TEXT, NULL, get_class, 1 << STAGE_CLASSES)                              \
	X("runtime", VALUE_TEXT, "the language of an object", get_runtime, 1 << STAGE_CLASSES)   \
	X("bytes", VALUE_BYTES, "the same as size", get_size)                                    \
	X("with_blocks", VALUE_BYTES,                                                            \
	  "an object's size with its blocks, as 'objects' counts them", get_with_blocks,         \
	  1 << STAGE_CLASSES, find_blocks)                                                       \
	STATE(X)                                                                                 \
	X("kept", VALUE_TEXT, "what the runtime says of an object, such as its reference count", \
	  get_kept, 1 << STAGE_CLASSES)                                                          \
	X("value", VALUE_ANY, "the number or text that an object is", get_value,                 \
	  1 << STAGE_OBJECT_PATHS)                                                               \
	X("length", VALUE_ANY, "an object's characters or items", get_length,                    \
	  1 << STAGE_OBJECT_PATHS)

const struct column_list allocation_columns = {
	TABLE("allocation", NULL, ALLOCATION_COLUMNS(AS_COLUMN)),
	(const struct allocation_column[]){ ALLOCATION_COLUMNS(AS_GETTER) },
	.hidden = 1U << STAGE_RETAINED | 1U << STAGE_LEAKS | 1U << STAGE_OWNERS,
};
const struct column_list free_columns = {
	TABLE("free", NULL, FREE_COLUMNS(AS_COLUMN)),
	(const struct allocation_column[]){ FREE_COLUMNS(AS_GETTER) },
};
const struct column_list dominator_columns = {
	TABLE("dominator", NULL, DOMINATOR_COLUMNS(AS_COLUMN)),
	(const struct allocation_column[]){ DOMINATOR_COLUMNS(AS_GETTER) },
};
const struct column_list object_columns = {
	TABLE("object", NULL, OBJECT_COLUMNS(AS_COLUMN)),
	(const struct allocation_column[]){ OBJECT_COLUMNS(AS_GETTER) },
};

static struct error *need_columns(struct column_facts *facts,
				  const struct allocation_column *const *columns, size_t count)
{
	uint32_t stages = 0;

	for (size_t i = 0; i < count; i++)
		stages |= columns[i] ? columns[i]->stages : 0;
	for (enum stage stage = 0; stage < STAGES; stage++)
		if (stages >> stage & 1)
			TRY(analysis_need(facts->analysis, stage));
	for (size_t i = 0; i < count; i++)
		if (columns[i] && columns[i]->need)
			TRY(columns[i]->need(facts));
	return NULL;
}

struct error *columns_need(struct column_facts *facts, const struct column_list *list,
			   uint32_t used)
{
	const struct allocation_column *columns[MAXIMUM_COLUMNS] = { NULL };

	for (size_t i = 0; i < list->table.column_count; i++)
		columns[i] = used >> i & 1 ? &list->columns[i] : NULL;
	return need_columns(facts, columns, list->table.column_count);
}

static const struct column_list *const lists[] = { &allocation_columns, &dominator_columns,
						   &object_columns };

/* The number of the column of that name; the count of columns if there is none. */
static size_t find_column(const struct column_list *list, const char *name)
{
	size_t i = 0;

	while (i < list->table.column_count && strcmp(list->table.columns[i].name, name) != 0)
		i++;
	return i;
}

/* The first list that has a column of that name, or NULL. */
static const struct column_list *find_list(const char *name, size_t *ret_number)
{
	for (size_t i = 0; i < COUNT_OF(lists); i++) {
		*ret_number = find_column(lists[i], name);
		if (*ret_number < lists[i]->table.column_count)
			return lists[i];
	}
	return NULL;
}

bool column_at(size_t number, const char **ret_name, const char **ret_summary)
{
	for (size_t i = 0; i < COUNT_OF(lists); i++) {
		for (size_t j = 0, other; j < lists[i]->table.column_count; j++) {
			const char *name = lists[i]->table.columns[j].name;

			if (find_list(name, &other) != lists[i] || number-- > 0)
				continue;
			*ret_name = name;
			*ret_summary = lists[i]->columns[j].summary;
			return true;
		}
	}
	return false;
}

static struct error *unknown_column(const char *name)
{
	struct writer known = { 0 };
	const char *other, *summary;
	struct error *error;

	for (size_t i = 0; column_at(i, &other, &summary); i++) {
		writer_text(&known, i ? ", " : "a column: use ");
		writer_text(&known, other);
	}
	writer_put(&known, '\0');
	error = known.failed ? &error_no_memory : error_not(name, known.buffer);
	writer_deinit(&known);
	return error;
}

static struct error *choose(struct column_choice *choice, const char *name)
{
	size_t number, of_free = find_column(&free_columns, name), count;
	const struct column_list *list = find_list(name, &number);

	if (!list)
		return unknown_column(name);
	count = choice->table.column_count;
	for (size_t i = 0; i < count; i++)
		if (choice->of_used[i] == &list->columns[number])
			return error_create(ERROR_USAGE, "column '%s' is asked for twice", name);
	choice->table.columns[count] = list->table.columns[number];
	choice->of_used[count] = &list->columns[number];
	if (of_free < free_columns.table.column_count)
		choice->of_free[count] = &free_columns.columns[of_free];
	choice->table.column_count++;
	return NULL;
}

struct error *column_choice_parse(const char *names, struct column_choice *ret)
{
	_cleanup_(free) char *words = strdup(names);
	char *rest = words;

	TRY_MEMORY(words);
	*ret = (struct column_choice){ .table.name = "allocation" };
	while (rest)
		TRY(choose(ret, strsep(&rest, ",")));
	return NULL;
}

struct error *column_choice_need(const struct column_choice *choice, struct column_facts *facts,
				 const struct bitmap *members)
{
	const struct bitmap *used = allocation_used(analysis_index(facts->analysis));
	size_t count = choice->table.column_count;

	if (!bitmap_within(members, used))
		TRY(need_columns(facts, choice->of_free, count));
	return bitmap_meets(members, used) ? need_columns(facts, choice->of_used, count) : NULL;
}

struct error *column_choice_write(const struct column_choice *choice, struct column_row *row,
				  struct report *report)
{
	bool is_used = bitmap_get(allocation_used(index_of(row)), row->id);
	const struct allocation_column *const *columns =
		is_used ? choice->of_used : choice->of_free;

	for (size_t i = 0; i < choice->table.column_count; i++)
		report_add(report, columns[i] ? columns[i]->get(row) : ABSENT);
	report_end_row(report);
	column_row_end(row);
	return row->no_memory ? &error_no_memory : NULL;
}
