/*
 * The classes of a program written in Crystal, by the numbers that their objects begin with.
 *Numbers differ from build to build. Nothing in the program's memory names classes, but code and
 *symbols do:
 *
 *	Foo:type_id		a constant, from Crystal 1.15 on
 *	*Foo::new<...>:Foo	makes a Foo: its code stores the number
 *	*Foo#initialize<...>	is called with the new object
 *
 * Inlined functions have no symbols. Debug information still has the place where the constructor
 *was written, and the class is named after it: type#176@app.cr:8 has its `initialize` in line 8 of
 * app.cr. With neither, it is type#176.
 *
 * The code also tells an object's size, and whether it may hold pointers: other memory, too, may
 * begin with such a number.
 */
#pragma once

#include "analyzer/heap/index.h"
#include "analyzer/program/debug/debug.h"
#include "analyzer/runtimes/crystal/code.h"

struct crystal_type {
	uint32_t number;
	uint32_t size; /* of its objects; 0: it varies (String) */
	bool atomic;   /* they hold no pointers */
	bool guessed;  /* then atomic is not known */
};

struct crystal_types;

/* A call that makes an object of a type, or, with the number 0, a function that may make any. */
struct crystal_site {
	uint32_t type;
	uint64_t address;
};

/* NULL in *ret and no error: the program is not written in Crystal. */
struct error *crystal_types_create(const struct image *image, const struct program *program,
				   struct debug *debug, struct memory_account *account,
				   struct crystal_types **ret);
void crystal_types_destroy(struct crystal_types *types);
DEFINE_CLEANUP(crystal_types_destroy, struct crystal_types *)

/* The type of that number, or NULL. */
const struct crystal_type *crystal_type_find(const struct crystal_types *types, uint32_t number);

size_t crystal_type_count(const struct crystal_types *types);
const struct crystal_type *crystal_type_at(const struct crystal_types *types, size_t rank);

/* Name the class of that number Fiber, which is recognised by shape, unless it has a certain name.
 */
void crystal_types_set_fiber(struct crystal_types *types, uint32_t number);

/* The rank of the type by number, or the count. */
size_t crystal_type_index(const struct crystal_types *types, uint32_t number);

/*
 * The type's name; NULL only if memory is short. Lives as long as types. *ret_certain says whether
 * it is the class's own.
 */
const char *crystal_type_name(struct crystal_types *types, uint32_t number, bool *ret_certain);

/*
 * The member at that offset of the type's objects, "name", or "position.x" of one that is within
 * another; NULL: debug information does not tell.
 */
const char *crystal_type_field(struct crystal_types *types, uint32_t number, uint64_t offset);

/* "PART of the NAME", kept as names are. */
const char *crystal_type_phrase(struct crystal_types *types, const char *part, uint32_t number);

/* True if a function of the program begins at address. */
bool crystal_types_have_function(const struct crystal_types *types, uint64_t address);

/*
 * True if a function begins at address that may belong to a block or a Proc. If it has a symbol,
 * the symbol says so.
 */
bool crystal_types_may_be_block(const struct crystal_types *types, uint64_t address);

/* All of them, by type; functions by address. They live as long as types. */
size_t crystal_types_sites(const struct crystal_types *types, const struct crystal_site **ret);
size_t crystal_types_functions(const struct crystal_types *types, const struct memory_range **ret);

/* The program. */
const struct module *crystal_types_module(const struct crystal_types *types);

/*
 * Call visit for each base and each module that the type includes, some perhaps twice, until it
 * returns true; returns whether it did. The symbols of methods name them: *Cat@Animal#name is one
 * that Cat has of Animal.
 */
bool crystal_type_visit_bases(struct crystal_types *types, uint32_t number,
			      bool (*visit)(void *data, const char *name), void *data);
