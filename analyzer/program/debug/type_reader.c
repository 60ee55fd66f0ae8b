#include "analyzer/program/debug/type_reader.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/sort.h"
#include "analyzer/program/debug/types.h"

#include <dwarf.h>
#include <string.h>

/* No program has as many; a file may say so. */
enum {
	MOST_TYPES = 1 << 24,
	MOST_MEMBERS = 1 << 25,
	MOST_VARIABLES = 1 << 22,
	MOST_STEPS = 1 << 27, /* from entry to entry */
	STEPS_A_CHECK = 1024, /* steps between checks for an interruption */
	DEEPEST = 48,	      /* entries within each other */
};

struct scope {
	const struct scope *outer;
	const char *name;
};

void type_reader_init(struct type_reader *reader, struct debug *debug,
		      struct memory_account *account, struct progress *progress)
{
	*reader = (struct type_reader){ .debug = debug, .progress = progress };
	arrays_use(account, &reader->raws, &reader->members, &reader->variants, &reader->variables,
		   &reader->entries, &reader->bounds, &reader->declared, &reader->known);
}

void type_reader_deinit(struct type_reader *reader)
{
	arrays_release(&reader->raws, &reader->members, &reader->variants, &reader->variables,
		       &reader->entries, &reader->bounds, &reader->declared);
	table_release(&reader->known);
}

static uint64_t address_of(const Dwarf_Die *entry)
{
	return (uint64_t)(uintptr_t)entry->addr;
}

static uint64_t type_address(Dwarf_Die *entry)
{
	Dwarf_Attribute attribute;
	Dwarf_Die type;

	return dwarf_attr(entry, DW_AT_type, &attribute) && dwarf_formref_die(&attribute, &type)
		       ? address_of(&type)
		       : 0;
}

static bool number_of(Dwarf_Die *entry, unsigned int name, uint64_t *ret)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (!dwarf_attr(entry, name, &attribute) || dwarf_formudata(&attribute, &value) != 0)
		return false;
	*ret = value;
	return true;
}

/* "shop::Order<int>", kept; NULL: memory is short. */
static const char *name_within(struct type_reader *reader, const struct scope *scope,
			       const char *name)
{
	const char *parts[DEEPEST];
	char text[512];
	size_t count = 0, used = 0;

	for (; scope && count < DEEPEST; scope = scope->outer)
		if (scope->name)
			parts[count++] = scope->name;
	while (count-- > 0 && used < sizeof(text))
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s::", parts[count]);
	if (used >= sizeof(text))
		used = 0;
	text[used] = '\0';
	return name_pool_print(&reader->debug->names, "%s%s", text, name);
}

/* NULL: the entry has no name, or memory is short. */
static const char *full_name(struct type_reader *reader, const struct scope *scope,
			     Dwarf_Die *entry)
{
	const char *name = dwarf_diename(entry);

	return name ? name_within(reader, scope, name) : NULL;
}

static struct error *add_entry(struct type_reader *reader, Dwarf_Die *entry, size_t number)
{
	return array_append(&reader->entries,
			    (struct entry){ address_of(entry), (uint32_t)number });
}

static struct error *add_raw(struct type_reader *reader, Dwarf_Die *entry, struct raw raw)
{
	struct error *error = array_append(&reader->raws, raw);

	return error ? error : add_entry(reader, entry, reader->raws.count - 1);
}

static enum number_form form_of(uint64_t encoding)
{
	switch (encoding) {
	case DW_ATE_boolean:
		return FORM_BOOLEAN;
	case DW_ATE_float:
		return FORM_FLOAT;
	case DW_ATE_signed:
	case DW_ATE_signed_char:
		return FORM_SIGNED;
	default:
		return FORM_UNSIGNED;
	}
}

/* Numbers that characters are made of are text where a pointer leads to them. */
static struct error *read_base(struct type_reader *reader, Dwarf_Die *entry)
{
	uint64_t size = 0, encoding = 0;

