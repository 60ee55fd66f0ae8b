/*
 * Reads the signature of an allocation: what tells the class of the object in
 * it, if anything does (see classes.h).
 *
 * It is the number of the type of an object of Crystal; else the object's first
 * word, if that is the address of something that cannot be written, or of a
 * vtable.
 */
#ifndef ANALYZER_CLASSIFY_SIGNATURE_H
#define ANALYZER_CLASSIFY_SIGNATURE_H

#include "analyzer/classify/classes.h"
#include "analyzer/classify/crystal/instances.h"
#include "analyzer/heap/index.h"
#include "analyzer/image/view.h"

/*
 * All is borrowed. It remembers where it read last, and where a word led to, so
 * allocations one after the other are quick; each thread has one of its own.
 */
struct signature_reader {
	const struct allocation_index *index;
	const struct bitmap *managed;  /* have TRAIT_MANAGED; NULL: none has */
	const struct crystal *crystal; /* NULL: another language */
	struct classes *classes;       /* NULL: no vtable is known */
	struct view view;
	const struct region *target; /* NULL at first */
};

/* Where the object in the allocation at start begins: a header may precede it.
 */
uint64_t signature_object(const struct signature_reader *reader,
			  allocation_id id, uint64_t start);

/* The signature of the allocation, which has that range; 0: none. */
uint64_t signature_read(struct signature_reader *reader, allocation_id id,
			struct memory_range range);

#endif
