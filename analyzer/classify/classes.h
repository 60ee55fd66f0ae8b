/*
 * The names of signatures: C++ classes by their run-time type information, other read-only
 * addresses by symbol.
 *
 * The word before a vtable points at its type_info, which names the class and its bases; the vtable
 * of the type_info says how the class is derived. All is read from the core, else from the
 * binaries.
 *
 * Each signature is analysed once. Names live as long as struct classes. Not for several threads at
 * a time.
 */
#pragma once

#include "analyzer/heap/index.h"
#include "analyzer/program/debug/debug.h"
#include "analyzer/runtimes/runtimes.h"

struct classes;

struct error *classes_create(const struct image *image, const struct program *program,
			     struct debug *debug, struct memory_account *account,
			     struct classes **ret);
void classes_destroy(struct classes *classes);
DEFINE_CLEANUP(classes_destroy, struct classes *)

/* Signatures may be numbers of these classes, too. They are borrowed and outlive the classes. */
void classes_set_runtimes(struct classes *classes, const struct runtimes *runtimes);

/*
 * True if address is a vtable with a type_info, with which an object may begin. Needs no symbols.
 */
bool classes_is_vtable(struct classes *classes, uint64_t address);

/*
 * Signatures that are more than the address of a class; their names say so. None is of a class.
 *
 * A slab is a block that an allocator of the program's own cuts objects out of, of which the first
 * is of that class: "slab, beginning with app::Session". An object that std::make_shared() made is
 * destroyed when its last std::shared_ptr is; its memory stays until the last std::weak_ptr is
 * gone: "app::Session (destroyed, held by weak_ptr)". Exceptions have the address of the type_info:
 * "exception app::Error", "exception app::Error (rethrown)".
 */
enum signature_mark { MARK_NONE, MARK_SLAB, MARK_DESTROYED, MARK_EXCEPTION, MARK_RETHROWN };

static inline uint64_t signature_mark(uint64_t address, enum signature_mark mark)
{
	return address + mark;
}

enum signature_mark classes_mark(struct classes *classes, uint64_t signature);

/* True if the program may throw C++ exceptions. */
bool classes_may_throw(struct classes *classes);

bool classes_is_class(struct classes *classes, uint64_t signature);

/* The result of control_block_object() for the vtable's class. */
uint32_t classes_control_block(struct classes *classes, uint64_t vtable);

enum signature_kind {
	SIGNATURE_UNKNOWN, /* its name, if any, is that of a module */
	SIGNATURE_CLASS,
	SIGNATURE_FUNCTION,
	SIGNATURE_DATA,
};

enum signature_kind classes_kind(struct classes *classes, uint64_t signature);

/*
 * The name of a signature, a class or a symbol, in the form of short_name(). If there is nothing
 * better, "libfoo.so+0x4018" of functions and of tables of them, else "strings of libfoo.so" or
 * "data of libfoo.so"; NULL if it is in no module. The control block that std::make_shared() makes
 * has the name of the class of the object in it.
 */
const char *classes_name(struct classes *classes, uint64_t signature);

/* Like classes_name(), as the compiler wrote it. */
const char *classes_full_name(struct classes *classes, uint64_t signature);

/*
 * "strings of libfoo.so: "text"" where the signature is the address of a string and has no other
 * name; else NULL.
 */
const char *classes_literal_name(struct classes *classes, uint64_t signature);

/* Begin a search with a new budget of bases: a dump may have endless chains of them. */
void classes_begin_search(struct classes *classes);

/* True if the signature's class, or a base of it, has that name, in the form of short_name(). */
bool classes_is_a(struct classes *classes, uint64_t signature, const char *name);

/*
 * Call visit with the name of the signature's class and of all that it is derived from, some
 * perhaps twice, until it returns true. Returns whether it did. Of what is no class there is the
 * symbol's name.
 */
bool classes_visit_names(struct classes *classes, uint64_t signature,
			 bool (*visit)(void *data, const char *name), void *data);
