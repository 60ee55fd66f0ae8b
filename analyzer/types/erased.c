#include "analyzer/types/typing_parts.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/macros.h"
#include "analyzer/program/debug/functions.h"

#include <string.h>

/*
 * Finds the types of values in std::function and std::any: the function that manages the value is a
 * member of a template whose argument is the type.
 *
 *	std::_Function_base	{ two words; _M_manager }	std::_Function_handler<long(int), T>
 *	std::any		{ _M_manager; a word }		std::any::_Manager_external<T>
 *
 * Small values stand in these words, others are behind the first of them. In libc++ a std::function
 * has a pointer to an object, within or outside, whose class is the one of its virtual functions.
 */

enum { DEEPEST = 24 };

/*
 * The holders, in words: the one that may be the pointer is at offset, and the manager's address so
 * far on.
 */
static const struct holder {
	const char *name;
	uint64_t offset;
	int64_t manager;
	uint64_t room; /* for a small value */
} holders[] = {
	{ "std::_Function_base", 0, 2, 2 },
	{ "std::any", 1, -1, 1 },
	{ "std::__1::any", 1, -1, 3 },
};

/*
 * Managing functions: members of these class templates, and the name of the argument that is the
 * type.
 */
static const struct manager {
	const char *class, *argument;
	enum { OUTSIDE, INSIDE, EITHER } where;
} managers[] = {
	{ "_Function_handler<", "_Functor", EITHER }, { "_Manager_external<", "_Tp", OUTSIDE },
	{ "_Manager_internal<", "_Tp", INSIDE },      { "_LargeHandler<", "_Tp", OUTSIDE },
	{ "_SmallHandler<", "_Tp", INSIDE },
};

/* In libc++: the declared type of a std::function's pointer, and its actual target. */
static const char base_object[] = "std::__1::__function::__base<";
static const char object[] = "__func<";

bool type_is_erased(const char *name)
{
	if (strncmp(name, base_object, sizeof(base_object) - 1) == 0)
		return true;
	for (size_t i = 0; i < COUNT_OF(holders); i++)
		if (strcmp(name, holders[i].name) == 0)
			return true;
	return false;
}

/* The number of the innermost holder whose pointer the word is; COUNT_OF(holders): it is in none.
 */
static uint32_t search_holder(const struct typing *typing, type_number number, uint64_t offset)
{
	uint32_t found = COUNT_OF(holders);

	for (size_t i = 0; i < DEEPEST && number != NO_TYPE; i++) {
		const char *name = typing_type(typing, number)->name;

		for (uint32_t j = 0; name && j < COUNT_OF(holders); j++)
			if (offset == holders[j].offset * typing->word &&
			    strcmp(name, holders[j].name) == 0)
				found = j;
		number = typing_enter(typing, number, &offset);
	}
	return found;
}

/* True if all members are numbers and pointers, which are copied as they are. */
static bool has_plain_members(const struct typing *typing, const struct data_type *type)
{
	const struct type_member *members = type_members(typing->table, type);

	for (size_t i = 0; i < type->member_count; i++) {
		enum type_kind kind = typing_type(typing, members[i].type)->kind;

		if (kind != TYPE_POINTER && kind != TYPE_NUMBER && kind != TYPE_CHARACTER)
			return false;
	}
	return true;
}

/* True if the captures of a closure are plain, so that it is stored inside if there is room. */
static bool is_plain_closure(const struct typing *typing, const struct data_type *type)
{
	return type->kind == TYPE_STRUCTURE && (!type->name || strstr(type->name, "lambda")) &&
	       has_plain_members(typing, type);
}

/* Set *ret if the pointer's target looks like a value of the type. */
static struct error *leads_to(struct typing *typing, const struct link *link, type_number type,
			      bool *ret)
{
	allocation_id id = find_used(typing, link->value);
	struct conformity conformity;

	*ret = false;
	if (id == NO_ALLOCATION || range_of(typing, id).start != link->value ||
	    typing_fit_of_one(typing, range_of(typing, id), type) != FIT_ONE)
		return NULL;
	TRY(typing_conforms(typing, link->value, type, &conformity));
	*ret = !conformity.is_violated && conformity.confirmed > 0;
	return NULL;
}