	number_of(entry, DW_AT_byte_size, &size);
	number_of(entry, DW_AT_encoding, &encoding);
	return add_raw(reader, entry,
		       (struct raw){
			       .kind = size == 1 && encoding != DW_ATE_boolean ? TYPE_CHARACTER
									       : TYPE_NUMBER,
			       .form = (uint8_t)form_of(encoding),
			       .name = dwarf_diename(entry),
			       .size = size,
		       });
}

/* The element count is enough for one dimension. */
static struct error *add_bounds(struct type_reader *reader, const uint64_t *bounds, size_t count,
				uint32_t *ret_first)
{
	*ret_first = (uint32_t)reader->bounds.count;
	for (size_t i = 0; count > 1 && i < count; i++)
		TRY(array_append(&reader->bounds, bounds[i]));
	return NULL;
}

static struct error *read_array(struct type_reader *reader, Dwarf_Die *entry)
{
	uint64_t count = 1, bound, bounds[MOST_LINKS];
	bool is_bounded = false;
	size_t dimensions = 0;
	uint32_t first_bound;
	Dwarf_Die range;

	if (dwarf_child(entry, &range) == 0)
		do {
			if (dwarf_tag(&range) != DW_TAG_subrange_type)
				continue;
			is_bounded = true;
			if (number_of(&range, DW_AT_count, &bound))
				;
			else if (number_of(&range, DW_AT_upper_bound, &bound))
				bound++;
			else
				bound = 0;
			if (__builtin_mul_overflow(count, bound, &count))
				count = 0;
			bounds[dimensions++] = bound;
		} while (dimensions < MOST_LINKS && dwarf_siblingof(&range, &range) == 0);
	TRY(add_bounds(reader, bounds, dimensions, &first_bound));
	return add_raw(reader, entry,
		       (struct raw){
			       .kind = TYPE_ARRAY,
			       .target = type_address(entry),
			       .count = is_bounded ? count : 0,
			       .first_bound = first_bound,
			       .bound_count = dimensions > 1 ? (uint32_t)dimensions : 0,
		       });
}

/* Before DWARF 4, bits are counted from the highest one of the storage unit. */
static void read_bits(Dwarf_Die *entry, struct raw_member *member, uint64_t *offset)
{
	uint64_t size, before, storage = 0, end;
	Dwarf_Die type;

	if (!number_of(entry, DW_AT_bit_size, &size) || size == 0 || size > 64)
		return;
	member->bit_size = (uint8_t)size;
	if (number_of(entry, DW_AT_data_bit_offset, &before)) {
		*offset = before / 8;
		member->bit_offset = before % 8;
	} else if (number_of(entry, DW_AT_bit_offset, &before)) {
		if (!number_of(entry, DW_AT_byte_size, &storage) && entry_type(entry, &type))
			dwarf_aggregate_size(&type, &storage);
		if (storage > 8 || before > storage * 8 || size > storage * 8 - before)
			return;
		end = storage * 8 - before - size;
		*offset += end / 8;
		member->bit_offset = end % 8;
	}
}

/* No discriminant selects the variant. */
#define NOT_TOLD UINT32_MAX

static struct error *add_members(struct type_reader *reader, Dwarf_Die *parent, uint32_t variant,
				 size_t depth);

/*
 * Add the member, unless it is in no fixed place, or in none at all. It stands there only for that
 * variant, whose number is one less.
 */
static struct error *add_member(struct type_reader *reader, Dwarf_Die *entry, uint32_t variant)
{
	struct raw_member member = {
		.name = dwarf_diename(entry),
		.type = type_address(entry),
		.is_base = dwarf_tag(entry) == DW_TAG_inheritance,
		.is_variant = variant != 0,
		.variant = variant == NOT_TOLD ? 0 : variant,
	};
	uint64_t offset = 0;

