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
 * One a line; a line that begins with # is a comment. In GLOB and TEXT * stands for any text.
 * LeakSanitizer matches leak: against the calls that allocated, which a core does not have. Here it
 * is matched against the names of the leak root, of what holds a likely one, and of their modules.
 */
#pragma once

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

/* Parse text that ends with a NUL. */
struct error *suppressions_parse(struct suppressions *suppressions, char *text, const char *path);

void suppressions_deinit(struct suppressions *suppressions);
DEFINE_DEINIT(suppressions_deinit, struct suppressions)

/* The text of the first rule that names the leak, or NULL. All that do are marked as matched. */
const char *suppressions_find(struct suppressions *suppressions, const struct leak_kind *leak);

/* Mark the kinds that a rule names as suppressed; and known ones, see leak_is_known(). */
void suppressions_apply(struct suppressions *suppressions, struct leak_kinds *kinds, bool known);

/*
 * True if the text matches the pattern, in which * stands for any text; or, in LeakSanitizer's
 * form, if a part of it does, unless ^ begins or $ ends the pattern.
 */
bool wildcard_matches(const char *pattern, const char *text);
bool wildcard_found(const char *pattern, const char *text);
