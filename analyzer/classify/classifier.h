/*
 * The contract of a classifier, which knows one kind of allocation by shape.
 *
 * All classifiers share one pass over the used allocations and the roots. A classifier may look at
 * each allocation (inspect), at each reference to a certain offset of one (match), or, once the
 * pass is over, at what can only be told then (finish). What it recognises it claims. Of several
 * claims to an allocation the strongest counts, and so the order in which the memory is looked at
 * does not matter: a classifier must not depend on it, either.
 *
 * Being strict is worth more than finding all: cheap tests of the words beside the reference come
 * first, then those that read what it leads to.
 */
#ifndef ANALYZER_CLASSIFY_CLASSIFIER_H
#define ANALYZER_CLASSIFY_CLASSIFIER_H

#include "analyzer/classify/patterns.h"
#include "analyzer/classify/reader.h"
#include "analyzer/runtimes/runtimes.h"

/* Whose claim counts; of equal ones, that of the first by file name. */
enum strength {
	STRENGTH_CHAIN,	  /* a shape that other things may have as well */
	STRENGTH_RELATED, /* what something certain refers to */
	STRENGTH_SPAN,	  /* three pointers that agree */
	STRENGTH_BUFFER,  /* a buffer whose length and end agree */
	STRENGTH_LINKED,  /* pointers in both directions, counted */
	STRENGTH_MARKED,  /* names itself: a type, a magic number, itself */
};

struct classifier {
	const char *name; /* as typed behind %, "LongString" */
	const char *summary;
	const char *role; /* as "the body of a std::string" */
	enum strength strength;
	bool for_cxx;	   /* only where a C++ library is loaded */
	bool holds_object; /* an object, perhaps, whose class says more */
	/* Only where the runtime's objects are known, if it finds any, or else it is loaded. */
	const struct runtime *runtime;
	int kind;	   /* for its own functions, which may be shared: reader_kind() */
	bool pointerless;  /* inspect what holds no pointers, too */
	bool walks;	   /* claims what it reaches by references of others: see leads_on() */
	bool owners_later; /* claims tell no owner until all patterns are
			      known */

	/* Look at a reference to exactly that offset in a used allocation. */
	void (*match)(struct reader *reader, const struct reference *reference);
	uint64_t offset; /* at most MOST_OFFSET, a multiple of 8 */

	/*
	 * Whether match() may claim what this allocation refers to. Any other claim is to the
	 * subject, to what it refers to or to the target of the reference, unless the classifier
	 * walks. NULL: it never does.
	 */
	bool (*leads_on)(struct reader *reader, struct memory_range range);

	/*
	 * Which of the words that mask names match() may do anything for, by what stands beside
	 * them alone: bit 0 is first, each further one the next word; targets are not known yet.
	 * What nobody suspects is not looked up. NULL: all may be; else see references_filter().
	 */
	uint64_t (*suspect)(const struct reader *reader, const struct reference *first,
			    uint64_t mask);

	/*
	 * Look at a used allocation of which at least a word is known, and least_size bytes in a
	 * row.
	 */
	void (*inspect)(struct reader *reader, const struct subject *subject);
	uint64_t least_size;

	/* Look at what the whole pass has shown; not in parallel. */
	void (*finish)(struct reader *reader, struct overview *overview);

	/*
	 * Tell more of an allocation of the classifier's, whose owner, as claimed, is facts->owner.
	 * NULL: there is nothing more to tell.
	 */
	void (*tell)(struct reader *reader, struct memory_range range, struct pattern_facts *facts);

	/*
	 * Say how much of an allocation of the classifier's is in use; owner is its owner, as
	 * claimed. False: that cannot be told. It is called by several threads at once. NULL: it
	 * can never be told.
	 */
	bool (*measure)(struct reader *reader, struct memory_range range, uint64_t owner,
			struct pattern_extent *ret);

	/*
	 * Whether the reference at address, which leads into the allocation, is the one by which
	 * its owner holds it; of an iterator or a link back it is not. NULL: any reference is as
	 * good.
	 */
	bool (*favors)(struct reader *reader, struct memory_range range, uint64_t owner,
		       uint64_t address);
};

/* A favors() for what the first word of the owner leads to. */
bool favors_first_word(struct reader *reader, struct memory_range range, uint64_t owner,
		       uint64_t address);

extern const struct classifier *const classifiers[]; /* NULL at the end */

/* The kind of the classifier that is asked. */
static inline int reader_kind(const struct reader *reader)
{
	return classifiers[reader->number - 1]->kind;
}

#endif
