/*
 * The classes of a program written in Crystal, by the numbers that their objects begin with. They
 * differ from build to build, and nothing in the program's memory names them; its code and symbols
 * do:
 *
 *	Foo:type_id		a constant, from Crystal 1.15 on
 *	*Foo::new<...>:Foo	makes a Foo: its code stores the number
 *	*Foo#initialize<...>	is called with what was just made
 *
 * What was inlined has no symbol. Debug information still tells where its constructor was written,
 * and the class is called after that: the one whose `initialize` is in line 8 of app.cr is
 * type#176@app.cr:8. With neither, it is called type#176.
 *
 * The code also tells an object's size, and whether it may hold pointers: a number alone would be
 * found in other memory, too.
 */
#ifndef ANALYZER_RUNTIMES_CRYSTAL_TYPES_H
#define ANALYZER_RUNTIMES_CRYSTAL_TYPES_H

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

/* NULL in *ret and no error: the program is not written in Crystal. */
struct error *crystal_types_create(const struct image *image, const struct program *program,
				   struct debug *debug, struct memory_account *account,
				   struct crystal_types **ret);
void crystal_types_destroy(struct crystal_types *types);
DEFINE_CLEANUP(crystal_types_destroy, struct crystal_types *)

/* The type of that number, or NULL. */
const struct crystal_type *crystal_type_find(const struct crystal_types *types, uint32_t number);

/* By number. */
size_t crystal_type_count(const struct crystal_types *types);
const struct crystal_type *crystal_type_at(const struct crystal_types *types, size_t number);

/* The number's class is Fiber: that is known by shape. Others stay. */
void crystal_types_set_fiber(struct crystal_types *types, uint32_t number);

/* The number-th of a type, or their count. */
size_t crystal_type_index(const struct crystal_types *types, uint32_t number);

/*
 * What it is called; NULL only if memory is short. Lives as long as types. *ret_certain says
 * whether it is the class's own name.
 */
const char *crystal_type_name(struct crystal_types *types, uint32_t number, bool *ret_certain);

/*
 * The member at that offset of the type's objects, "name", or "position.x" of one that is within
 * another; NULL: debug information does not tell.
 */
const char *crystal_type_field(struct crystal_types *types, uint32_t number, uint64_t offset);

/* "PART of the NAME", kept as names are. */
const char *crystal_type_phrase(struct crystal_types *types, const char *part, uint32_t number);

/* Whether a function of the program begins at address. */
bool crystal_types_have_function(const struct crystal_types *types, uint64_t address);

/*
 * Whether a function of the program begins at address that may be a block's, or that of a Proc: if
 * it has a symbol, one that says so.
 */
bool crystal_types_may_be_block(const struct crystal_types *types, uint64_t address);

/* The program. */
const struct module *crystal_types_module(const struct crystal_types *types);

/*
 * Call visit for what the type is derived from and what it includes, some perhaps twice, until it
 * returns true; returns whether it did. Told by the symbols of methods: *Cat@Animal#name is one
 * that Cat has of Animal.
 */
bool crystal_type_visit_bases(struct crystal_types *types, uint32_t number,
			      bool (*visit)(void *data, const char *name), void *data);

#endif
