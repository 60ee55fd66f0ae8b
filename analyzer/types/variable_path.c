#include "analyzer/types/variable_path.h"

#include "analyzer/base/budget.h"
#include "analyzer/base/cleanup.h"
#include "analyzer/base/list.h"
#include "analyzer/base/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/* Nothing that people type is as deep; a file may make a structure part of itself. */
enum { DEEPEST = 64, DEEPEST_MEMBER = 32, MOST_MEMBERS = 1 << 16 };

/* The value of a part of the path. */
struct value {
	uint64_t address;
	uint64_t size; /* of what is left of it, at most */
	type_number type;
	uint32_t level;	       /* of an array of several dimensions: how many of them are passed */
	bool is_known;	       /* its type is; NO_TYPE is void then */
	bool is_address;       /* that of a value of the type is meant */
	const char *from, *to; /* its text */
};

struct parser {
	const struct variable_context *context;
	const char *at;
	size_t depth;
	const struct module *module; /* NULL: there is no such variable */
};

static const struct data_type *type_of(const struct parser *parser, const struct value *value)
{
	return type_get(parser->context->types, value->type);
}

/* "int [3][4]" of which one dimension is passed is "int [4]". */
static const char *value_type(const struct parser *parser, const struct value *value)
{
	const struct type_table *types = parser->context->types;
	const struct data_type *type = type_get(types, value->type);
	char bounds[128] = "";
	size_t used = 0;

	if (!value->is_known)
		return NULL;
	if (!type->bound_count)
		return type_text(types, value->type, "", value->is_address ? " *" : "");
	for (size_t i = value->level; i < type->bound_count && used < sizeof(bounds); i++)
		used += (size_t)snprintf(bounds + used, sizeof(bounds) - used, "[%" PRIu64 "]",
					 type_bounds(types, type)[i]);
	return type_text(types, type->target, "", bounds);
}

static struct error *fail(const struct parser *parser, const struct value *value, const char *what)
{
	const char *type = value_type(parser, value);

	if (!type)
		return error_create(ERROR_USAGE, "no debug information has the type of '%.*s'",
				    (int)(value->to - value->from), value->from);
	return error_create(ERROR_USAGE, "'%.*s' is of type %s%s", (int)(value->to - value->from),
			    value->from, type, what);
}

static struct error *syntax(const struct parser *parser, const char *expected)
{
	return *parser->at
		       ? error_create(ERROR_USAGE, "%s is expected at '%s'", expected, parser->at)
		       : error_create(ERROR_USAGE, "%s is expected at the end", expected);
}

/* ---- the way on from a value */

static struct error *go_to(const struct parser *parser, struct value *value, uint64_t offset,
			   type_number type)
{
	if (offset > 0 && offset >= value->size)
		return error_create(ERROR_USAGE,
				    "the optimizer left only the first %" PRIu64 " bytes of '%.*s'",
				    value->size, (int)(value->to - value->from), value->from);
	value->address += offset;
	value->size = value->size == UINT64_MAX ? UINT64_MAX : value->size - offset;
	value->type = type;
	return NULL;
}

static struct error *read_pointer(const struct parser *parser, const struct value *value,
				  uint64_t *ret)
{
	if (image_read_word(parser->context->image, value->address, ret))
		return NULL;
	return error_create(ERROR_USAGE, "'%.*s', at 0x%" PRIx64 ", is not in the core",
			    (int)(value->to - value->from), value->from, value->address);
}

static struct error *follow_pointer(const struct parser *parser, struct value *value)
{
	uint64_t target = 0;

	if (value->is_address) {
		value->is_address = false;
		return NULL;
	}
	TRY(read_pointer(parser, value, &target));
	if (target == 0)
		return error_create(ERROR_USAGE, "'%.*s' is a null pointer",
				    (int)(value->to - value->from), value->from);
	value->address = target;
	value->size = UINT64_MAX;
	value->type = type_of(parser, value)->target;
	return NULL;
}

/* Elements passed by one step in the dimension, and how many steps there are; 0: not told. */
static bool find_step(const struct parser *parser, const struct value *value, uint64_t *ret_step,
		      uint64_t *ret_count)
{
	const struct data_type *type = type_of(parser, value);
	const uint64_t *bounds = type_bounds(parser->context->types, type);

	*ret_step = 1;
	*ret_count = type->bound_count ? bounds[value->level] : type->count;
	for (size_t i = value->level + 1; i < type->bound_count; i++)
		if (__builtin_mul_overflow(*ret_step, bounds[i], ret_step))
			return false;
	return true;
}

