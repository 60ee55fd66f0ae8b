/* Lets the user set or reject the type of an allocation. */
#include "analyzer/base/text.h"
#include "cli/command.h"

#include <inttypes.h>
#include <string.h>

struct type_arguments {
	uint64_t address;
	const char *type; /* NULL: not yet */
};

/* "struct conn" may be two words. */
static bool is_tag(const char *word)
{
	return strcmp(word, "struct") == 0 || strcmp(word, "union") == 0 ||
	       strcmp(word, "class") == 0;
}

static const char *without_tag(const char *name)
{
	char tag[8] = "";
	int length = 0;

	sscanf(name, "%7[a-z] %n", tag, &length);
	return length && is_tag(tag) ? name + length : name;
}

static const int keep_words[] = { KEEP(ADDRESS, struct type_arguments, address), 0 };

static struct error *istype_parse(int key, const char *value, void *output)
{
	struct type_arguments *arguments = output;

	if (key == ARGP_KEY_END)
		return arguments->type && !is_tag(arguments->type)
			       ? NULL
			       : error_create(ERROR_USAGE, "'istype' takes ADDRESS TYPE");
	if (arguments->type && !is_tag(arguments->type))
		return error_create(ERROR_USAGE, "unexpected word '%s' after a type", value);
	arguments->type = value;
	return NULL;
}

/* The allocation in use that the address is in. */
static struct error *find_allocation(const struct analysis *analysis, uint64_t address,
				     allocation_id *ret)
{
	const struct allocation_index *index = analysis_index(analysis);
	allocation_id id = allocation_find(index, address);

	if (id == NO_ALLOCATION)
		return error_create(ERROR_USAGE, "there is no allocation at 0x%" PRIx64, address);
	if (allocation_state(index, id) != BLOCK_USED)
		return error_create(ERROR_USAGE, "what is at 0x%" PRIx64 " is free", address);
	*ret = id;
	return NULL;
}

static bool is_structure(const struct data_type *type)
{
	return (type->kind == TYPE_STRUCTURE || type->kind == TYPE_UNION) && type->name;
}

static const char *name_of_structure(const void *data, size_t number)
{
	const struct type_table *table = data;
	const struct data_type *type;

	/* 0 is no type. */
	if (number + 1 >= type_count(table))
		return NULL;
	type = type_get(table, (type_number)number + 1);
	return is_structure(type) ? type->name : "";
}

/*
 * The structure of that name; of several, the first that is just as large as the allocation, or
 * else has room in it.
 */
static type_number find_fitting(const struct analysis *analysis, const char *name, allocation_id id)
{
	const struct allocation_index *index = analysis_index(analysis);
	const struct type_table *table = typing_types(analysis_typing(analysis));
	uint64_t start = allocation_start(index, id), room = allocation_size(index, id);
	const struct memory_range range = { start, start + room };
	type_number found = type_find(table, name), smaller = NO_TYPE;

	for (type_number i = 1; found != NO_TYPE && i < type_count(table); i++) {
		const struct data_type *type = type_get(table, i);

		if (!is_structure(type) || strcmp(type->name, type_get(table, found)->name) != 0 ||
		    type->size == 0 || type->size > room)
			continue;
		if (allocation_fits(index, range, type->size, true))
			return i;
		if (smaller == NO_TYPE)
			smaller = i;
	}
	return smaller != NO_TYPE ? smaller : found;
}

static struct error *find_type(const struct analysis *analysis, const char *name, allocation_id id,
			       type_number *ret)
{
	const struct type_table *table = typing_types(analysis_typing(analysis));
	uint64_t room = allocation_size(analysis_index(analysis), id), size;

	if (type_count(table) <= 1)
		return error_create(ERROR_USAGE, "there is no debug information with types");
	*ret = find_fitting(analysis, name, id);
	if (*ret == NO_TYPE)
		return error_unknown("type", name,
				     nearest_word(without_tag(name), name_of_structure, table));
	size = type_get(table, *ret)->size;
	if (size == 0)
		return error_create(ERROR_USAGE, "%s is declared, but not defined",
				    type_text(table, *ret, "", ""));
	if (size > room)
		return error_create(ERROR_USAGE,
				    "%s is of size %" PRIu64 " (0x%" PRIx64
				    "), but the allocation of size %" PRIu64 " (0x%" PRIx64 ")",
				    type_text(table, *ret, "", ""), size, size, room, room);
	return NULL;
}

