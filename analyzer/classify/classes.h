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
#ifndef ANALYZER_CLASSIFY_CLASSES_H
#define ANALYZER_CLASSIFY_CLASSES_H

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
 * Whether address is that of a vtable with a type_info, with which an object may begin. No symbols
 * are needed.
 */
bool classes_is_vtable(struct classes *classes, uint64_t address);

/*
 * The signature of a slab, a block that an allocator of the program's own cuts objects out of, of
 * which the first is of that class. Its name is "slab, beginning with app::Session"; it is of no
 * class.
 */
static inline uint64_t slab_signature(uint64_t vtable)
{
	return vtable + 1;
}

/* Whether it is the signature of a class, or of a slab. */
bool classes_is_class(struct classes *classes, uint64_t signature);
bool classes_is_slab(struct classes *classes, uint64_t signature);

/* What control_block_object() says of the vtable's class. */
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

/* The same as the compiler wrote it. */
const char *classes_full_name(struct classes *classes, uint64_t signature);

/*
 * "strings of libfoo.so: "text"" where the signature is the address of a string and has no other
 * name; else NULL.
 */
const char *classes_literal_name(struct classes *classes, uint64_t signature);

/* Begin a search with a new budget of bases: a dump may have endless chains of them. */
void classes_begin_search(struct classes *classes);

/*
 * Whether the signature is that of the class called name, or of a derived one. The name is in the
 * form of short_name().
 */
bool classes_is_a(struct classes *classes, uint64_t signature, const char *name);

/*
 * Call visit with the name of the signature's class and of all that it is derived from, some
 * perhaps twice, until it returns true. Returns whether it did. Of what is no class there is the
 * symbol's name.
 */
bool classes_visit_names(struct classes *classes, uint64_t signature,
			 bool (*visit)(void *data, const char *name), void *data);

#endif