	if (dwarf_hasattr(entry, DW_AT_external) || dwarf_hasattr(entry, DW_AT_declaration))
		return NULL;
	if (dwarf_hasattr(entry, DW_AT_data_member_location) &&
	    !number_of(entry, DW_AT_data_member_location, &offset))
		return NULL;
	read_bits(entry, &member, &offset);
	if (offset > UINT32_MAX || reader->members.count >= MOST_MEMBERS)
		return NULL;
	member.offset = (uint32_t)offset;
	return array_append(&reader->members, member);
}

/* Returns false once there were too many entries, or the user interrupts. */
static bool count_step(struct type_reader *reader)
{
	if (reader->steps < MOST_STEPS && ++reader->steps % STEPS_A_CHECK == 0 &&
	    !progress_step(reader->progress, STEPS_A_CHECK))
		reader->steps = MOST_STEPS;
	return reader->steps < MOST_STEPS;
}

/* Values of more than 32 bits are left out. */
static struct error *add_enumerator(struct type_reader *reader, Dwarf_Die *entry)
{
	struct raw_member member = { .name = dwarf_diename(entry) };
	Dwarf_Attribute attribute;
	Dwarf_Sword value;

	if (!dwarf_attr(entry, DW_AT_const_value, &attribute) ||
	    dwarf_formsdata(&attribute, &value) != 0 || value < INT32_MIN || value > UINT32_MAX ||
	    reader->members.count >= MOST_MEMBERS)
		return NULL;
	member.offset = (uint32_t)value;
	return array_append(&reader->members, member);
}

/*
 * Go to the next entry beside this one. A damaged file may name one that stands before it, without
 * end: false, as where there is none.
 */
static bool go_on(struct type_reader *reader, Dwarf_Die *entry)
{
	uint64_t before = address_of(entry);

	return count_step(reader) && dwarf_siblingof(entry, entry) == 0 &&
	       address_of(entry) > before;
}

/* Read the number of a value of a Rust enumeration, if it has up to 64 bits. */
static bool read_variant_value(Dwarf_Die *entry, uint8_t size, uint64_t *ret)
{
	Dwarf_Attribute attribute;
	Dwarf_Sword value;

	if (!dwarf_attr(entry, DW_AT_discr_value, &attribute))
		return false;
	/* A constant of a form without a sign may be negative as well. */
	if (dwarf_formudata(&attribute, ret) != 0) {
		if (dwarf_formsdata(&attribute, &value) != 0)
			return false;
		*ret = (uint64_t)value;
	}
	if (size < sizeof(*ret))
		*ret &= (UINT64_C(1) << (8 * size)) - 1;
	return true;
}

/* Find the offset of the discriminant, which selects the variant; false if there is none. */
static bool find_discriminant(struct type_reader *reader, Dwarf_Die *part, struct type_variant *ret)
{
	Dwarf_Die child, type;
	Dwarf_Word size;
	uint64_t offset = 0;

	*ret = (struct type_variant){ 0 };
	if (!dwarf_hasattr(part, DW_AT_discr) || dwarf_child(part, &child) != 0)
		return false;
	do {
		if (dwarf_tag(&child) != DW_TAG_member)
			continue;
		number_of(&child, DW_AT_data_member_location, &offset);
		if (!entry_type(&child, &type) || dwarf_aggregate_size(&type, &size) != 0 ||
		    size == 0 || size > sizeof(uint64_t) || offset > UINT32_MAX)
			return false;
		*ret = (struct type_variant){ .offset = (uint32_t)offset, .size = (uint8_t)size };
		return true;
	} while (go_on(reader, &child));
	return false;
}

/*
 * The variants of a part, as far as they tell: first those of all, as one of them may stand where
 * the number is none of the others'.
 */
static struct error *add_variants(struct type_reader *reader, Dwarf_Die *part, size_t depth)
{
	size_t first = reader->variants.count, number = first;
	struct type_variant found;
	Dwarf_Die child;

