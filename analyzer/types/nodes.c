#include "analyzer/types/typing_parts.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/macros.h"

#include <string.h>

/*
 * The links of lists, trees and hash tables are declared as pointers to headers:
 *
 *	std::_Rb_tree<K, V, ...>	_Rb_tree_node_base *	std::_Rb_tree_node<V>
 *
 * The type of the nodes is made from the arguments of the container that the link is in, as its
 * name has them, and must be just as large as the allocation. Some headers of libc++ have the
 * arguments themselves. Names are of libstdc++ of GCC 5 to 14, and libc++ 14 to 19.
 */

enum { DEEPEST = 24 };

/* What holds the buffer of a Vec, VecDeque or String of Rust; its first argument is the element. */
static const char raw_vec[] = "alloc::raw_vec::RawVec<";

static const char *const headers[NODE_HEADERS] = {
	"std::_Rb_tree_node_base",
	"std::__detail::_List_node_base",
	"std::__detail::_Hash_node_base",
	"std::_Fwd_list_node_base",
	"std::__1::__tree_node_base<void *>",
	"std::__1::__tree_end_node<std::__1::__tree_node_base<void *> *>",
};

static const struct container {
	const char *name;   /* what its name begins with */
	const char *node;   /* the same of its nodes */
	size_t argument;    /* of the container, that is the first one of the node */
	const char *cached; /* its argument that says whether nodes keep the hash; or NULL */
	const char *rest;   /* further arguments of the node */
} containers[] = {
	{ "std::_Rb_tree<", "std::_Rb_tree_node<", 1, NULL, "" },
	{ "std::__cxx11::_List_base<", "std::_List_node<", 0, NULL, "" },
	{ "std::_List_base<", "std::_List_node<", 0, NULL, "" },
	{ "std::_Hashtable<", "std::__detail::_Hash_node<", 1, "std::__detail::_Hashtable_traits<",
	  "" },
	{ "std::_Fwd_list_base<", "std::_Fwd_list_node<", 0, NULL, "" },
	{ "std::__1::__tree<", "std::__1::__tree_node<", 0, NULL, ", void *" },
};

/* Headers whose first argument is, or is that of, the node. */
static const struct telling {
	const char *name, *node;
} telling[] = {
	{ "std::__1::__list_node_base<", "std::__1::__list_node<" },
	{ "std::__1::__hash_node_base<", NULL },
	{ "std::__1::__forward_begin_node<", NULL },
};

static bool begins_with(const char *name, const char *start)
{
	return strncmp(name, start, strlen(start)) == 0;
}

void typing_find_node_headers(struct typing *typing)
{
	for (size_t i = 0; i < NODE_HEADERS; i++)
		typing->node_headers[i] = type_find(typing->table, headers[i]);
	for (type_number i = 1; i < type_count(typing->table); i++) {
		const char *name = typing_type(typing, i)->name;

		if (!name)
			continue;
		typing->has_vecs |= begins_with(name, raw_vec);
		for (size_t j = 0; j < COUNT_OF(telling); j++)
			typing->has_telling_headers |= begins_with(name, telling[j].name);
	}
}

static bool is_header(const struct typing *typing, type_number number)
{
	const char *name;

	if (number == NO_TYPE)
		return false;
	for (size_t i = 0; i < NODE_HEADERS; i++)
		if (typing->node_headers[i] == number)
			return true;
	name = typing->has_telling_headers ? typing_type(typing, number)->name : NULL;
	for (size_t i = 0; name && i < COUNT_OF(telling); i++)
		if (begins_with(name, telling[i].name))
			return true;
	return false;
}

/* The number-th argument of a template, and how long it is; 0: there is none. */
static size_t find_argument(const char *arguments, size_t number, const char **ret)
{
	const char *start = arguments, *at;
	size_t depth = 0;

	for (at = arguments; *at; at++) {
		bool is_end = depth == 0 && (*at == ',' || *at == '>');

		if (is_end && number == 0) {
			*ret = start;
			/* "> >" of older compilers. */
			while (at > start && at[-1] == ' ')
				at--;
			return (size_t)(at - start);
		}
		if (is_end && *at == '>')
			return 0;
		if (is_end) {
			number--;
			start = at + 1 + (at[1] == ' ');
		}
		depth += strchr("<([", *at) != NULL;
		depth -= depth > 0 && strchr(">)]", *at);
	}
	return 0;
}