static struct error *take_index(const struct parser *parser, struct value *value, uint64_t index)
{
	const struct type_table *types = parser->context->types;
	const struct data_type *type = type_of(parser, value);
	bool is_array = !value->is_address && type->kind == TYPE_ARRAY;
	type_number element = value->is_address ? value->type : type->target;
	uint64_t size = type_get(types, element)->size, step = 1, count = 0, offset;
	bool is_partial = is_array && value->level + 1 < type->bound_count;

	if ((!is_array && !value->is_address && type->kind != TYPE_POINTER) ||
	    (value->is_address && value->level))
		return fail(parser, value, ", which has no elements");
	if (size == 0 || (is_array && !find_step(parser, value, &step, &count)))
		return fail(parser, value, ", whose elements have no size");
	/* One of 0 or 1 is often the beginning of more. */
	if (count > 1 && index >= count)
		return error_create(
			ERROR_USAGE, "index %" PRIu64 " is beyond %s, the type of '%.*s'", index,
			value_type(parser, value), (int)(value->to - value->from), value->from);
	if (__builtin_mul_overflow(size, step, &size) ||
	    __builtin_mul_overflow(size, index, &offset))
		return error_create(ERROR_USAGE, "index %" PRIu64 " is beyond all memory", index);
	if (!is_array)
		TRY(follow_pointer(parser, value));
	TRY(go_to(parser, value, offset, is_partial ? value->type : element));
	value->level = is_partial ? value->level + 1 : 0;
	return NULL;
}

static struct error *dereference(const struct parser *parser, struct value *value)
{
	if (value->is_address || type_of(parser, value)->kind == TYPE_POINTER)
		return follow_pointer(parser, value);
	if (type_of(parser, value)->kind == TYPE_ARRAY)
		return take_index(parser, value, 0);
	return fail(parser, value, ", which is no pointer");
}

/* ---- members */

struct member_walk {
	const struct type_table *types;
	/* Returns false to end it. */
	bool (*visit)(void *data, const struct type_member *member, uint64_t offset);
	void *data;
	struct budget left; /* members that may still be visited */
};

static bool is_aggregate(const struct data_type *type)
{
	return type->kind == TYPE_STRUCTURE || type->kind == TYPE_UNION;
}

/* Members without a name are transparent. */
static bool walk_members(struct member_walk *walk, const struct data_type *type, uint64_t offset,
			 size_t depth)
{
	const struct type_member *members = type_members(walk->types, type);

	if (!is_aggregate(type) || depth == DEEPEST_MEMBER)
		return true;
	list_for_each(member, members, type->member_count) {
		uint64_t place = offset + member->offset;

		if (!budget_take(&walk->left))
			return false;
		if (member->name && !member->is_base && !walk->visit(walk->data, member, place))
			return false;
		if ((!member->name || member->is_base) &&
		    !walk_members(walk, type_get(walk->types, member->type), place, depth + 1))
			return false;
	}
	return true;
}

static void visit_members(const struct type_table *types, type_number type,
			  bool (*visit)(void *data, const struct type_member *member,
					uint64_t offset),
			  void *data)
{
	struct member_walk walk = { types, visit, data, { MOST_MEMBERS } };

	walk_members(&walk, type_get(types, type), 0, 0);
}

struct member_search {
	const char *name;
	size_t length;
	const struct type_member *found; /* or NULL */
	uint64_t offset;
};

static bool is_wanted(void *data, const struct type_member *member, uint64_t offset)
{
	struct member_search *search = data;

	if (strlen(member->name) != search->length ||
	    memcmp(member->name, search->name, search->length) != 0)
		return true;
	search->found = member;
	search->offset = offset;
	return false;
}

enum { NAMES_KEPT = 1024, NAMES_SHOWN = 12 };

struct member_names {
	const char *list[NAMES_KEPT + 1]; /* NULL at the end */
	size_t count;
};

static bool keep_name(void *data, const struct type_member *member, uint64_t offset)
{
	struct member_names *names = data;

	names->list[names->count++] = member->name;
	return names->count < NAMES_KEPT;
}

static const char *name_at(const void *data, size_t number)
{
	return ((const struct member_names *)data)->list[number];
}