	if (!find_discriminant(reader, part, &found) || dwarf_child(part, &child) != 0)
		return add_members(reader, part, NOT_TOLD, depth + 1);
	do {
		struct type_variant variant = found;

		if (dwarf_tag(&child) != DW_TAG_variant)
			continue;
		if (reader->variants.count >= MOST_MEMBERS)
			return NULL;
		if (!read_variant_value(&child, found.size, &variant.value))
			variant.first_other = (uint32_t)first, variant.other_count = UINT32_MAX;
		TRY(array_append(&reader->variants, variant));
	} while (go_on(reader, &child));
	for (size_t i = first; i < reader->variants.count; i++)
		if (reader->variants.items[i].other_count)
			reader->variants.items[i].other_count =
				(uint32_t)(reader->variants.count - first);
	if (dwarf_child(part, &child) != 0)
		return NULL;
	do {
		if (dwarf_tag(&child) == DW_TAG_variant && number < reader->variants.count)
			TRY(add_members(reader, &child, (uint32_t)++number, depth + 1));
	} while (go_on(reader, &child));
	return NULL;
}

static struct error *add_members(struct type_reader *reader, Dwarf_Die *parent, uint32_t variant,
				 size_t depth)
{
	struct error *error = NULL;
	Dwarf_Die child;

	if (depth == DEEPEST || dwarf_child(parent, &child) != 0)
		return NULL;
	do {
		switch (dwarf_tag(&child)) {
		case DW_TAG_member:
		case DW_TAG_inheritance:
			error = add_member(reader, &child, variant);
			break;
		case DW_TAG_enumerator:
			error = add_enumerator(reader, &child);
			break;
		case DW_TAG_variant_part:
			error = add_variants(reader, &child, depth + 1);
			break;
		case DW_TAG_variant:
			error = add_members(reader, &child, NOT_TOLD, depth + 1);
			break;
		default:
			break;
		}
	} while (!error && go_on(reader, &child));
	return error;
}

/* Hash the facts by which structures of one name differ. */
static uint64_t identify(const struct type_reader *reader, Dwarf_Die *entry, const struct raw *raw)
{
	uint64_t hash = hash_add(hash_add(raw->kind, raw->size), (uintptr_t)raw->name);
	int line = 0;

	dwarf_decl_line(entry, &line);
	hash = hash_add(hash, (uint64_t)line);
	if (raw->name)
		return hash;
	hash = hash_add(hash, raw->member_count);
	for (size_t i = 0; i < raw->member_count; i++) {
		const struct raw_member *member = &reader->members.items[raw->first_member + i];

		hash = hash_text(hash_add(hash, member->offset), member->name ? member->name : "");
	}
	return hash;
}

/* "main::(lambda of line 7)" for a structure of C++ that has no name and can be called; or NULL. */
static const char *lambda_name(struct type_reader *reader, const struct scope *scope,
			       Dwarf_Die *entry)
{
	char text[40];
	Dwarf_Die child;
	int line;

	if (reader->is_c || dwarf_decl_line(entry, &line) != 0 || dwarf_child(entry, &child) != 0)
		return NULL;
	do {
		const char *name =
			dwarf_tag(&child) == DW_TAG_subprogram ? dwarf_diename(&child) : NULL;

		if (name && (strcmp(name, "operator()") == 0 || strcmp(name, "~<lambda>") == 0)) {
			snprintf(text, sizeof(text), "(lambda of line %d)", line);
			return name_within(reader, scope, text);
		}
	} while (go_on(reader, &child));
	return NULL;
}

