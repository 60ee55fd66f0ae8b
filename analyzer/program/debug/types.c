#include "analyzer/base/budget.h"
#include "analyzer/program/debug/debug_parts.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Nothing that people write is as deep, or has as many dimensions. */
enum { MOST_STEPS = 32, MOST_DIMENSIONS = 8, MOST_MEMBERS = 1 << 16, DEEPEST = 8 };

/* Types of a unit, at its top level. */
enum { MOST_ENTRIES = 1 << 20 };

static void add(struct type_path *path, const char *text)
{
	size_t left = sizeof(path->text) - path->used - 1;
	size_t length = strnlen(text, left);

	memcpy(path->text + path->used, text, length);
	path->used += length;
	path->text[path->used] = '\0';
}

static void add_number(struct type_path *path, const char *format, uint64_t number)
{
	char text[32];

	snprintf(text, sizeof(text), format, number);
	add(path, text);
}

bool entry_type(Dwarf_Die *entry, Dwarf_Die *ret)
{
	Dwarf_Attribute attribute;

	return dwarf_attr_integrate(entry, DW_AT_type, &attribute) &&
	       dwarf_formref_die(&attribute, ret);
}

/* A member's offset in its structure. A virtual base has no fixed one. */
static bool member_offset(Dwarf_Die *member, Dwarf_Word *ret)
{
	Dwarf_Attribute attribute;
	Dwarf_Word bits;

	*ret = 0;
	if (dwarf_attr(member, DW_AT_data_member_location, &attribute))
		return dwarf_formudata(&attribute, ret) == 0;
	if (dwarf_attr(member, DW_AT_data_bit_offset, &attribute) &&
	    dwarf_formudata(&attribute, &bits) == 0)
		*ret = bits / 8;
	return true;
}

static bool covers(Dwarf_Die *member, uint64_t offset, Dwarf_Die *ret_type, Dwarf_Word *ret_start)
{
	Dwarf_Word size;

	return !dwarf_hasattr(member, DW_AT_external) && member_offset(member, ret_start) &&
	       *ret_start <= offset && entry_type(member, ret_type) &&
	       dwarf_aggregate_size(ret_type, &size) == 0 && offset - *ret_start < size;
}

/*
 * The first member, or base class, that covers the offset. Of a union, all may. An empty base class
 * shares its place with a member, which is meant.
 */
static bool find_member(Dwarf_Die *type, int tag, uint64_t offset, Dwarf_Die *ret,
			Dwarf_Die *ret_type, Dwarf_Word *ret_start)
{
	Dwarf_Die member;
	size_t looked = 0;

	if (dwarf_child(type, &member) != 0)
		return false;
	do {
		if (dwarf_tag(&member) == tag && covers(&member, offset, ret_type, ret_start)) {
			*ret = member;
			return true;
		}
	} while (++looked < MOST_MEMBERS && dwarf_siblingof(&member, &member) == 0);
	return false;
}

static bool step_into_member(struct type_path *path, Dwarf_Die *type, uint64_t *offset)
{
	Dwarf_Die member, member_type;
	Dwarf_Word start;
	const char *name;

	if (find_member(type, DW_TAG_member, *offset, &member, &member_type, &start)) {
		name = dwarf_diename(&member);
		if (name) {
			add(path, ".");
			add(path, name);
		}
	} else if (!find_member(type, DW_TAG_inheritance, *offset, &member, &member_type, &start)) {
		return false;
	}
	*offset -= start;
	*type = member_type;
	return true;
}

/* How many elements a dimension has; 0 if that is not known. */
static Dwarf_Word dimension(Dwarf_Die *range)
{
	Dwarf_Attribute attribute;
	Dwarf_Word count;

	if (dwarf_attr_integrate(range, DW_AT_count, &attribute) &&
	    dwarf_formudata(&attribute, &count) == 0)
		return count;
	if (dwarf_attr_integrate(range, DW_AT_upper_bound, &attribute) &&
	    dwarf_formudata(&attribute, &count) == 0)
		return count + 1;
	return 0;
}

