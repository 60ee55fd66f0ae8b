/*
 * Rules that name leaks which are not to be blamed on the program.
 *
 *	leak:TEXT		LeakSanitizer's: found in one of the names
 *	class:GLOB		the name of the class or symbol
 *	pattern:GLOB		the pattern, as LongString
 *	size:N, size:MIN-MAX	bytes, of all its roots
 *	module:GLOB		the file that the class is of, or the holder
 *	fingerprint:HEX
 *
 * One a line; behind a # at its start it is a comment. In GLOB and TEXT * stands for any text. A
 * core does not tell who allocated something, which is what LeakSanitizer matches leak: against. So
 * here that is matched against the names of the leak root and of what holds a likely one, and those
 * of the modules that these are of.
 *
 * Besides, heapcore has rules of its own for what the C library loses.
 */
#ifndef ANALYZER_GATE_SUPPRESSIONS_H
#define ANALYZER_GATE_SUPPRESSIONS_H

#include "analyzer/gate/leak_kinds.h"

struct suppression {
	char *text;	     /* the rule as it was written; owned */
	const char *pattern; /* behind the colon, in the text */
	const struct suppression_kind *kind;
	uint64_t least, most; /* sizes, or the fingerprint */
	const char *path;     /* of the file; borrowed */
	size_t line;
	bool matched; /* something */
};

struct suppressions {
	struct suppression *list;
	size_t count;
};

/* Add the rules of the file, whose path is kept. */
struct error *suppressions_read(struct suppressions *suppressions, const char *path);

/* The same of text that ends with a NUL. */
struct error *suppressions_parse(struct suppressions *suppressions, char *text, const char *path);

void suppressions_deinit(struct suppressions *suppressions);
DEFINE_DEINIT(suppressions_deinit, struct suppressions)

/*
 * The text of the first rule that names the leak, "heapcore: ..." if it is one
 * of ours, or NULL. All others
 * that name it are no longer without use, either.
 */
const char *suppressions_find(struct suppressions *suppressions, const struct leak_kind *leak);

#endif