/* As "a, b, c", to be freed; NULL: memory is short. */
static char *list_names(const struct member_names *names)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (size_t i = 0; i < names->count && i < NAMES_SHOWN; i++)
		fprintf(out, "%s%s", i ? ", " : "", names->list[i]);
	if (names->count > NAMES_SHOWN)
		fprintf(out, " and %zu more", names->count - NAMES_SHOWN);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static struct error *no_member(const struct parser *parser, const struct value *value,
			       const char *name)
{
	_cleanup_(free) struct member_names *names = calloc(1, sizeof(*names));
	_cleanup_(free) char *text = NULL;
	const char *nearest, *type = value_type(parser, value);

	TRY_MEMORY(names && type);
	visit_members(parser->context->types, value->type, keep_name, names);
	nearest = nearest_word(name, name_at, names);
	if (names->count == 0)
		return error_create(ERROR_USAGE, "%s has no members", type);
	if (names->count > NAMES_SHOWN && nearest)
		return error_create(ERROR_USAGE, "%s has no member '%s'; did you mean '%s'?", type,
				    name, nearest);
	text = list_names(names);
	return text ? error_create(ERROR_USAGE, "%s has no member '%s'; it has %s", type, name,
				   text)
		    : &error_no_memory;
}

/* A pointer's target, and what else may have members. */
static struct error *enter(const struct parser *parser, struct value *value)
{
	const struct data_type *type = type_of(parser, value);

	if (value->is_address || type->kind == TYPE_POINTER || type->kind == TYPE_ARRAY)
		TRY(dereference(parser, value));
	type = type_of(parser, value);
	if (type->kind == TYPE_DECLARED)
		return error_create(ERROR_USAGE, "no debug information has the members of %s",
				    value_type(parser, value));
	return is_aggregate(type) ? NULL : fail(parser, value, ", which has no members");
}

static struct error *take_member(const struct parser *parser, struct value *value, const char *name,
				 size_t length)
{
	struct member_search search = { .name = name, .length = length };
	_cleanup_(free) char *missing = NULL;

	TRY(enter(parser, value));
	visit_members(parser->context->types, value->type, is_wanted, &search);
	if (search.found)
		return go_to(parser, value, search.offset, search.found->type);
	missing = strndup(name, length);
	return missing ? no_member(parser, value, missing) : &error_no_memory;
}

/* ---- the text of a path */

static void skip_blanks(struct parser *parser)
{
	while (isspace((unsigned char)*parser->at))
		parser->at++;
}

static size_t name_length(const char *text)
{
	size_t length = 0;

	while (isalnum((unsigned char)text[length]) || text[length] == '_' || text[length] == '$' ||
	       (unsigned char)text[length] >= 0x80)
		length++;
	return isdigit((unsigned char)*text) ? 0 : length;
}

/* A name with its scope, which may hold anything, up to the last "::". */
static size_t scoped_length(const char *text)
{
	const char *last = variable_last_name(text);

	return name_length(last) ? (size_t)(last - text) + name_length(last) : 0;
}

static struct error *parse_name(struct parser *parser, struct value *ret)
{
	size_t length = scoped_length(parser->at);
	_cleanup_(free) char *name = strndup(parser->at, length);
	struct named_variable variable;

	TRY_MEMORY(name);
	if (!length)
		return syntax(parser, "the name of a variable");
	TRY(variable_find(parser->context, name, &variable));
	if (!variable.module)
		return error_create(ERROR_USAGE, "no global variable '%s'", name);
	parser->module = variable.module;
	*ret = (struct value){
		.address = variable.address,
		.size = variable.size,
		.type = variable.type,
		.is_known = variable.type != NO_TYPE,
		.from = parser->at,
	};
	parser->at += length;
	return NULL;
}

static struct error *parse_index(struct parser *parser, struct value *value)
{
	char *end;
	uint64_t index;

	parser->at++;
	skip_blanks(parser);
	if (!isdigit((unsigned char)*parser->at))
		return syntax(parser, "an index");
	index = strtoull(parser->at, &end, 0);
	parser->at = end;
	skip_blanks(parser);
	if (*parser->at != ']')
		return syntax(parser, "']'");
	parser->at++;
	return take_index(parser, value, index);
}

static struct error *parse_member(struct parser *parser, struct value *value)
{
	size_t length;

	parser->at += *parser->at == '.' ? 1 : 2;
	skip_blanks(parser);
	length = name_length(parser->at);
	if (!length)
		return syntax(parser, "a member");
	TRY(take_member(parser, value, parser->at, length));
	parser->at += length;
	return NULL;
}

