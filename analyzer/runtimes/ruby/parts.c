/*
 * Patterns of the memory that Ruby's objects have from malloc(), except contents, which are in
 * ruby.c. The object's own slot points to it, in a word that depends on the type.
 */
#include "allocators/ruby/ruby.h"
#include "analyzer/classify/classifier.h"
#include "analyzer/runtimes/ruby/slots.h"

enum { WORD = 8, MOST_WORDS = 4, APART = 1 << 13 /* of objects and structs: embedded */ };

enum { CLASS_EXTENSION, DATA, HASH_TABLE_OF, INSTANCE_VARIABLES, ISEQ_BODY, METHOD_DEFINITION };

/* Bits of flags that must be so, in each type, and which words may lead to the part. */
static const struct part {
	uint32_t types; /* a bit for each */
	uint64_t mask, flags;
	unsigned int first, last;
} parts[] = {
	/* Up to 3.1: struct RClass, internal/class.h. */
	[CLASS_EXTENSION] = { 1U << RUBY_CLASS | 1U << RUBY_MODULE | 1U << RUBY_ICLASS, 0, 0, 3,
			      3 },
	/* struct RTypedData: | flags | class | type | 1 | data |. */
	[DATA] = { 1U << RUBY_DATA, 0, 0, 4, 4 },
	/* Up to 3.2: struct RHash, internal/hash.h. */
	[HASH_TABLE_OF] = { 1U << RUBY_HASH, 0, 0, 2, 2 },
	/* struct RObject: up to 3.1 their number comes first. */
	[INSTANCE_VARIABLES] = { 1U << RUBY_OBJECT, APART, 0, 2, 3 },
	[ISEQ_BODY] = { 1U << RUBY_IMEMO, (RUBY_IMEMO_KINDS - 1) << RUBY_IMEMO_SHIFT,
			RUBY_ISEQ << RUBY_IMEMO_SHIFT, 2, 2 },
	[METHOD_DEFINITION] = { 1U << RUBY_IMEMO, (RUBY_IMEMO_KINDS - 1) << RUBY_IMEMO_SHIFT,
				RUBY_METHOD << RUBY_IMEMO_SHIFT, 2, 2 },
};

/* The start of the object with the reference, by the words before it; 0: none. */
static uint64_t find_object(const struct part *part, const struct reference *reference)
{
	uint64_t words[MOST_WORDS + 1] = { 0 };

	for (unsigned int word = part->first; word <= part->last; word++)
		if (reference_words(reference, -(int)word, word + 1, words) &&
		    (part->types >> (words[0] & RUBY_TYPE_BITS) & 1) &&
		    (words[0] & part->mask) == part->flags)
			return reference->address - (uint64_t)WORD * word;
	return 0;
}

/* For any of them: a suspect() does not know whose it is. */
static bool may_match(const struct reader *reader, const struct reference *reference)
{
	for (size_t i = 0; i < COUNT_OF(parts); i++)
		if (find_object(&parts[i], reference))
			return true;
	return false;
}

DEFINE_SUSPECT(suspect, may_match)

static void match(struct reader *reader, const struct reference *reference)
{
	uint64_t object = find_object(&parts[reader_kind(reader)], reference);

	if (object && reference->source != NO_ALLOCATION &&
	    allocation_start(reader->index, reference->source) == object &&
	    runtimes_are_certain(reader->runtimes, reference->source))
		reader_claim(reader, reference->target, object);
}

extern const struct runtime runtime_ruby;

#define PART(...)                                                               \
	.runtime = &runtime_ruby, .strength = STRENGTH_RELATED, .match = match, \
	.suspect = suspect, __VA_ARGS__

CLASSIFIER(ruby_class_extension, "RubyClassExtension", "a part of a class of Ruby, up to 3.1",
	   "the extension of the class", PART(.kind = CLASS_EXTENSION));
CLASSIFIER(ruby_data, "RubyData", "data of C code for an object of Ruby", "the data of the object",
	   PART(.kind = DATA));
CLASSIFIER(ruby_hash_table, "RubyHashTable", "the table of a Hash of Ruby", "the table of the Hash",
	   PART(.kind = HASH_TABLE_OF));
CLASSIFIER(ruby_instance_variables, "RubyInstanceVariables",
	   "the instance variables of an object of Ruby", "the instance variables of the object",
	   PART(.kind = INSTANCE_VARIABLES));
CLASSIFIER(ruby_iseq_body, "RubyIseqBody", "the body of a method's or block's iseq in Ruby",
	   "the body of the iseq", PART(.kind = ISEQ_BODY));
CLASSIFIER(ruby_method_definition, "RubyMethodDefinition", "the definition of a method of Ruby",
	   "the definition of the method", PART(.kind = METHOD_DEFINITION));