static const char *name_now(const struct analysis *analysis, allocation_id id)
{
	const struct typing *typing = analysis_typing(analysis);
	struct typed typed;

	return typing_of(typing, id, &typed) ? typing_name(typing, typed) : NULL;
}

static struct error *istype_run(struct analysis *analysis, const void *input, struct report *report)
{
	static const struct table table = TABLE(
		"type",
		"Type {type} for 1 allocation; {typed,} more {typed|follows|follow} from it[; {untyped,} {untyped|has|have} no type any more].",
		{ "type", VALUE_TEXT }, { "typed", VALUE_COUNT }, { "untyped", VALUE_COUNT });
	const struct type_arguments *arguments = input;
	struct type_statement statement = { .is_denied = false };
	struct type_changes changes;

	TRY(find_allocation(analysis, arguments->address, &statement.id));
	TRY(find_type(analysis, arguments->type, statement.id, &statement.type));
	TRY(analysis_state_type(analysis, &statement, &changes));
	report_single(report, &table, name_now(analysis, statement.id), changes.typed,
		      VALUE_IF(changes.untyped, changes.untyped));
	return NULL;
}

const struct command command_istype = {
	.name = "istype",
	.summary = "State the type of an allocation",
	.words = "ADDRESS TYPE",
	.example = "istype 55d0c0ffee10 app::Session",
	.description =
		"The allocation that contains the address is of that structure, class or union, and its pointers lead to others as those of a variable do. All later answers use these types, until heapcore ends. A structure that is larger than the allocation is an error; a smaller one is its beginning, or the element of an array if all of it looks like that. The output is how many other allocations have a type now that they did not have.\n"
		"See 'notype' to withdraw it, and 'describe' for the reason of each type.",
	.word = WORD_ADDRESS,
	.keep_words = keep_words,
	.parse = istype_parse,
	.arguments_size = sizeof(struct type_arguments),
	.needs = STAGE_TYPES,
	.run = istype_run,
};

/* The current type of the allocation; for leaked ones, the likely type. */
static struct error *find_present(struct analysis *analysis, allocation_id id, struct typed *ret)
{
	if (typing_of(analysis_typing(analysis), id, ret))
		return NULL;
	TRY(analysis_need(analysis, STAGE_LEAKED_TYPES));
	if (analysis_type_of(analysis, id, ret))
		return NULL;
	return error_create(ERROR_USAGE, "the allocation at 0x%" PRIx64 " has no type",
			    allocation_start(analysis_index(analysis), id));
}

static struct error *notype_run(struct analysis *analysis, const void *input, struct report *report)
{
	static const struct table table = TABLE(
		"no type",
		"Type {type} {change} for 1 allocation[, now {now}]; {untyped,} more {untyped|has|have} no type any more[, {typed,} another one].",
		{ "type", VALUE_TEXT }, { "change", VALUE_TEXT }, { "now", VALUE_TEXT },
		{ "untyped", VALUE_COUNT }, { "typed", VALUE_COUNT });
	const struct type_arguments *arguments = input;
	struct type_statement statement = { .is_denied = true };
	struct type_changes changes;
	struct typed typed;
	const char *name;

	TRY(find_allocation(analysis, arguments->address, &statement.id));
	TRY(find_present(analysis, statement.id, &typed));
	name = typing_name(analysis_typing(analysis), typed);
	statement.type = typed.type;
	TRY(analysis_state_type(analysis, &statement, &changes));
	report_single(report, &table, name, typed.is_stated ? "withdrawn" : "denied",
		      name_now(analysis, statement.id), changes.untyped,
		      VALUE_IF(changes.typed, changes.typed));
	return NULL;
}

const struct command command_notype = {
	.name = "notype",
	.summary = "Deny the type that an allocation was given",
	.words = "ADDRESS",
	.example = "notype 55d0c0ffee10",
	.description =
		"The allocation that contains the address is not of the type that 'describe' says. If that was stated by 'istype', this is withdrawn; otherwise the allocation is never again taken for it, and what only followed from it loses its type, too. All later answers use that, until heapcore ends. The allocation may then have another type, which can be denied as well.",
	.word = WORD_ADDRESS,
	.keep_words = keep_words,
	.arguments_size = sizeof(struct type_arguments),
	.needs = STAGE_TYPES,
	.run = notype_run,
};
