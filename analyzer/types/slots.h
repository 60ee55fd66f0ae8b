/*
 * The pointers in values of a type: their offsets and targets.
 *
 * Structures within structures, arrays and base classes are taken apart, once for each type that is
 * asked for.
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/image/image.h"
#include "analyzer/program/debug/type_table.h"

enum { NO_MEMBER = UINT32_MAX, NO_TAG = UINT32_MAX, NO_SLOTS_YET = UINT32_MAX };

/*
 * A member is known by its number in the table. Choices at one place, as the members of a union,
 * share the number of the union.
 */
struct slot {
	uint32_t offset;    /* in bytes */
	type_number target; /* NO_TYPE: of "void *" */
	uint32_t member;    /* that the pointer is, or is in; NO_MEMBER: an array's element */
	uint32_t way;	    /* a hash of all members around it; 0: an array's element */
	uint32_t place;	    /* in the outermost union that it is in */
	uint32_t tag;	    /* offset of the byte that may say what stands there, or NO_TAG */
	uint32_t next_tag;  /* that of another number of the same structure; or the same */
	uint32_t kind;	    /* offset of the pointer that may lead to a static table, or NO_TAG */
	bool is_choice;	    /* something else may stand there: a member of a union */
	bool is_pointer;    /* whatever stands there is a pointer: all members of the union are */
	uint8_t guard_count;
	uint32_t guards; /* the first; it stands there only if all agree: see slot_stands() */
};

struct slot_range {
	uint32_t first, count;
};

/* All is borrowed from the table, which outlives it. */
struct slot_table {
	const struct type_table *types;
	unsigned int word; /* bytes of one */
	ARRAY(struct slot) slots;
	ARRAY(struct slot_range) ranges; /* by type */
	/* How far before the slot a number stands, and which it is: modulo 2^32, in offset. */
	ARRAY(struct type_variant) guards;
};

struct error *slot_table_init(struct slot_table *table, const struct type_table *types,
			      struct memory_account *account);
void slot_table_deinit(struct slot_table *table);

/* Find the slots of values of the type, once. */
struct error *slots_find(struct slot_table *table, type_number type);

/*
 * The slots of a value of the type, by offset; those of an array without bounds are of one element.
 * They are valid until the next question.
 */
static inline struct error *slots_of(struct slot_table *table, type_number type,
				     const struct slot **ret, size_t *ret_count)
{
	const struct slot_range *range = &table->ranges.items[type];
	struct error *error = range->first == NO_SLOTS_YET ? slots_find(table, type) : NULL;

	*ret = table->slots.items ? &table->slots.items[range->first] : NULL;
	*ret_count = table->slots.items ? range->count : 0;
	return error;
}

/*
 * The type that the bytes of libstdc++'s "__gnu_cxx::__aligned_membuf<shop::Item>" are kept for, in
 * nodes of containers and beside counts; NO_TYPE: it is none such, or has no name of its own.
 * *ret_points: it is a pointer to that.
 */
type_number slots_find_kept(const struct type_table *types, const struct data_type *type,
			    bool *ret_points);

/* Set *ret if a value of the type consists of slots only. */
struct error *slots_are_all(struct slot_table *table, type_number type, bool *ret);

bool slot_guards_agree(const struct slot_table *table, const struct image *image,
		       const struct slot *slot, uint64_t address);

/* Like slot_stands(), for a member of a Rust enumeration, in a value at the address. */
bool variant_stands(const struct type_table *types, const struct image *image,
		    const struct type_variant *variant, uint64_t address);

/*
 * True if the slot is active in the value at the address: its std::variant, std::optional or
 * enumeration of Rust says so, or it is in none.
 */
static inline bool slot_stands(const struct slot_table *table, const struct image *image,
			       const struct slot *slot, uint64_t address)
{
	return slot->guard_count == 0 || slot_guards_agree(table, image, slot, address);
}

/* The first slot at that offset of a value of the type; NULL: there is none. */
const struct slot *slot_at(struct slot_table *table, type_number type, uint64_t offset);

/*
 * The byte of a structure that may say what it is the beginning of: that of its first small number,
 * such as an enumeration. NO_TAG: it has none.
 */
uint32_t tag_of(const struct type_table *types, const struct data_type *type);

/*
 * The first pointer of a structure to another one: it says what the structure is where it leads to
 * a static table, as of operations. NO_TAG: there is none.
 */
uint32_t kind_pointer_of(const struct type_table *types, type_number number);

/* Like tag_of(), for the small number behind the one whose byte is the tag; tag: there is none. */
uint32_t next_tag_of(const struct type_table *types, const struct data_type *type, uint32_t tag);