static struct error *find_held(struct typing *typing, const struct link *link,
			       const struct holder *holder, const struct manager *manager,
			       type_number number, struct linked *ret)
{
	const struct data_type *type = typing_type(typing, number);
	bool is_outside = manager->where == OUTSIDE ||
			  (manager->where == EITHER && type->size > holder->room * typing->word);
	bool is_inside = !is_outside && (manager->where == INSIDE || type->kind == TYPE_POINTER ||
					 is_plain_closure(typing, type));

	if (!is_outside && !is_inside)
		TRY(leads_to(typing, link, number, &is_outside));
	if (!is_outside && !is_inside)
		return NULL;
	ret->target = number;
	ret->is_told = is_outside;
	ret->inside = is_inside ? link->address : 0;
	return NULL;
}

/* The type and the number of the manager at that address of code, as one number; 0: it is none. */
static struct error *find_manager(struct typing *typing, uint64_t address, uint32_t *ret)
{
	uint64_t hash = hash_add(4, address);

	*ret = address_map_find(&typing->nodes, hash);
	if (*ret != NOT_IN_MAP)
		return NULL;
	*ret = 0;
	for (uint32_t i = 0; *ret == 0 && i < COUNT_OF(managers); i++) {
		type_number type = debug_class_argument(typing->input.debug, typing->table, address,
							managers[i].class, managers[i].argument);

		if (type != NO_TYPE && type < UINT32_MAX / COUNT_OF(managers) - 1)
			*ret = type * (uint32_t)COUNT_OF(managers) + i;
	}
	return address_map_add(&typing->nodes, hash, *ret);
}

/* The class of the object at an address, by a function of its vtable. */
static struct error *find_object_class(struct typing *typing, uint64_t address, type_number *ret)
{
	enum { FUNCTIONS = 5 };
	uint64_t vtable, hash, function;

	*ret = NO_TYPE;
	if (!read_word(typing, address, &vtable))
		return NULL;
	hash = hash_add(5, vtable);
	*ret = address_map_find(&typing->nodes, hash);
	if (*ret != NOT_IN_MAP)
		return NULL;
	*ret = NO_TYPE;
	for (uint64_t i = 0; *ret == NO_TYPE && i < FUNCTIONS; i++)
		if (read_word(typing, vtable + i * typing->word, &function))
			*ret = debug_class_of(typing->input.debug, typing->table, function, object);
	return address_map_add(&typing->nodes, hash, *ret);
}

static struct error *find_object(struct typing *typing, const struct link *link, struct linked *ret)
{
	enum { ROOM = 4 }; /* words before the pointer */
	type_number class;

	TRY(find_object_class(typing, link->value, &class));
	if (class == NO_TYPE)
		return NULL;
	ret->target = class;
	ret->is_told = true;
	ret->inside = link->address - link->value <= ROOM * typing->word ? link->value : 0;
	return NULL;
}

struct error *typing_find_erased(struct typing *typing, const struct link *link, struct linked *ret)
{
	const char *name = typing_type(typing, ret->target)->name;
	uint64_t hash = hash_add(hash_add(3, link->whole), link->offset), manager;
	uint32_t known, found;

	if (name && strncmp(name, base_object, sizeof(base_object) - 1) == 0)
		return find_object(typing, link, ret);
	if (ret->target != NO_TYPE)
		return NULL;
	known = address_map_find(&typing->nodes, hash);
	if (known == NOT_IN_MAP) {
		known = search_holder(typing, link->whole, link->offset);
		TRY(address_map_add(&typing->nodes, hash, known));
	}
	if (known == COUNT_OF(holders) ||
	    !read_word(typing,
		       link->address + (uint64_t)(holders[known].manager * (int64_t)typing->word),
		       &manager))
		return NULL;
	TRY(find_manager(typing, manager, &found));
	return found ? find_held(typing, link, &holders[known],
				 &managers[found % COUNT_OF(managers)],
				 found / (uint32_t)COUNT_OF(managers), ret)
		     : NULL;
}
