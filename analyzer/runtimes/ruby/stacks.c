/*
 * Stacks of values and frames of Ruby in memory from malloc(), as those of main threads: a context
 * leads to each, see frames.h, within the data of a Fiber. Those of other threads and fibers are on
 * their native stacks.
 */
#include "analyzer/classify/classifier.h"

extern const struct runtime runtime_ruby;

enum {
	WORD = 8,
	/* Fields of a context, in words. */
	STACK = 0,
	COUNT = 1,
	FRAME = 2,
	FIBER = 5,
	THREAD = 6, /* up to 2.7, both are a word behind */
	WORDS = 8,
};

static bool is_context(const uint64_t *words)
{
	enum { MOST_STACK = 1 << 28 };

	return words[STACK] != 0 && words[COUNT] != 0 && words[COUNT] <= MOST_STACK &&
	       words[FRAME] - words[STACK] <= WORD * words[COUNT] && words[FIBER] % WORD == 0 &&
	       words[THREAD] != 0 && words[THREAD] % WORD == 0;
}

static bool may_match(const struct reader *reader, const struct reference *reference)
{
	uint64_t words[WORDS];

	return reference_words(reference, STACK, WORDS, words) && is_context(words);
}

DEFINE_SUSPECT(suspect, may_match)

/* The object that the data of a fiber or thread names, and whose data it is; 0: none. */
static uint64_t find_object(struct reader *reader, uint64_t data)
{
	enum { SELF = 16, DATA = 32 };
	uint64_t object, back;
	allocation_id id;

	if (data == 0 || !reader_word(reader, data + SELF, &object) || object % WORD != 0 ||
	    !reader_word(reader, object + DATA, &back) || back != data)
		return 0;
	id = allocation_find(reader->index, object);
	return id != NO_ALLOCATION && allocation_start(reader->index, id) == object &&
			       runtimes_are_certain(reader->runtimes, id)
		       ? object
		       : 0;
}

static void match(struct reader *reader, const struct reference *reference)
{
	uint64_t words[WORDS], object = 0;

	if (!reference_words(reference, STACK, WORDS, words) || !is_context(words) ||
	    words[STACK] != allocation_start(reader->index, reference->target) ||
	    WORD * words[COUNT] > allocation_size(reader->index, reference->target))
		return;
	/* The first fiber of a thread may have no object. */
	for (size_t i = FIBER; i < WORDS && object == 0; i++)
		object = find_object(reader, words[i]);
	if (object != 0)
		reader_claim(reader, reference->target, object);
}

CLASSIFIER(ruby_stack, "RubyStack", "the values and frames of a thread or fiber of Ruby",
	   "the values and frames of the object", .runtime = &runtime_ruby,
	   .strength = STRENGTH_RELATED, .match = match, .suspect = suspect);
