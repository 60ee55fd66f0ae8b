#include "analyzer/runtimes/ruby/ruby.h"

/*
 * struct rb_iseq_constant_body of Ruby 2.x to 3.4, vm_core.h:
 *
 *	| type, 32 bits; number of words, 32 bits | instructions | ...
 *
 * An instruction is its operation's address in the interpreter's code, followed by its operands, a
 * word each.
 */
enum { MOST_TYPE = 9, WORD = 8 };

static bool is_operation(struct reader *reader, uint64_t start)
{
	const struct region *region;
	uint64_t word;

	if (!reader_word(reader, start, &word) || !reader_in_module(reader, word))
		return false;
	region = image_find(reader->image, word);
	return region && (region->rights & RIGHT_EXECUTE);
}

/* How many words of code the body says it has; 0: these are not its. */
static uint64_t count_words(struct reader *reader, struct memory_range range, uint64_t head)
{
	uint64_t count = head >> 32;

	return (uint32_t)head <= MOST_TYPE && count && reader_fits(reader, range, count * WORD) &&
			       is_operation(reader, range.start)
		       ? count
		       : 0;
}

static void match(struct reader *reader, const struct reference *reference)
{
	uint64_t head;

	if (reference_words(reference, -1, 1, &head) && count_words(reader, reference->range, head))
		reader_claim(reader, reference->target, reference->address - WORD);
}

static uint64_t words_of(struct reader *reader, struct memory_range range, uint64_t owner)
{
	uint64_t head;

	return reader_word(reader, owner, &head) ? count_words(reader, range, head) : 0;
}

static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	uint64_t count = words_of(reader, range, facts->owner);

	if (!count)
		return;
	facts->unit = "words";
	facts->length = count;
}

static bool measure(struct reader *reader, struct memory_range range, uint64_t owner,
		    struct pattern_extent *ret)
{
	uint64_t size = WORD * words_of(reader, range, owner);

	ret->asked = ret->live_end = size;
	return size != 0;
}

const struct classifier classifier_ruby_instructions = {
	.name = "RubyInstructions",
	.summary = "the code of a method or block of Ruby",
	.role = "the instructions of the iseq",
	.strength = STRENGTH_MARKED,
	.runtime = &runtime_ruby,
	.match = match,
	.tell = tell,
	.measure = measure,
};