/* As the compiler writes it: a space may stand between two closing brackets. */
static type_number find_template(const struct typing *typing, const char *name,
				 const char *argument, size_t length, const char *rest)
{
	static const char *const ends[] = { ">", " >" };
	type_number found = NO_TYPE;

	for (size_t i = 0; i < COUNT_OF(ends) && found == NO_TYPE; i++) {
		char *text;

		if (asprintf(&text, "%s%.*s%s%s", name, (int)length, argument, rest, ends[i]) < 0)
			return NO_TYPE;
		found = type_find(typing->table, text);
		free(text);
	}
	return found;
}

static type_number find_node_of(const struct typing *typing, const struct container *container,
				const char *name)
{
	const char *argument, *traits;
	size_t length =
		find_argument(name + strlen(container->name), container->argument, &argument);
	const char *rest = container->rest;

	if (length == 0)
		return NO_TYPE;
	if (container->cached) {
		traits = strstr(name, container->cached);
		if (!traits)
			return NO_TYPE;
		rest = traits[strlen(container->cached)] == 't' ? ", true" : ", false";
	}
	return find_template(typing, container->node, argument, length, rest);
}

/* The type of nodes whose header says it; NO_TYPE: it does not. */
static type_number told_node(const struct typing *typing, type_number header)
{
	const char *name = typing_type(typing, header)->name, *argument;

	for (size_t i = 0; name && i < COUNT_OF(telling); i++) {
		const struct telling *known = &telling[i];
		_cleanup_(free) char *text = NULL;
		size_t length;

		if (!begins_with(name, known->name))
			continue;
		length = find_argument(name + strlen(known->name), 0, &argument);
		if (known->node)
			return find_template(typing, known->node, argument, length, ", void *");
		text = length > 2 ? strndup(argument, length - 2) : NULL;
		return text ? type_find(typing->table, text) : NO_TYPE;
	}
	return NO_TYPE;
}

/* The type of nodes if the type is a container, or such a node. */
static type_number node_of(const struct typing *typing, type_number number)
{
	const char *name = typing_type(typing, number)->name;

	for (size_t i = 0; name && i < COUNT_OF(containers); i++) {
		const struct container *container = &containers[i];

		if (begins_with(name, container->name))
			return find_node_of(typing, container, name);
		if (begins_with(name, container->node))
			return number;
	}
	return NO_TYPE;
}

/* The member, or element of an array, that the word at that offset is part of; NO_TYPE: none. */
static type_number enter(const struct typing *typing, type_number number, uint64_t *offset)
{
	const struct data_type *type = typing_type(typing, number);
	const struct type_member *members = type_members(typing->table, type);

	if (type->kind == TYPE_ARRAY && typing_type(typing, type->target)->size) {
		*offset %= typing_type(typing, type->target)->size;
		return type->target;
	}
	if (type->kind != TYPE_STRUCTURE)
		return NO_TYPE;
	for (size_t i = 0; i < type->member_count; i++) {
		uint64_t size = typing_type(typing, members[i].type)->size;

		if (members[i].offset <= *offset && *offset - members[i].offset < size &&
		    size >= sizeof(uint64_t)) {
			*offset -= members[i].offset;
			return members[i].type;
		}
	}
	return NO_TYPE;
}

/* The nodes of the innermost container around the word. */
static type_number search(const struct typing *typing, type_number number, uint64_t offset)
{
	type_number found = NO_TYPE;

	for (size_t i = 0; i < DEEPEST && number != NO_TYPE; i++) {
		type_number node = node_of(typing, number);

		if (node != NO_TYPE)
			found = node;
		number = enter(typing, number, &offset);
	}
	return found;
}

/* The pointer type whose target is that type; NO_TYPE: no declaration has one. */
static type_number find_pointer_to(const struct typing *typing, type_number target)
{
	for (type_number i = 1; target != NO_TYPE && i < type_count(typing->table); i++)
		if (typing_type(typing, i)->kind == TYPE_POINTER &&
		    typing_type(typing, i)->target == target)
			return i;
	return NO_TYPE;
}