/* A structure, union or enumeration. */
static struct error *read_structure(struct type_reader *reader, Dwarf_Die *entry,
				    const struct scope *scope)
{
	int tag = dwarf_tag(entry);
	bool is_enumeration = tag == DW_TAG_enumeration_type;
	struct raw raw = {
		.kind = is_enumeration		   ? TYPE_NUMBER
			: tag == DW_TAG_union_type ? TYPE_UNION
						   : TYPE_STRUCTURE,
		.name = full_name(reader, scope, entry),
		.is_tagged = !is_enumeration && reader->is_c && dwarf_hasattr(entry, DW_AT_name),
		.first_member = (uint32_t)reader->members.count,
	};
	size_t first_variant = reader->variants.count;
	uint32_t number;
	uint64_t hash;

	number_of(entry, DW_AT_byte_size, &raw.size);
	if (dwarf_hasattr(entry, DW_AT_declaration)) {
		if (!is_enumeration)
			raw.kind = TYPE_DECLARED;
		return add_raw(reader, entry, raw);
	}
	if (!raw.name) {
		TRY(add_members(reader, entry, 0, 0));
		raw.member_count = (uint32_t)reader->members.count - raw.first_member;
	}
	hash = identify(reader, entry, &raw);
	number = address_map_find(&reader->known, hash);
	if (number != NOT_IN_MAP) {
		reader->members.count = raw.first_member;
		reader->variants.count = first_variant;
		return add_entry(reader, entry, number);
	}
	TRY(address_map_add(&reader->known, hash, (uint32_t)reader->raws.count));
	if (raw.name)
		TRY(add_members(reader, entry, 0, 0));
	else
		raw.name = lambda_name(reader, scope, entry);
	raw.member_count = (uint32_t)reader->members.count - raw.first_member;
	return add_raw(reader, entry, raw);
}

/* Read an index into .debug_addr, as split units use. */
static bool read_indexed(Dwarf_Attribute *location, const Dwarf_Op *operation, uint64_t *ret)
{
	Dwarf_Attribute named;
	Dwarf_Addr value;

	if (dwarf_getlocation_attr(location, operation, &named) != 0 ||
	    dwarf_formaddr(&named, &value) != 0)
		return false;
	*ret = value;
	return true;
}

/* Static memory, or an offset in the thread-local variables. */
static bool find_place(struct type_reader *reader, Dwarf_Die *entry, struct raw_variable *variable)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *operations;
	size_t count;
	uint8_t last;

	if (!dwarf_attr(entry, DW_AT_location, &attribute) ||
	    dwarf_getlocation(&attribute, &operations, &count) != 0 || count == 0 || count > 2)
		return false;
	variable->address = operations[0].number;
	last = operations[count - 1].atom;
	variable->is_thread_local = count == 2 && (last == DW_OP_GNU_push_tls_address ||
						   last == DW_OP_form_tls_address);
	/* The optimizer left the first member of it. */
	if (count == 2 && last == DW_OP_piece)
		variable->size = operations[1].number;
	else if (count == 2 && !variable->is_thread_local)
		return false;
	switch (operations[0].atom) {
	case DW_OP_addr:
		break;
	case DW_OP_const4u:
	case DW_OP_const8u:
		return variable->is_thread_local;
	case DW_OP_addrx:
	case DW_OP_GNU_addr_index:
	case DW_OP_constx:
	case DW_OP_GNU_const_index:
		if (!read_indexed(&attribute, &operations[0], &variable->address))
			return false;
		break;
	default:
		return false;
	}
	if (!variable->is_thread_local)
		variable->address += reader->bias;
	return true;
}

/* GCC declares a variable in its namespace, and defines it outside, without a mangled name. */
static struct error *keep_declared(struct type_reader *reader, Dwarf_Die *entry,
				   const struct scope *scope)
{
	const char *name;

	if (!scope || !dwarf_hasattr(entry, DW_AT_declaration) ||
	    dwarf_hasattr(entry, DW_AT_linkage_name) || reader->declared.count >= MOST_VARIABLES)
		return NULL;
	name = full_name(reader, scope, entry);
	return name ? array_append(&reader->declared,
				   (struct declared_name){ address_of(entry), name })
		    : NULL;
}

/* The declarations of a unit were read in order of their addresses. */
static const char *find_declared(const struct type_reader *reader, uint64_t address)
{
	const struct declared_name *names = reader->declared.items;
	size_t place = BISECT(i, 0, reader->declared.count, names[i].entry < address);

	return place < reader->declared.count && names[place].entry == address ? names[place].name
									       : NULL;
}

