/*
 * Whose signature an allocation bears: C++ classes by their run-time type
 * information, other read-only addresses by symbol.
 *
 * A vtable's address is preceded by that of its type_info, whose own vtable
 * tells how the class is derived, and which names the class and its bases. All
 * that is read from the core first, else from the binaries.
 */
#ifndef ANALYZER_CLASSIFY_CLASSES_H
#define ANALYZER_CLASSIFY_CLASSES_H

#include "analyzer/heap/index.h"
#include "analyzer/program/debug.h"

struct classes;

struct error *classes_create(const struct image *image,
			     const struct program *program, struct debug *debug,
			     struct memory_account *account,
			     struct classes **ret);
void classes_destroy(struct classes *classes);
DEFINE_CLEANUP(classes_destroy, struct classes *)

/* Whether a vtable begins at address. */
bool classes_is_vtable(struct classes *classes, uint64_t address);

/* The name of a signature, a class or a symbol; NULL if it has none. */
const char *classes_name(struct classes *classes, uint64_t signature);

/* Whether the signature is that of the class called name, or of a derived one.
 */
bool classes_is_a(struct classes *classes, uint64_t signature,
		  const char *name);

#endif
