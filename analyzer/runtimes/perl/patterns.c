/*
 * Patterns of the parts of Perl's values, see space.h: the runtime finds them before there are
 * patterns.
 */
#include "analyzer/classify/classifier.h"
#include "analyzer/runtimes/perl/space.h"

extern const struct runtime runtime_perl;

static void inspect(struct reader *reader, const struct subject *subject)
{
	const struct perl *perl =
		(const struct perl *)runtimes_space(reader->runtimes, &runtime_perl);
	allocation_id owner;

	if (!perl || perl->parts.items[subject->id] != reader_kind(reader))
		return;
	owner = perl->links.items[subject->id];
	reader_claim(reader, subject->id,
		     owner == NO_ALLOCATION ? 0 : allocation_start(perl->space.index, owner));
}

#define PART(part_kind, ...)                                                                     \
	.runtime = &runtime_perl, .inspect = inspect, .kind = PART_##part_kind, .least_size = 8, \
	__VA_ARGS__

/* It names itself. */
#define MARKED(...) PART(__VA_ARGS__, .strength = STRENGTH_MARKED)
/* Other shapes say more. */
#define WEAK(...) PART(__VA_ARGS__, .strength = STRENGTH_TEXT)

CLASSIFIER(perl_arguments, "PerlArguments", "the arguments of a call in Perl",
	   "the arguments in the array", MARKED(ARGUMENTS));
CLASSIFIER(perl_array_items, "PerlArrayItems", "the items of an array of Perl, or of a pad",
	   "the items of the array", MARKED(ITEMS));
CLASSIFIER(perl_arena_table, "PerlArenaTable", "a table of arenas of Perl's bodies",
	   "a table of arenas of Perl", MARKED(TABLE), .holds_stale = true);
CLASSIFIER(perl_body, "PerlBody", "the body of a value of Perl", "the body of the value",
	   MARKED(BODY));
CLASSIFIER(perl_code, "PerlCode", "compiled code of Perl: a slab of operations",
	   "the code of the subroutine", MARKED(OPS));
CLASSIFIER(perl_data, "PerlData", "data of C code for an object of Perl", "the data of the object",
	   WEAK(DATA));
CLASSIFIER(perl_glob, "PerlGlob", "the slots of a glob of Perl: scalar, array, code",
	   "the slots of the glob", MARKED(GLOB));
CLASSIFIER(perl_hash_chains, "PerlHashChains", "the chains of a hash of Perl",
	   "the chains of the hash", MARKED(CHAINS));
CLASSIFIER(perl_hash_entry, "PerlHashEntry", "an entry of a hash of Perl", "an entry of the hash",
	   MARKED(ENTRY));
CLASSIFIER(perl_hash_key, "PerlHashKey", "a key of a hash of Perl that shares none",
	   "a key of the hash", MARKED(KEY));
CLASSIFIER(perl_interpreter, "PerlInterpreter", "memory of a Perl interpreter",
	   "memory of the interpreter", MARKED(INTERPRETER), .holds_stale = true);
CLASSIFIER(perl_magic, "PerlMagic", "magic of a value of Perl", "magic of the value",
	   MARKED(MAGIC));
CLASSIFIER(perl_part, "PerlPart", "memory reachable only from a value of Perl",
	   "a part of the value", WEAK(OTHER));
CLASSIFIER(perl_shared_key, "PerlSharedKey", "a key that hashes of Perl share",
	   "an entry of the table of shared keys", MARKED(SHARED_KEY));
CLASSIFIER(perl_stack, "PerlStack", "a stack of an interpreter of Perl",
	   "a stack of the interpreter", MARKED(STACK), .holds_stale = true);
CLASSIFIER(perl_string_text, "PerlStringText", "the text of a string of Perl",
	   "the text of the string", MARKED(TEXT));
CLASSIFIER(perl_weak_list, "PerlWeakList", "weak references to a value of Perl",
	   "weak references to the value", MARKED(WEAK));
