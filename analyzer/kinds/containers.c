#include "analyzer/kinds/containers.h"

#include "analyzer/base/cleanup.h"
#include "analyzer/base/list.h"
#include "analyzer/base/macros.h"
#include "analyzer/base/text.h"
#include "analyzer/classify/type_names.h"

#include <string.h>

/* Containers whose nodes are of a template of their own: of libstdc++, and of libc++. */
static const struct nodes {
	const char *start;     /* of the node's type, in short */
	const char *of_values; /* whose nodes they are, if elements are no pairs */
	const char *of_pairs;  /* and if they are */
	const char *multi;     /* "std::multiset" and "multimap" have such nodes, too */
} node_types[] = {
	{ "std::_Rb_tree_node<", "std::set", "std::map", "std::multi" },
	{ "std::__detail::_Hash_node<", "std::unordered_set", "std::unordered_map",
	  "std::unordered_multi" },
	{ "std::_List_node<", "std::list" },
	{ "std::_Fwd_list_node<", "std::forward_list" },
	{ "std::__tree_node<", "std::set", "std::map", "std::multi" },
	{ "std::__hash_node<", "std::unordered_set", "std::unordered_map", "std::unordered_multi" },
	{ "std::__list_node<", "std::list" },
	{ "std::__forward_list_node<", "std::forward_list" },
};

/* Containers of rows of elements, by pattern. */
static const struct rows {
	const char *pattern, *container, *role;
} row_types[] = {
	{ "VectorBody", "std::vector", "body" },
	{ "DequeBlock", "std::deque", "block" },
};

static const struct rows *find_rows(pattern_number pattern)
{
	const char *name = pattern_name(pattern);

	for (size_t i = 0; i < COUNT_OF(row_types); i++)
		if (strcmp(name, row_types[i].pattern) == 0)
			return &row_types[i];
	return NULL;
}

bool container_is_known(const struct type_table *types, pattern_number pattern, struct typed *typed)
{
	const char *name = type_get(types, typed->type)->name;

	/* Elements that were taken out leave words that are of no type. */
	if (typed->fit > FIT_REGION && typed->fit != FIT_TABLE && !typed_is_like(*typed) &&
	    find_rows(pattern)) {
		typed->fit = FIT_ARRAY;
		return true;
	}
	/* Most types are no nodes, so this test comes first. */
	return typed->fit == FIT_ONE && name && strncmp(name, "std::_", 6) == 0 &&
	       strstr(name, "_node<");
}

/* The end of the first template argument. */
static const char *argument_end(const char *argument)
{
	int depth = 0;

	for (; *argument; argument++) {
		if (*argument == '<' || *argument == '(')
			depth++;
		else if (depth == 0 && (*argument == ',' || *argument == '>'))
			break;
		else if (*argument == '>' || *argument == ')')
			depth--;
	}
	return argument;
}

/*
 * The text of "std::pair<const int, Rule*>", or a pair of libc++: the key without const, and the
 * rest.
 */
static char *pair_text(const char *element)
{
	static const char *const pairs[] = { "std::pair<", "std::__value_type<",
					     "std::__hash_value_type<" };

	for (size_t i = 0; i < COUNT_OF(pairs); i++) {
		const char *key = element + strlen(pairs[i]), *end;
		size_t length;

		if (strncmp(element, pairs[i], strlen(pairs[i])) != 0)
			continue;
		if (strncmp(key, "const ", 6) == 0)
			key += 6;
		end = argument_end(key);
		length = (size_t)(end - key);
		if (length > 6 && strncmp(end - 6, " const", 6) == 0)
			length -= 6;
		return *end ? format_text("%.*s%.*s", (int)length, key,
					  (int)(strrchr(end, '>') - end), end)
			    : NULL;
	}
	return NULL;
}

static char *node_text(const struct type_table *types, const char *name)
{
	list_for_each(nodes, node_types, COUNT_OF(node_types)) {
		const char *first = name + strlen(nodes->start), *container = nodes->of_values;
		_cleanup_(free) char *element = NULL, *pair = NULL, *multi = NULL;

		if (strncmp(name, nodes->start, strlen(nodes->start)) != 0)
			continue;
		element = strndup(first, (size_t)(argument_end(first) - first));
		pair = element && nodes->of_pairs ? pair_text(element) : NULL;
		if (pair)
			container = nodes->of_pairs;
		multi = format_text("%s%s<", nodes->multi ? nodes->multi : "",
				    pair ? "map" : "set");
		if (!element || !multi)
			return NULL;
		return format_text("%s%s<%s> node", container,
				   nodes->multi && type_begins(types, multi) ? " or its multi form"
									     : "",
				   pair ? pair : element);
	}
	return strdup(name);
}

/* In short, with a blank before each asterisk, as types have it. */
static char *spaced_name(const char *text)
{
	_cleanup_(free) char *name = short_name(text);
	char *ret = name ? malloc(2 * strlen(name) + 1) : NULL, *end = ret;

	for (const char *letter = name; ret && *letter; letter++) {
		if (*letter == '*' && letter > name && !strchr(" *<,(", letter[-1]))
			*end++ = ' ';
		*end++ = *letter;
	}
	if (ret)
		*end = '\0';
	return ret;
}

const char *container_name(const struct type_table *types, pattern_number pattern,
			   struct typed typed)
{
	_cleanup_(free) char *name = NULL;
	const char *text = type_text(types, typed.type, "", "");
	const struct rows *rows;
	char *ret;

	name = text ? spaced_name(text) : NULL;
	if (!name)
		return NULL;
	rows = typed.fit == FIT_ARRAY ? find_rows(pattern) : NULL;
	ret = rows ? format_text("%s<%s> %s", rows->container, name, rows->role)
		   : node_text(types, name);
	return ret ? type_keep(types, ret) : NULL;
}
