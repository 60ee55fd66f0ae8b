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

#define PART(part_kind, ...)                                                            \
	{                                                                               \
		.runtime = &runtime_perl, .inspect = inspect, .kind = PART_##part_kind, \
		.least_size = 8, __VA_ARGS__                                            \
	}

/* It names itself. */
#define MARKED(...) PART(__VA_ARGS__, .strength = STRENGTH_MARKED)
/* Other shapes say more. */
#define WEAK(...) PART(__VA_ARGS__, .strength = STRENGTH_TEXT)

const struct classifier classifier_perl_arguments =
	MARKED(ARGUMENTS, .name = "PerlArguments", .summary = "the arguments of a call in Perl",
	       .role = "the arguments in the array");

const struct classifier classifier_perl_array_items = MARKED(
	ITEMS, .name = "PerlArrayItems", .summary = "the items of an array of Perl, or of a pad",
	.role = "the items of the array");

const struct classifier classifier_perl_arena_table =
	MARKED(TABLE, .name = "PerlArenaTable", .summary = "a table of arenas of Perl's bodies",
	       .role = "a table of arenas of Perl");

const struct classifier classifier_perl_body =
	MARKED(BODY, .name = "PerlBody", .summary = "the body of a value of Perl",
	       .role = "the body of the value");

const struct classifier classifier_perl_code =
	MARKED(OPS, .name = "PerlCode", .summary = "compiled code of Perl: a slab of operations",
	       .role = "the code of the subroutine");

const struct classifier classifier_perl_data =
	WEAK(DATA, .name = "PerlData", .summary = "data of C code for an object of Perl",
	     .role = "the data of the object");

const struct classifier classifier_perl_glob = MARKED(
	GLOB, .name = "PerlGlob", .summary = "the slots of a glob of Perl: scalar, array, code",
	.role = "the slots of the glob");

const struct classifier classifier_perl_hash_chains =
	MARKED(CHAINS, .name = "PerlHashChains", .summary = "the chains of a hash of Perl",
	       .role = "the chains of the hash");

const struct classifier classifier_perl_hash_entry =
	MARKED(ENTRY, .name = "PerlHashEntry", .summary = "an entry of a hash of Perl",
	       .role = "an entry of the hash");

const struct classifier classifier_perl_hash_key =
	MARKED(KEY, .name = "PerlHashKey", .summary = "a key of a hash of Perl that shares none",
	       .role = "a key of the hash");

const struct classifier classifier_perl_interpreter =
	MARKED(INTERPRETER, .name = "PerlInterpreter", .summary = "memory of a Perl interpreter",
	       .role = "memory of the interpreter");

const struct classifier classifier_perl_magic =
	MARKED(MAGIC, .name = "PerlMagic", .summary = "magic of a value of Perl",
	       .role = "magic of the value");

const struct classifier classifier_perl_part =
	WEAK(OTHER, .name = "PerlPart", .summary = "memory reachable only from a value of Perl",
	     .role = "a part of the value");

const struct classifier classifier_perl_shared_key =
	MARKED(SHARED_KEY, .name = "PerlSharedKey", .summary = "a key that hashes of Perl share",
	       .role = "an entry of the table of shared keys");

const struct classifier classifier_perl_stack =
	MARKED(STACK, .name = "PerlStack", .summary = "a stack of an interpreter of Perl",
	       .role = "a stack of the interpreter");

const struct classifier classifier_perl_string_text =
	MARKED(TEXT, .name = "PerlStringText", .summary = "the text of a string of Perl",
	       .role = "the text of the string");

const struct classifier classifier_perl_weak_list =
	MARKED(WEAK, .name = "PerlWeakList", .summary = "weak references to a value of Perl",
	       .role = "weak references to the value");
