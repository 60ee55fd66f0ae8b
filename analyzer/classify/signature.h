/*
 * Reads the signature of an allocation: what tells the class of the object in it, if anything does
 * (see classes.h).
 *
 * It is the number of the class that a runtime knows the object by; else the object's first word,
 * if that is the address of something that cannot be written, or of a vtable. Of an object that
 * std::make_shared() put behind its counts it is the object's own, if it has a vtable. A block out
 * of which a program cuts objects of several classes is distinguished from an object: see
 * slab_signature().
 */
#ifndef ANALYZER_CLASSIFY_SIGNATURE_H
#define ANALYZER_CLASSIFY_SIGNATURE_H

#include "analyzer/classify/classes.h"
#include "analyzer/classify/kept_words.h"
#include "analyzer/classify/signature_judge.h"
#include "analyzer/heap/index.h"
#include "analyzer/image/view.h"

/*
 * All is borrowed. It remembers where it read last, and where a word led to, so allocations one
 * after the other are quick; each thread has one of its own.
 */
enum { KNOWN_SIGNATURES = 8 };

/* What is known of a first word. */
struct known_signature {
	uint64_t word;	 /* 0: none */
	uint32_t object; /* as classes_control_block() has it */
	bool constant;
};

struct signature_reader {
	const struct allocation_index *index;
	const struct bitmap *managed;	 /* have TRAIT_MANAGED; NULL: none has */
	const struct kept_words *kept;	 /* NULL: read all from memory */
	const struct runtimes *runtimes; /* NULL: none has objects */
	struct classes *classes;	 /* NULL: no vtable is known */
	struct signature_judge *judge;	 /* NULL: any address will do */
	struct view view;
	const struct region *target; /* NULL at first */
	struct known_signature known[KNOWN_SIGNATURES];
};

/* Where the object in the allocation at start begins: a header may precede it.
 */
uint64_t signature_object(const struct signature_reader *reader, allocation_id id, uint64_t start);

/*
 * What may be the signature of the allocation, which has that range: by memory alone, not by what
 * symbols say; 0: nothing.
 */
uint64_t signature_candidate(struct signature_reader *reader, allocation_id id,
			     struct memory_range range);

/* Whether the candidate, which is not 0, is one. */
bool signature_is_right(const struct signature_reader *reader, uint64_t candidate);

/* The signature of the allocation; 0: none. */
uint64_t signature_read(struct signature_reader *reader, allocation_id id,
			struct memory_range range);

#endif