static bool is_member_next(const struct parser *parser)
{
	return *parser->at == '.' || strncmp(parser->at, "->", 2) == 0;
}

static struct error *parse_rest(struct parser *parser, struct value *value)
{
	for (value->to = parser->at;; value->to = parser->at) {
		skip_blanks(parser);
		if (!is_member_next(parser) && *parser->at != '[')
			return NULL;
		if (!value->is_known)
			return fail(parser, value, "");
		if (*parser->at == '[')
			TRY(parse_index(parser, value));
		else
			TRY(parse_member(parser, value));
	}
}

static struct error *parse_value(struct parser *parser, struct value *ret);

static struct error *parse_group(struct parser *parser, struct value *ret)
{
	const char *from = parser->at++;

	TRY(parse_value(parser, ret));
	skip_blanks(parser);
	if (*parser->at != ')')
		return syntax(parser, "')'");
	parser->at++;
	ret->from = from;
	return NULL;
}

static struct error *parse_prefixed(struct parser *parser, struct value *ret)
{
	const char *from = parser->at++;

	TRY(parse_value(parser, ret));
	if (*from == '*' && !ret->is_known)
		return fail(parser, ret, "");
	if (*from == '*')
		TRY(dereference(parser, ret));
	else if (ret->is_address)
		return error_create(ERROR_USAGE, "'%.*s' is an address, and has none",
				    (int)(ret->to - ret->from), ret->from);
	else
		ret->is_address = true;
	ret->from = from;
	ret->to = parser->at;
	return NULL;
}

static struct error *parse_value(struct parser *parser, struct value *ret)
{
	struct error *error;

	skip_blanks(parser);
	if (++parser->depth > DEEPEST)
		return error_create(ERROR_USAGE, "more than %d operators are nested", DEEPEST);
	if (*parser->at == '*' || *parser->at == '&') {
		error = parse_prefixed(parser, ret);
	} else {
		error = *parser->at == '(' ? parse_group(parser, ret) : parse_name(parser, ret);
		error = error ? error : parse_rest(parser, ret);
	}
	parser->depth--;
	return error;
}

static struct error *parse_path(struct parser *parser, const char *path, struct value *ret)
{
	parser->at = path;
	TRY(parse_value(parser, ret));
	skip_blanks(parser);
	return *parser->at ? syntax(parser, "'.', '->' or '['") : NULL;
}

struct error *variable_path_find(const struct variable_context *context, const char *path,
				 struct variable_place *ret)
{
	struct parser parser = { .context = context };
	struct value value = { .address = 0 };
	struct error *error = parse_path(&parser, path, &value);
	bool is_place;

	*ret = (struct variable_place){ .module = NULL };
	if (error)
		return error;
	is_place = value.is_address;
	value.is_address = false;
	*ret = (struct variable_place){
		.module = parser.module,
		.address = value.address,
		.type = value_type(&parser, &value),
		.is_pointer = value.is_known && !is_place &&
			      type_of(&parser, &value)->kind == TYPE_POINTER,
	};
	ret->is_present =
		ret->is_pointer && image_read_word(context->image, value.address, &ret->points_to);
	return NULL;
}

const char *variable_path_name(const char *word, size_t *ret_length, bool *ret_is_plain)
{
	const char *name = word + strspn(word, "*&( ");
	size_t length = scoped_length(name);
	const char *last = variable_last_name(name);
	const char *rest = name + length;

	if (!length)
		return NULL;
	*ret_length = (size_t)(rest - last);
	*ret_is_plain = name == word && !*rest;
	rest += strspn(rest, ") ");
	return !*rest || *rest == '.' || *rest == '[' || strncmp(rest, "->", 2) == 0 ? last : NULL;
}

struct name_visit {
	bool (*visit)(void *data, const char *name);
	void *data;
};

static bool visit_name(void *data, const struct type_member *member, uint64_t offset)
{
	const struct name_visit *visit = data;

	return visit->visit(visit->data, member->name);
}

struct error *variable_path_visit_members(const struct variable_context *context, const char *path,
					  bool (*visit)(void *data, const char *name), void *data)
{
	struct parser parser = { .context = context };
	struct value value = { .address = 0 };
	struct name_visit all = { visit, data };

	TRY(parse_path(&parser, path, &value));
	if (!value.is_known)
		return NULL;
	TRY(enter(&parser, &value));
	visit_members(context->types, value.type, visit_name, &all);
	return NULL;
}
