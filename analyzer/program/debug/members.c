#include "analyzer/program/debug/members.h"

#include "analyzer/program/debug/modules.h"
#include "analyzer/program/debug/types.h"

#include <dwarf.h>
#include <string.h>

enum { MOST_ENTRIES = 1 << 20, MOST_MEMBERS = 1 << 16, DEEPEST = 8 };

struct members {
	struct debug *debug;
	bool (*visit)(void *data, uint64_t offset, const char *name);
	void *data;
	size_t left; /* of members; nothing is as large */
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

static bool place_of(Dwarf_Die *member, uint64_t *ret)
{
	Dwarf_Attribute attribute;
	Dwarf_Word offset;

	if (!dwarf_attr(member, DW_AT_data_member_location, &attribute) ||
	    dwarf_formudata(&attribute, &offset) != 0)
		return false;
	*ret = offset;
	return true;
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
		uint64_t offset;

		if (members->left == 0)
			return false;
		members->left--;
		if (dwarf_tag(&member) != DW_TAG_member || !name || !place_of(&member, &offset))
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
	struct members members = { debug, visit, data, MOST_MEMBERS };
	struct debug_module *found = debug_find_module(debug, module->start);
	uint64_t bias;
	Dwarf *dwarf = found ? debug_module_dwarf(found, &bias) : NULL;
	Dwarf_Die structure;

	if (dwarf && find_structure(dwarf, type, &structure))
		visit_members(&members, &structure, 0, NULL, 0);
}
