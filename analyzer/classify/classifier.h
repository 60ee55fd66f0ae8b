/*
 * The contract of a classifier, which recognises one kind of allocation by its shape.
 *
 * All classifiers share one pass over the used allocations and the roots. A classifier inspects
 * each allocation, matches each reference to a certain offset of one, or finishes what needs the
 * whole pass. It claims what it recognises, and the strongest claim to an allocation wins. So the
 * order in which memory is scanned does not matter, and a classifier must not depend on it.
 *
 * Precision is worth more than recall: test the words beside the reference first, which is cheap,
 * then read what it points at.
 */
#pragma once

#include "analyzer/classify/patterns.h"
#include "analyzer/classify/reader.h"
#include "analyzer/runtimes/runtimes.h"

/* The precedence of claims; equal ones go to the classifier whose file name is first. */
enum strength {
	STRENGTH_TEXT,	  /* contents that read as text */
	STRENGTH_CHAIN,	  /* a shape that other things may have as well */
	STRENGTH_RELATED, /* the target of something certain */
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
	bool narrow;	   /* takes words of 4 bytes as well: see reader->word */
	bool for_cxx;	   /* only where a C++ library is loaded */
	bool holds_object; /* an object, perhaps, whose class says more */
	bool is_text;  /* told by contents, which differ between runs: class and type say more */
	bool is_whole; /* no part of what holds it, but something by itself, as a table by name */
	bool is_plain; /* a type by debug information says what is in it, which is more */
	bool holds_stale; /* a runtime's own, which leaves words there that it will not follow */
	bool is_reserve;  /* a library has it for itself, whatever the program does */
	/* Only where the runtime's objects are known. */
	const struct runtime *runtime;
	int kind;	   /* for its own functions, which may be shared: reader_kind() */
	bool pointerless;  /* inspect what holds no pointers, too */
	bool walks;	   /* claims what it reaches by references of others: see leads_on() */
	bool owners_later; /* claims tell no owner until all patterns are
			      known */

	/* Match a reference to exactly that offset of a used allocation; only suspects are shown.
	 */
	void (*match)(struct reader *reader, const struct reference *reference);
	uint64_t offset; /* in words, at most MOST_OFFSET */

	/*
	 * True if match() may claim targets of this allocation. Unless the classifier walks, all
	 * other claims are for the subject, its targets, or the reference's target. NULL: never.
	 */
	bool (*leads_on)(struct reader *reader, struct memory_range range);

	/*
	 * Select the words in mask for which match() may claim anything, judged by the words beside
	 * them: bit 0 is first, each further one the next word. Targets are not known yet, and are
	 * looked up for suspects only. NULL: all words; see DEFINE_SUSPECT().
	 */
	uint64_t (*suspect)(const struct reader *reader, const struct reference *first,
			    uint64_t mask);

	/* Inspect a used allocation that has at least a word, and least_size bytes in a row. */
	void (*inspect)(struct reader *reader, const struct subject *subject);
	uint64_t least_size;

	/* Finish with what the whole pass has found; called by one thread. */
	void (*finish)(struct reader *reader, struct overview *overview);

	/*
	 * Add facts about an allocation that it claimed for facts->owner. NULL: there are none.
	 * Several threads call it at once.
	 */
	void (*tell)(struct reader *reader, struct memory_range range, struct pattern_facts *facts);
	bool measures; /* the facts may say how much of it is in use */
	struct pattern_numbers numbers;

	/*
	 * True if the reference at address is the one by which the owner holds the allocation,
	 * unlike iterators and back links. NULL: all references count alike.
	 */
	bool (*favors)(struct reader *reader, struct memory_range range, uint64_t owner,
		       uint64_t address);
};

/* A favors() for what the first word of the owner leads to. */
bool favors_first_word(struct reader *reader, struct memory_range range, uint64_t owner,
		       uint64_t address);

extern const struct classifier *const classifiers[]; /* NULL at the end */

/* Define the classifier of that identifier; the rest are its other members. */
#define CLASSIFIER(identifier, name_, summary_, role_, ...)                          \
	const struct classifier classifier_##identifier = {                          \
		.name = (name_), .summary = (summary_), .role = (role_), __VA_ARGS__ \
	}

/* A suspect() that keeps the words for which may(reader, reference) is true. */
#define DEFINE_SUSPECT(name, may)                                                          \
	__attribute__((flatten)) static uint64_t name(                                     \
		const struct reader *reader, const struct reference *first, uint64_t mask) \
	{                                                                                  \
		return references_filter(reader, first, mask, may);                        \
	}

/* The kind of the classifier that is asked. */
static inline int reader_kind(const struct reader *reader)
{
	return classifiers[reader->number - 1]->kind;
}