static bool step_into_element(struct type_path *path, Dwarf_Die *type, uint64_t *offset)
{
	Dwarf_Word counts[MOST_DIMENSIONS], size, within = 1, index;
	Dwarf_Die element, range;
	size_t dimensions = 0;

	if (!entry_type(type, &element) || dwarf_aggregate_size(&element, &size) != 0 ||
	    size == 0 || dwarf_child(type, &range) != 0)
		return false;
	do {
		if (dimensions == MOST_DIMENSIONS)
			return false;
		if (dwarf_tag(&range) == DW_TAG_subrange_type)
			counts[dimensions++] = dimension(&range);
	} while (dwarf_siblingof(&range, &range) == 0);
	index = *offset / size;
	for (size_t i = 1; i < dimensions; i++)
		if (__builtin_mul_overflow(within, counts[i], &within))
			return false;
	for (size_t i = 0; i < dimensions; i++) {
		if (within == 0)
			return false;
		add_number(path, "[%" PRIu64 "]", index / within);
		index %= within;
		if (i + 1 < dimensions)
			within = counts[i + 1] ? within / counts[i + 1] : 0;
	}
	*offset %= size;
	*type = element;
	return true;
}

static bool step(struct type_path *path, Dwarf_Die *type, uint64_t *offset)
{
	if (dwarf_peel_type(type, type) != 0)
		return false;
	switch (dwarf_tag(type)) {
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		return step_into_member(path, type, offset);
	case DW_TAG_array_type:
		return step_into_element(path, type, offset);
	default:
		return false;
	}
}

void type_path_add(struct type_path *path, Dwarf_Die *type, uint64_t offset)
{
	Dwarf_Die current = *type;

	for (size_t i = 0; i < MOST_STEPS; i++)
		if (!step(path, &current, &offset))
			break;
	if (offset)
		add_number(path, "+0x%" PRIx64, offset);
}

/* The members of a structure being visited. */
struct members {
	struct debug *debug;
	bool (*visit)(void *data, uint64_t offset, const char *name);
	void *data;
	struct budget left; /* of members; nothing is as large */
};

static bool is_structure(Dwarf_Die *entry)
{
	int tag = dwarf_tag(entry);

	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type;
}

/* The structure of that name in the unit, declared with its members. */
static bool find_in_unit(Dwarf_Die *unit, const char *name, Dwarf_Die *ret)
{
	Dwarf_Die entry;
	size_t looked = 0;

	if (dwarf_child(unit, &entry) != 0)
		return false;
	do {
		const char *found = is_structure(&entry) ? dwarf_diename(&entry) : NULL;

		if (found && strcmp(found, name) == 0 && dwarf_haschildren(&entry) > 0) {
			*ret = entry;
			return true;
		}
	} while (++looked < MOST_ENTRIES && dwarf_siblingof(&entry, &entry) == 0);
	return false;
}

static bool find_structure(Dwarf *dwarf, const char *name, Dwarf_Die *ret)
{
	Dwarf_Off offset = 0, next;
	size_t header;

	while (dwarf_nextcu(dwarf, offset, &next, &header, NULL, NULL, NULL) == 0) {
		Dwarf_Die unit;

		if (dwarf_offdie(dwarf, offset + header, &unit) && find_in_unit(&unit, name, ret))
			return true;
		if (next <= offset)
			return false;
		offset = next;
	}
	return false;
}

/* Returns false once there was enough. path is what it is in, or NULL. */
static bool visit_members(struct members *members, Dwarf_Die *structure, uint64_t start,
			  const char *path, unsigned int depth)
{
	Dwarf_Die member, type;

	if (depth == DEEPEST || dwarf_child(structure, &member) != 0)
		return true;
	do {
		const char *name = dwarf_diename(&member);
		Dwarf_Attribute attribute;
		Dwarf_Word offset;

		if (!budget_take(&members->left))
			return false;
		if (dwarf_tag(&member) != DW_TAG_member || !name ||
		    !dwarf_attr(&member, DW_AT_data_member_location, &attribute) ||
		    dwarf_formudata(&attribute, &offset) != 0)
			continue;
		name = name_pool_print(&members->debug->names, "%s%s%s", path ? path : "",
				       path ? "." : "", name);
		if (!name || !members->visit(members->data, start + offset, name))
			return false;
		if (entry_type(&member, &type) && dwarf_peel_type(&type, &type) == 0 &&
		    is_structure(&type) &&
		    !visit_members(members, &type, start + offset, name, depth + 1))
			return false;
	} while (dwarf_siblingof(&member, &member) == 0);
	return true;
}

void debug_visit_members(struct debug *debug, const struct module *module, const char *type,
			 bool (*visit)(void *data, uint64_t offset, const char *name), void *data)
{
	struct members members = { debug, visit, data, { MOST_MEMBERS } };
	struct debug_module *found = debug_find_module(debug, module->start);
	uint64_t bias;
	Dwarf *dwarf = found ? debug_module_dwarf(found, &bias) : NULL;
	Dwarf_Die structure;

	if (dwarf && find_structure(dwarf, type, &structure))
		visit_members(&members, &structure, 0, NULL, 0);
}