/* A type as Rust writes it: a structure, a number, or a pointer to a structure. */
static type_number find_in_rust(const struct typing *typing, const char *name)
{
	static const char *const pointers[] = { "alloc::boxed::Box<", "&mut ", "&", "*mut ",
						"*const " };
	type_number found = type_find(typing->table, name);

	/* Boxes and references of what has no size are structures, with a vtable or a length. */
	for (size_t i = 0; found == NO_TYPE && i < COUNT_OF(pointers); i++) {
		const char *target = name + strlen(pointers[i]);
		_cleanup_(free) char *text = NULL;

		if (!begins_with(name, pointers[i]))
			continue;
		text = strndup(target, i == 0 ? find_argument(target, 0, &target) : strlen(target));
		return text ? find_pointer_to(typing, type_find(typing->table, text)) : NO_TYPE;
	}
	for (type_number i = 1; found == NO_TYPE && i < type_count(typing->table); i++) {
		const struct data_type *type = typing_type(typing, i);

		if ((type->kind == TYPE_NUMBER || type->kind == TYPE_CHARACTER) && type->name &&
		    strcmp(type->name, name) == 0)
			return i;
	}
	return found;
}

/* The elements of the Vec that the word is in; NO_TYPE: it is in none, or they have no type. */
static type_number search_vec(const struct typing *typing, type_number number, uint64_t offset,
			      bool *ret_is_vec)
{
	*ret_is_vec = false;
	for (size_t i = 0; i < DEEPEST && number != NO_TYPE; i++) {
		const char *name = typing_type(typing, number)->name, *argument;

		if (name && begins_with(name, raw_vec)) {
			size_t length = find_argument(name + sizeof(raw_vec) - 1, 0, &argument);
			_cleanup_(free) char *text = length ? strndup(argument, length) : NULL;

			*ret_is_vec = true;
			return text ? find_in_rust(typing, text) : NO_TYPE;
		}
		number = enter(typing, number, &offset);
	}
	return NO_TYPE;
}

/*
 * Vec's pointer is one to bytes since Rust 1.83. Elements without a type of their own are of none,
 * not bytes; so is what they do not fill.
 */
static struct error *find_elements(struct typing *typing, type_number whole, uint32_t offset,
				   uint64_t address, type_number *target)
{
	enum { IS_NO_VEC = UINT32_MAX - 1 };
	uint64_t hash = hash_add(hash_add(1, whole), offset), size;
	uint32_t element = address_map_find(&typing->nodes, hash);
	struct memory_range range;
	allocation_id id;
	bool is_vec;

	if (element == NOT_IN_MAP) {
		element = search_vec(typing, whole, offset, &is_vec);
		if (!is_vec)
			element = IS_NO_VEC;
		TRY(address_map_add(&typing->nodes, hash, element));
	}
	id = find_used(typing, address);
	if (element == IS_NO_VEC || id == NO_ALLOCATION)
		return NULL;
	range = range_of(typing, id);
	size = typing_type(typing, element)->size;
	*target = size && allocation_fits(typing->input.index, range,
					  (range.end - range.start) / size * size, false)
			  ? element
			  : NO_TYPE;
	return NULL;
}

static bool is_byte(const struct typing *typing, type_number number)
{
	const struct data_type *type = typing_type(typing, number);

	return (type->kind == TYPE_NUMBER || type->kind == TYPE_CHARACTER) && type->size == 1;
}

struct error *typing_find_node(struct typing *typing, type_number whole, uint32_t offset,
			       uint64_t address, type_number *target)
{
	uint64_t hash = hash_add(hash_add(0, whole), offset);
	struct memory_range range;
	allocation_id id;
	uint32_t node;

	if (typing->has_vecs && is_byte(typing, *target))
		return find_elements(typing, whole, offset, address, target);
	if (!is_header(typing, *target))
		return NULL;
	node = address_map_find(&typing->nodes, hash);
	if (node == NOT_IN_MAP) {
		node = told_node(typing, *target);
		if (node == NO_TYPE)
			node = search(typing, whole, offset);
		TRY(address_map_add(&typing->nodes, hash, node));
	}
	id = find_used(typing, address);
	if (node == NO_TYPE || id == NO_ALLOCATION)
		return NULL;
	range = range_of(typing, id);
	if (range.start == address && typing_fit_of_one(typing, range, node) == FIT_ONE)
		*target = node;
	return NULL;
}
