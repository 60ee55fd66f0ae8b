/*
 * The functions of a program as its debug information has them: what they take and return, and
 * where their variables stand at each address of code. Those inlined into a function count as its
 * own.
 */
#pragma once

#include "analyzer/program/debug/type_table.h"

/* The most parameters that the ABI passes in registers. */
enum { MOST_PARAMETERS = 6 };

/* A variable, at addresses of code from start up to end, as the process has them. */
struct function_local {
	uint64_t start, end;
	int64_t offset; /* from the canonical frame address */
	type_number type;
	uint8_t in; /* the DWARF number of a register; NOT_A_REGISTER: it is in the frame */
};

struct function {
	uint64_t entry;	     /* of all of its pieces */
	uint64_t start, end; /* of this piece */
	type_number result;  /* NO_TYPE: void, or not told */
	uint32_t parameter_count;
	type_number parameters[MOST_PARAMETERS];
	bool is_of_library; /* the one of C++, whose functions allocate for their callers */
	const struct function_local *locals; /* by start, until the visit ends */
	size_t local_count;
};

/* Returns true to go on. */
typedef bool (*function_visit)(void *data, const struct function *function);

/*
 * Call visit for each piece of each function until it returns false. Locals are read only if they
 * are wanted, for they take most of the time. Errors: memory.
 */
struct error *debug_visit_functions(struct debug *debug, const struct type_table *table,
				    struct memory_account *account, bool wants_locals,
				    function_visit visit, void *data);

/* True if the functions of the program's module of that number can be visited. */
bool debug_has_functions(struct debug *debug, size_t module);

struct code_function {
	const char *name;   /* NULL: only the C++ library's own functions are there */
	const char *source; /* where the address is in it, as "conn.c:41"; or NULL */
	/*
	 * The result type of a standard allocator's allocate() around the address: an inlined
	 * std::allocator<shop::Item *>::allocate() returns a "shop::Item *". NO_TYPE: not inside
	 * one.
	 */
	type_number allocated;
};

/*
 * Among the functions at an address of code, which are inlined into each other, find the innermost
 * that returns a pointer to the type, or has a variable of that pointer type; else the innermost
 * that does not return "void *" or "char *", or the outermost. Functions of the C++ library, such
 * as std::make_unique(), are skipped: their caller owns the allocation. Strings live as long as
 * struct debug.
 */
bool debug_find_function(struct debug *debug, const struct type_table *table, uint64_t address,
			 type_number pointee, struct code_function *ret);

/*
 * The argument of that name of the class template that the function which begins at an address of
 * code is a member of, if the class's name begins so, as "_Manager_external<". NO_TYPE: it is in
 * none.
 */
type_number debug_class_argument(struct debug *debug, const struct type_table *table,
				 uint64_t address, const char *class, const char *argument);

/* The class itself. */
type_number debug_class_of(struct debug *debug, const struct type_table *table, uint64_t address,
			   const char *class);

/* The type whose vtable for a trait of Rust begins at the address; NO_TYPE: none does. */
type_number debug_vtable_type(struct debug *debug, const struct type_table *table,
			      uint64_t address);
