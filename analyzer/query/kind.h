/*
 * The kind of allocations that a word of the command language selects.
 *
 *	app::Session	of that class, or of one derived from it
 *	session		of that type, by debug information; "struct session", "char[]"
 *	55bd4cec3ca0	with that signature
 *	%LongString	of that pattern
 *	-		without a signature
 *	?		without a signature and a pattern
 *
 * A kind is parsed without a dump; a test of it is prepared with one.
 */
#pragma once

#include "analyzer/kinds/kind_key.h"
#include "analyzer/kinds/signatures.h"

enum kind_choice {
	KIND_ANY, /* whatever it is */
	KIND_NONE,
	KIND_SIGNATURE,
	KIND_NAMED,
	KIND_PATTERN,
	KIND_NEITHER,
};

/* All zero: any. */
struct kind {
	enum kind_choice choice;
	const char *word;   /* as it was typed; borrowed */
	uint64_t signature; /* of KIND_SIGNATURE */
	pattern_number pattern;
};

/* An empty word is any kind; an unknown pattern is an error. */
struct error *kind_parse(const char *word, struct kind *ret);

/* Tests whether an allocation is of a kind. */
struct kind_test {
	struct analysis *analysis;
	struct kind kind;
	struct class_filter filter; /* of KIND_NAMED */
	char *identity;		    /* the name of an identity word, or NULL */
	char *type;		    /* that of a type, or NULL */
	ARRAY(kind_key) containers; /* containers that have parts of that name */
	uint64_t judged;	    /* allocations so far */
	bool completed;		    /* the word is the end of the name of the class */
	bool found;		    /* one of them is of the kind */
	struct bitmap known;	    /* the allocations of the kind; no words: not yet found */
};

/*
 * Build what is needed, and find out what the word means. That no used allocation is of that class
 * or has that signature is an error, which names the nearest one; unless missing ones are allowed:
 * then nothing is of it.
 */
struct error *kind_test_init(struct kind_test *test, struct analysis *analysis,
			     const struct kind *kind, bool allow_missing);
void kind_test_deinit(struct kind_test *test);

/*
 * The two halves of it, where nearly always something is of the kind: first build what is needed;
 * then, once all were judged and only if none is of the kind, find out whether it is a mistake.
 * *ret_again: the name is that of an identity word or a type, and all are to be judged again.
 */
struct error *kind_test_prepare(struct kind_test *test, struct analysis *analysis,
				const struct kind *kind);
struct error *kind_test_settle(struct kind_test *test, bool allow_missing, bool *ret_again);
DEFINE_DEINIT(kind_test_deinit, struct kind_test)

/*
 * To look at an allocation's first word costs a fetch from memory, and much less if all are looked
 * at in order: after some thousands that is done.
 */
struct error *kind_test_judge(struct kind_test *test, allocation_id id, bool *ret_taken);

/* Take away from members what is of another kind. */
struct error *kind_narrow(struct analysis *analysis, const struct kind *kind, bool allow_missing,
			  struct bitmap *members);
