/*
 * Types and variables of a program: see type_table.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct module;

typedef uint32_t type_number;

enum { NO_TYPE = 0 }; /* void, or not told */

enum type_kind {
	TYPE_NONE,
	TYPE_NUMBER,	/* integers, floating point, enumerations, members of classes */
	TYPE_CHARACTER, /* of a byte */
	TYPE_POINTER,	/* references, too */
	TYPE_FUNCTION,
	TYPE_ARRAY,
	TYPE_STRUCTURE,
	TYPE_UNION,
	TYPE_DECLARED, /* a structure whose members nothing tells */
	TYPE_KINDS
};

/* The interpretation of the bits of a TYPE_NUMBER or TYPE_CHARACTER. */
enum number_form {
	FORM_UNSIGNED,
	FORM_SIGNED,
	FORM_FLOAT,
	FORM_BOOLEAN,
};

struct data_type {
	const char *name;   /* NULL: it has none */
	uint64_t size;	    /* in bytes; 0: not told, as of an array without bounds */
	uint64_t count;	    /* elements of an array; 0: not told */
	type_number target; /* the pointer's target, or the array's element */
	uint32_t first_member, member_count; /* of an enumeration: its enumerators */
	uint32_t first_bound, bound_count;   /* of an array of several dimensions; else 0 */
	enum type_kind kind;
	enum number_form form;
	bool is_tagged; /* C calls it "struct NAME" */
};

struct type_member {
	const char *name; /* NULL: it has none, as a base class */
	uint32_t offset;  /* in bytes; of an enumerator: its value */
	type_number type;
	bool is_base;
	bool is_variant;    /* of an enumeration of Rust: stands where others do */
	uint32_t variant;   /* plus 1, which says when it stands there; 0: not told */
	uint8_t bit_size;   /* 0: it is no bit field */
	uint8_t bit_offset; /* of its lowest bit in the byte at offset */
};

/*
 * When a variant stands in a value: where the number at offset in that is the value, or none of
 * those of other_count others; or no less than the value.
 */
struct type_variant {
	uint64_t value;
	uint32_t offset;
	uint32_t first_other, other_count; /* 0: it has a value of its own */
	uint8_t size;			   /* of the number; 0: nothing tells */
	bool or_more;			   /* of what a counted array has */
};

/* A variable in static memory, or thread-local. */
struct type_variable {
	const char *name;
	const struct module *module;
	uint64_t address;     /* thread-local: offset in the variables of the module */
	uint64_t size;	      /* of what is left of it, at most */
	const char *file;     /* of its unit, as the compiler was given it; or NULL */
	const char *function; /* which alone sees it; or NULL */
	type_number type;
	bool is_thread_local;
};
