#include "analyzer/types/typing_parts.h"

#include "analyzer/base/budget.h"
#include "analyzer/base/bytes.h"
#include "analyzer/base/macros.h"
#include "analyzer/program/debug/functions.h"

#include <stdlib.h>
#include <string.h>

/*
 * Targets of pointers in Rust's library, by the names of types: elements of a Vec and of hash
 * tables are behind pointers to bytes; the value behind "dyn" has the type of its vtable. Names are
 * of Rust 1.60 to 1.95.
 */

enum { MOST_STEPS = 256 }; /* from a value to what is in it */

/* Holds the buffer of a Vec, VecDeque or String; its first argument is the element. */
static const char raw_vec[] = "alloc::raw_vec::RawVec<";
/* Holds the table of a HashMap or HashSet; likewise. */
static const char raw_table[] = "hashbrown::raw::RawTable<";

static bool begins_with(const char *name, const char *start)
{
	return strncmp(name, start, strlen(start)) == 0;
}

bool type_is_of_rust(const char *name)
{
	static const char *const names[] = { raw_vec, raw_table, "alloc::boxed::Box<",
					     "alloc::rc::Rc<", "alloc::sync::Arc<" };

	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (begins_with(name, names[i]))
			return true;
	return false;
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
static type_number find_type(const struct typing *typing, const char *name)
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
		text = strndup(target,
			       i == 0 ? typing_find_argument(target, 0, &target) : strlen(target));
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

/* ---- elements behind pointers to bytes */

/* Facts about such a pointer: the type of elements and, for a table, the offset of its mask. */
enum {
	IS_NEITHER = UINT32_MAX - 1,
	IS_MANY = UINT32_MAX - 2, /* alternatives of an enumeration say different things */
	MASK_SHIFT =
		27, /* how many words behind the pointer, plus MASK_BEFORE; 0: it is no table's */
	MASK_BEFORE = 8,
};

/* How many words the mask of a table stands behind its pointer; false: the structure has neither.
 */
static bool find_mask(const struct typing *typing, const struct data_type *type, int64_t *ret)
{
	const struct type_member *members = type_members(typing->table, type);
	const struct type_member *mask = NULL, *control = NULL;

	for (size_t i = 0; type->kind == TYPE_STRUCTURE && i < type->member_count; i++) {
		const char *name = members[i].name ? members[i].name : "";

		if (strcmp(name, "bucket_mask") == 0)
			mask = &members[i];
		else if (strcmp(name, "ctrl") == 0)
			control = &members[i];
	}
	if (!mask || !control)
		return false;
	*ret = ((int64_t)mask->offset - (int64_t)control->offset) / (int64_t)typing->word;
	return *ret > -MASK_BEFORE && *ret < MASK_BEFORE;
}

/* The type that the first argument of a template names. */
static type_number first_argument(const struct typing *typing, const char *arguments)
{
	const char *argument;
	size_t length = typing_find_argument(arguments, 0, &argument);
	_cleanup_(free) char *text = length ? strndup(argument, length) : NULL;

	return text ? find_type(typing, text) : NO_TYPE;
}

/* A value in which elements are looked for: its type, the offset of the pointer, its address. */
struct place_in {
	type_number type;
	uint64_t offset, address; /* 0: what stands in enumerations is not asked */
	type_number table;	  /* the element of the hash table that it is part of, or NO_TYPE */
	struct budget *budget;
};

static uint32_t search_elements(const struct typing *typing, struct place_in at);

/*
 * Search the alternatives of an enumeration that cover the offset; IS_MANY: several do, and the
 * active one is not checked.
 */
static uint32_t search_variants(const struct typing *typing, struct place_in at)
{
	const struct data_type *type = typing_type(typing, at.type);
	const struct type_member *members = type_members(typing->table, type);
	uint32_t found = IS_NEITHER;

	for (size_t i = 0; i < type->member_count; i++) {
		const struct type_variant *variant = type_variant(typing->table, &members[i]);
		uint64_t size = typing_type(typing, members[i].type)->size;
		struct place_in next = at;
		uint32_t one;

		if (members[i].offset > at.offset || at.offset - members[i].offset >= size ||
		    (at.address && variant &&
		     !variant_stands(typing->table, typing->input.image, variant, at.address)))
			continue;
		next.type = members[i].type;
		next.offset -= members[i].offset;
		next.address += at.address ? members[i].offset : 0;
		one = search_elements(typing, next);
		if (found != IS_NEITHER && one != found)
			return IS_MANY;
		found = one;
	}
	return found;
}

static bool has_variants(const struct typing *typing, const struct data_type *type)
{
	const struct type_member *members = type_members(typing->table, type);

	for (size_t i = 0; type->kind == TYPE_STRUCTURE && i < type->member_count; i++)
		if (members[i].is_variant)
			return true;
	return false;
}

static uint32_t search_elements(const struct typing *typing, struct place_in at)
{
	while (budget_take(at.budget) && at.type != NO_TYPE) {
		const struct data_type *type = typing_type(typing, at.type);
		const char *name = type->name ? type->name : "";
		uint64_t offset = at.offset;
		int64_t mask;

		if (begins_with(name, raw_vec))
			return first_argument(typing, name + sizeof(raw_vec) - 1);
		if (begins_with(name, raw_table))
			at.table = first_argument(typing, name + sizeof(raw_table) - 1);
		if (at.table != NO_TYPE && at.table < 1 << MASK_SHIFT &&
		    find_mask(typing, type, &mask))
			return at.table | (uint32_t)(mask + MASK_BEFORE) << MASK_SHIFT;
		if (has_variants(typing, type))
			return search_variants(typing, at);
		at.type = typing_enter(typing, at.type, &at.offset);
		at.address += at.address ? offset - at.offset : 0;
	}
	return IS_NEITHER;
}

bool hash_table_of(const struct allocation_index *index, struct memory_range range,
		   uint64_t element_size, struct hash_table *ret)
{
	/* The bytes of so many elements are compared at once, and those of the first come again. */
	static const uint64_t at_once[] = { 16, 8 };
	uint64_t size = range.end - range.start;

	for (size_t i = 0; element_size && i < COUNT_OF(at_once); i++) {
		uint64_t count = 1, elements, group = at_once[i];

		while (count <= size / 2 / (element_size + 1))
			count *= 2;
		elements = (count * element_size + group - 1) / group * group;
		if (elements + count + group > size) {
			count /= 2;
			elements = (count * element_size + group - 1) / group * group;
		}
		if (count && allocation_fits(index, range, elements + count + group, false)) {
			*ret = (struct hash_table){ range.start + elements, count };
			return true;
		}
	}
	return false;
}

/* True if the pointer points to the control bytes of the table that fills its allocation. */
static bool is_table(const struct typing *typing, const struct link *link, type_number element,
		     uint64_t mask_address)
{
	allocation_id id = find_used(typing, link->value);
	struct hash_table table;
	uint64_t mask;

	return id != NO_ALLOCATION && read_word(typing, mask_address, &mask) &&
	       hash_table_of(typing->input.index, range_of(typing, id),
			     typing_type(typing, element)->size, &table) &&
	       table.control == link->value && table.count == mask + 1;
}

/*
 * Vec's pointer is one to bytes since Rust 1.83. Elements without a type of their own are of none,
 * not bytes; so is what they do not fill.
 */
static void find_in_vec(const struct typing *typing, uint64_t address, type_number element,
			struct linked *ret)
{
	uint64_t size = typing_type(typing, element)->size;
	allocation_id id = find_used(typing, address);
	struct memory_range range;

	if (id == NO_ALLOCATION)
		return;
	range = range_of(typing, id);
	ret->target = size && allocation_fits(typing->input.index, range,
					      (range.end - range.start) / size * size, false)
			      ? element
			      : NO_TYPE;
}

static struct error *find_elements(struct typing *typing, const struct link *link,
				   struct linked *ret)
{
	uint64_t hash = hash_add(hash_add(1, link->whole), link->offset);
	uint32_t known = address_map_find(&typing->nodes, hash);
	struct budget budget = { MOST_STEPS };
	struct place_in at = { link->whole, link->offset, 0, NO_TYPE, &budget };
	int64_t mask;

	if (known == NOT_IN_MAP) {
		known = search_elements(typing, at);
		TRY(address_map_add(&typing->nodes, hash, known));
	}
	at.address = link->address - link->offset;
	budget.left = MOST_STEPS;
	if (known == IS_MANY)
		known = search_elements(typing, at);
	if (known == IS_NEITHER || known == IS_MANY)
		return NULL;
	if (known >> MASK_SHIFT == 0) {
		find_in_vec(typing, link->value, known, ret);
		return NULL;
	}
	mask = (int64_t)(known >> MASK_SHIFT) - MASK_BEFORE;
	known &= (UINT32_C(1) << MASK_SHIFT) - 1;
	if (is_table(typing, link, known,
		     link->address + (uint64_t)(mask * (int64_t)typing->word))) {
		ret->target = known;
		ret->is_table = true;
	}
	return NULL;
}

static bool is_byte(const struct typing *typing, type_number number)
{
	const struct data_type *type = typing_type(typing, number);

	return (type->kind == TYPE_NUMBER || type->kind == TYPE_CHARACTER) && type->size == 1;
}

/* ---- what is behind "dyn" */

/* Counts, and the value behind them. */
static const char *const counted[] = { "alloc::rc::RcInner<", "alloc::rc::RcBox<",
				       "alloc::sync::ArcInner<" };

static bool is_dyn(const char *name)
{
	return begins_with(name, "dyn ") || begins_with(name, "(dyn ");
}

/*
 * The beginning of the name of a type that counts references to "dyn" values; "": it is "dyn"
 * itself; NULL: neither.
 */
static const char *find_counts(const struct typing *typing, type_number number)
{
	const char *name = typing_type(typing, number)->name;

	if (!name)
		return NULL;
	if (is_dyn(name))
		return "";
	for (size_t i = 0; i < COUNT_OF(counted); i++)
		if (begins_with(name, counted[i]) && is_dyn(name + strlen(counted[i])))
			return counted[i];
	return NULL;
}

/* The word behind the pointer is the address of the vtable. */
static struct error *find_dyn(struct typing *typing, const struct link *link, const char *counts,
			      struct linked *ret)
{
	uint64_t vtable, hash;
	uint32_t known;
	char *name;

	if (!read_word(typing, link->address + typing->word, &vtable))
		return NULL;
	hash = hash_add(2, vtable);
	known = address_map_find(&typing->nodes, hash);
	if (known == NOT_IN_MAP) {
		known = debug_vtable_type(typing->input.debug, typing->table, vtable);
		TRY(address_map_add(&typing->nodes, hash, known));
	}
	if (known == NO_TYPE)
		return NULL;
	if (!*counts) {
		ret->target = known;
		return NULL;
	}
	if (!typing_type(typing, known)->name)
		return NULL;
	if (asprintf(&name, "%s%s>", counts, typing_type(typing, known)->name) < 0)
		return &error_no_memory;
	known = type_find(typing->table, name);
	free(name);
	if (known != NO_TYPE)
		ret->target = known;
	return NULL;
}

struct error *typing_find_in_rust(struct typing *typing, const struct link *link,
				  struct linked *ret)
{
	const char *counts;

	if (is_byte(typing, ret->target))
		return find_elements(typing, link, ret);
	counts = find_counts(typing, ret->target);
	return counts ? find_dyn(typing, link, counts, ret) : NULL;
}