static const char *variable_name(struct type_reader *reader, const struct scope *scope,
				 Dwarf_Die *entry)
{
	const char *name = debug_entry_name(reader->debug, entry), *declared = NULL;
	Dwarf_Attribute attribute;
	Dwarf_Die declaration;

	if (!name || reader->function || strstr(name, "::"))
		return name;
	if (!dwarf_attr(entry, DW_AT_specification, &attribute))
		return scope ? full_name(reader, scope, entry) : name;
	if (dwarf_formref_die(&attribute, &declaration))
		declared = find_declared(reader, address_of(&declaration));
	return declared ? declared : name;
}

static struct error *read_variable(struct type_reader *reader, Dwarf_Die *entry,
				   const struct scope *scope)
{
	struct raw_variable variable = {
		.module = reader->module->module,
		.size = UINT64_MAX,
		.file = reader->file,
		.function = reader->function,
	};
	Dwarf_Die type;

	if (reader->variables.count >= MOST_VARIABLES)
		return NULL;
	if (!find_place(reader, entry, &variable))
		return keep_declared(reader, entry, scope);
	variable.type = entry_type(entry, &type) ? address_of(&type) : 0;
	variable.name = variable_name(reader, scope, entry);
	return variable.type && variable.name ? array_append(&reader->variables, variable) : NULL;
}

static struct error *read_entry(struct type_reader *reader, Dwarf_Die *entry,
				const struct scope *scope, size_t depth);

static struct error *read_below(struct type_reader *reader, Dwarf_Die *parent,
				const struct scope *scope, size_t depth)
{
	Dwarf_Die child;

	if (depth == DEEPEST || dwarf_child(parent, &child) != 0)
		return NULL;
	do
		TRY(read_entry(reader, &child, scope, depth + 1));
	while (reader->raws.count < MOST_TYPES && go_on(reader, &child));
	return NULL;
}

/* Its static variables have no other name than in it. */
static struct error *read_function(struct type_reader *reader, Dwarf_Die *entry,
				   const struct scope *scope, size_t depth)
{
	const char *around = reader->function;
	struct error *error;

	reader->function = dwarf_diename(entry);
	error = read_below(reader, entry, scope, depth);
	reader->function = around;
	return error;
}

static struct error *read_entry(struct type_reader *reader, Dwarf_Die *entry,
				const struct scope *scope, size_t depth)
{
	struct scope inner = { scope, NULL };
	struct error *error;

	/* In order of a tree each entry comes once, and behind the one before. */
	if (address_of(entry) <= reader->last)
		return NULL;
	reader->last = address_of(entry);
	switch (dwarf_tag(entry)) {
	case DW_TAG_base_type:
		return read_base(reader, entry);
	case DW_TAG_enumeration_type:
		return read_structure(reader, entry, scope);
	case DW_TAG_ptr_to_member_type: {
		struct raw raw = { .kind = TYPE_NUMBER, .name = dwarf_diename(entry) };

		number_of(entry, DW_AT_byte_size, &raw.size);
		return add_raw(reader, entry, raw);
	}
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		return add_raw(reader, entry,
			       (struct raw){ .kind = TYPE_POINTER,
					     .size = image_word_size(reader->debug->image),
					     .target = type_address(entry) });
	case DW_TAG_typedef:
	case DW_TAG_const_type:
	case DW_TAG_volatile_type:
	case DW_TAG_restrict_type:
	case DW_TAG_atomic_type:
	case DW_TAG_immutable_type:
		return add_raw(reader, entry,
			       (struct raw){ .kind = ALIAS,
					     .name = full_name(reader, scope, entry),
					     .target = type_address(entry) });
	case DW_TAG_array_type:
		return read_array(reader, entry);
	case DW_TAG_subroutine_type:
		return add_raw(reader, entry, (struct raw){ .kind = TYPE_FUNCTION });
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
		error = read_structure(reader, entry, scope);
		inner.name = dwarf_diename(entry);
		return error ? error : read_below(reader, entry, &inner, depth);
	case DW_TAG_variable:
		return read_variable(reader, entry, scope);
	case DW_TAG_namespace:
		inner.name = dwarf_diename(entry);
		return read_below(reader, entry, &inner, depth);
	case DW_TAG_subprogram:
		return read_function(reader, entry, scope, depth);
	case DW_TAG_lexical_block:
	case DW_TAG_module:
		return read_below(reader, entry, scope, depth);
	default:
		return NULL;
	}
}

