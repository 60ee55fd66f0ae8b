#include "analyzer/kinds/library_values.h"

#include "analyzer/base/macros.h"

#include <string.h>

enum { DEEPEST = 10 };

/* Places of a number that says how many elements there are, or of two pointers. */
static const struct library {
	const char *start; /* of the type's name */
	const char *length;
	const char *elements; /* member that is a pointer; "": any; NULL: none */
	bool is_text;
	bool has_end; /* length is a pointer, to behind the last element */
} libraries[] = {
	{ "std::__cxx11::basic_string<char,", "_M_string_length", "_M_p", true, false },
	{ "std::basic_string_view<char,", "_M_len", "_M_str", true, false },
	{ "std::vector<", "_M_finish", "_M_start", false, true },
	{ "std::map<", "_M_node_count", NULL, false, false },
	{ "std::set<", "_M_node_count", NULL, false, false },
	{ "std::multimap<", "_M_node_count", NULL, false, false },
	{ "std::multiset<", "_M_node_count", NULL, false, false },
	{ "std::unordered_", "_M_element_count", NULL, false, false },
	{ "std::__cxx11::list<", "_M_size", NULL, false, false },
	{ "alloc::string::String", "len", "", true, false },
	{ "&str", "length", "", true, false },
	{ "alloc::boxed::Box<str", "length", "", true, false },
	{ "alloc::vec::Vec<", "len", "", false, false },
	{ "alloc::collections::vec_deque::VecDeque<", "len", "", false, false },
	{ "alloc::collections::btree::map::BTreeMap<", "length", NULL, false, false },
	{ "alloc::collections::btree::set::BTreeSet<", "length", NULL, false, false },
	{ "std::collections::hash::map::HashMap<", "items", NULL, false, false },
	{ "std::collections::hash::set::HashSet<", "items", NULL, false, false },
};

static const struct library *find_library(const struct data_type *type)
{
	for (size_t i = 0; type->kind == TYPE_STRUCTURE && type->name && i < COUNT_OF(libraries);
	     i++)
		if (strncmp(type->name, libraries[i].start, strlen(libraries[i].start)) == 0)
			return &libraries[i];
	return NULL;
}

bool library_value_is(const struct data_type *type)
{
	return find_library(type) != NULL;
}

/*
 * The address in the structure of the first member of that kind and name, if any is asked for, and
 * its type; NULL: it has none.
 */
static const struct data_type *find_inner(const struct type_table *types,
					  const struct data_type *type, enum type_kind kind,
					  const char *name, size_t depth, uint64_t *address)
{
	const struct type_member *members = type_members(types, type);

	for (size_t i = 0; i < type->member_count && depth < DEEPEST; i++) {
		const struct data_type *inner = type_get(types, members[i].type);
		uint64_t start = *address + members[i].offset;

		if (inner->kind != kind ||
		    (*name && !(members[i].name && strcmp(members[i].name, name) == 0)))
			inner = inner->kind == TYPE_STRUCTURE
					? find_inner(types, inner, kind, name, depth + 1, &start)
					: NULL;
		if (inner) {
			*address = start;
			return inner;
		}
	}
	return NULL;
}

bool library_value_read(const struct type_table *types, const struct image *image,
			const struct data_type *type, uint64_t address, struct library_value *ret)
{
	const struct library *library = find_library(type);
	const struct data_type *pointer = NULL;
	uint64_t length_at = address, elements_at = address, size;

	if (!library ||
	    !find_inner(types, type, library->has_end ? TYPE_POINTER : TYPE_NUMBER, library->length,
			0, &length_at) ||
	    !image_read_word(image, length_at, &ret->length))
		return false;
	ret->is_text = library->is_text;
	ret->elements = 0;
	if (library->elements)
		pointer = find_inner(types, type, TYPE_POINTER, library->elements, 0, &elements_at);
	if (library->elements && (!pointer || !image_read_word(image, elements_at, &ret->elements)))
		return false;
	if (!library->has_end || !pointer)
		return true;
	size = type_get(types, pointer->target)->size;
	if (!size || ret->length < ret->elements)
		return false;
	ret->length = (ret->length - ret->elements) / size;
	return true;
}
