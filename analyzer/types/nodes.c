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

static const char *const headers[NODE_HEADERS] = {
	"std::_Rb_tree_node_base",
	"std::__detail::_List_node_base",
	"std::__detail::_Hash_node_base",
	"std::_Fwd_list_node_base",
	"std::__1::__tree_node_base<void *>",
	"std::__1::__tree_end_node<std::__1::__tree_node_base<void *> *>",
};

static const struct container {
	const char *name;   /* beginning of its name */
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

/*
 * Headers whose arguments are, or are those of, the node: the first one and the rest of the node's;
 * all if there is no rest.
 */
static const struct telling {
	const char *name, *node, *rest;
} telling[] = {
	{ "std::__1::__list_node_base<", "std::__1::__list_node<", ", void *" },
	{ "std::__1::__hash_node_base<", NULL, NULL },
	{ "std::__1::__forward_begin_node<", NULL, NULL },
	/* A BTreeMap's node is a leaf or an inner node, depending on its size. */
	{ "alloc::collections::btree::node::LeafNode<",
	  "alloc::collections::btree::node::InternalNode<", NULL },
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
		typing->has_rust |= type_is_of_rust(name);
		typing->has_erased |= type_is_erased(name);
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

size_t typing_find_argument(const char *arguments, size_t number, const char **ret)
{
	const char *start = arguments, *at;
	size_t depth = 0;
	bool is_end;

	for (at = arguments; *at; at++) {
		/* "fn(u64) -> u64" of Rust. */
		if (*at == '>' && at > arguments && at[-1] == '-')
			continue;
		is_end = depth == 0 && (*at == ',' || *at == '>');
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
	size_t length = typing_find_argument(name + strlen(container->name), container->argument,
					     &argument);
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
		if (known->node && !known->rest) {
			if (asprintf(&text, "%s%s", known->node, name + strlen(known->name)) < 0)
				text = NULL;
			return text ? type_find(typing->table, text) : NO_TYPE;
		}
		length = typing_find_argument(name + strlen(known->name), 0, &argument);
		if (known->node)
			return find_template(typing, known->node, argument, length, known->rest);
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

/* A union of nothing and of a value of Rust. */
static bool is_maybe_uninit(const struct data_type *type)
{
	return type->kind == TYPE_UNION && type->name &&
	       begins_with(type->name, "core::mem::maybe_uninit::MaybeUninit<");
}

type_number typing_enter(const struct typing *typing, type_number number, uint64_t *offset)
{
	const struct data_type *type = typing_type(typing, number);
	const struct type_member *members = type_members(typing->table, type);
	type_number kept;
	bool points;

	if (type->kind == TYPE_ARRAY && typing_type(typing, type->target)->size) {
		*offset %= typing_type(typing, type->target)->size;
		return type->target;
	}
	if (type->kind != TYPE_STRUCTURE && !is_maybe_uninit(type))
		return NO_TYPE;
	kept = slots_find_kept(typing->table, type, &points);
	if (kept != NO_TYPE && !points)
		return kept;
	for (size_t i = 0; i < type->member_count; i++) {
		uint64_t size = typing_type(typing, members[i].type)->size;

		if (members[i].offset <= *offset && *offset - members[i].offset < size &&
		    size >= typing->word) {
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
		number = typing_enter(typing, number, &offset);
	}
	return found;
}

struct error *typing_find_node(struct typing *typing, const struct link *link, struct linked *ret)
{
	struct memory_range range;
	allocation_id id;
	uint64_t hash;
	uint32_t node;

	if (typing->has_rust)
		TRY(typing_find_in_rust(typing, link, ret));
	if (typing->has_erased)
		TRY(typing_find_erased(typing, link, ret));
	if (!is_header(typing, ret->target))
		return NULL;
	hash = hash_add(hash_add(0, link->whole), link->offset);
	node = address_map_find(&typing->nodes, hash);
	if (node == NOT_IN_MAP) {
		node = told_node(typing, ret->target);
		if (node == NO_TYPE)
			node = search(typing, link->whole, link->offset);
		TRY(address_map_add(&typing->nodes, hash, node));
	}
	id = find_used(typing, link->value);
	if (node == NO_TYPE || id == NO_ALLOCATION)
		return NULL;
	range = range_of(typing, id);
	if (range.start == link->value && typing_fit_of_one(typing, range, node) == FIT_ONE)
		ret->target = node;
	return NULL;
}