static bool is_c(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
		return true;
	default:
		return false;
	}
}

static struct error *read_units(struct type_reader *reader, Dwarf *dwarf)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;

	while (reader->raws.count < MOST_TYPES && count_step(reader) &&
	       dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0) {
		debug_enter_split(reader->module, &die);
		reader->last = 0;
		reader->declared.count = 0;
		reader->is_c = is_c(&die);
		reader->file = dwarf_diename(&die);
		TRY(read_below(reader, &die, NULL, 0));
	}
	return NULL;
}

static struct error *read_module(struct type_reader *reader, struct debug_module *module)
{
	Dwarf *dwarf = debug_module_dwarf(module, &reader->bias), *shared;
	struct error *error;

	if (!dwarf)
		return NULL;
	reader->module = module;
	shared = dwarf_getalt(dwarf);
	error = shared ? read_units(reader, shared) : NULL;
	return error ? error : read_units(reader, dwarf);
}

static bool has_types(Elf *elf)
{
	GElf_Shdr header;

	return elf && (debug_section_find(elf, ".debug_info", &header) ||
		       debug_section_find(elf, ".zdebug_info", &header));
}

/* libdw takes its time. */
bool debug_has_types(struct debug_module *module)
{
	return has_types(debug_module_main(module)) || has_types(debug_module_separate(module));
}

static bool is_wanted(struct debug_module *module)
{
	static const char *const others[] = { "ld-linux", "libm.so", "libm-" };
	const char *name = module_name(module->module);

	for (size_t i = 0; i < COUNT_OF(others); i++)
		if (strncmp(name, others[i], strlen(others[i])) == 0)
			return false;
	return !module_is_libc(module->module) && debug_has_types(module);
}

struct debug_module *debug_typed_module(struct debug *debug, size_t number)
{
	const struct module *described = &debug->program->modules[number];
	struct debug_module *module = debug_find_module(debug, described->start);

	return module && module->module == described && is_wanted(module) ? module : NULL;
}

/* Say that no static variable of the module, from first on, is where its memory is, if so. */
static void check_places(struct type_reader *reader, const struct module *module, size_t first)
{
	size_t count = 0;

	for (size_t i = first; i < reader->variables.count; i++) {
		const struct raw_variable *variable = &reader->variables.items[i];

		/* Linkers have 0 or 1 less for what they left out. */
		if (variable->is_thread_local || variable->address - reader->bias + 1 <= 1)
			continue;
		if (variable->address - module->start < module->end - module->start)
			return;
		count++;
	}
	if (count > 0)
		findings_add(
			reader->debug->findings, FINDING_NOTE,
			"debug information of %s was read, but none of its %zu static variable%s has a place in its memory: what they refer to has no types",
			module_name(module), count, count > 1 ? "s" : "");
}

struct error *type_reader_read(struct type_reader *reader)
{
	const struct program *program = reader->debug->program;

	progress_begin(reader->progress, "reading types", 0);
	for (size_t i = 0; i < program->module_count; i++) {
		struct debug_module *module = debug_typed_module(reader->debug, i);
		size_t first = reader->variables.count;

		if (!module)
			continue;
		TRY(read_module(reader, module));
		check_places(reader, module->module, first);
	}
	return progress_check(reader->progress, 0);
}
