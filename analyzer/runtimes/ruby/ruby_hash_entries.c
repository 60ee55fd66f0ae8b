#include "analyzer/runtimes/ruby/ruby.h"

/*
 * MRI, include/ruby/st.h, struct st_table, in words:
 *
 *	| powers of entries and bins, ... | type | entries in use | bins |
 *	| first entry | behind the last | entries |
 *
 * The type is constant memory of the interpreter. Entries in between may have been deleted.
 */
enum {
	WORDS = 7,
	TYPE = 1,
	COUNT = 2,
	FIRST = 4,
	BOUND = 5,
	ENTRIES = 6,
	WORD = 8,
	ENTRY = 24,
	MOST_POWER = 40,
};

static uint64_t capacity_of(const uint64_t *words)
{
	return UINT64_C(1) << (words[0] & UINT8_MAX);
}

static bool is_table(struct reader *reader, struct memory_range range, const uint64_t *words)
{
	return (words[0] & UINT8_MAX) <= MOST_POWER && words[ENTRIES] == range.start &&
	       words[FIRST] <= words[BOUND] && words[BOUND] <= capacity_of(words) &&
	       words[COUNT] <= words[BOUND] - words[FIRST] &&
	       reader_fits(reader, range, ENTRY * capacity_of(words)) &&
	       reader_in_module(reader, words[TYPE]);
}

static void match(struct reader *reader, const struct reference *reference)
{
	uint64_t words[WORDS];

	if (reference_words(reference, -ENTRIES, WORDS, words) &&
	    is_table(reader, reference->range, words))
		reader_claim(reader, reference->target, reference->address - WORD * ENTRIES);
}

static bool measure(struct reader *reader, struct memory_range range, uint64_t owner,
		    struct pattern_extent *ret)
{
	uint64_t words[WORDS];

	if (!reader_words(reader, owner, WORDS, words) || !is_table(reader, range, words))
		return false;
	ret->asked = ENTRY * capacity_of(words);
	ret->live_start = ENTRY * words[FIRST];
	ret->live_end = ENTRY * words[BOUND];
	ret->spare = ret->asked - (ret->live_end - ret->live_start);
	return true;
}

static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	uint64_t words[WORDS];

	if (!reader_words(reader, facts->owner, WORDS, words) || !is_table(reader, range, words))
		return;
	facts->unit = "entries";
	facts->length = words[COUNT];
	facts->has_capacity = true;
	facts->capacity = capacity_of(words);
	facts->dead = "spare capacity of a Hash";
	facts->live_start = ENTRY * words[FIRST];
	facts->live_end = ENTRY * words[BOUND];
}

const struct classifier classifier_ruby_hash_entries = {
	.name = "RubyHashEntries",
	.summary = "the entries of a Hash of Ruby, or of a table of its own",
	.role = "the entries of the table",
	.strength = STRENGTH_MARKED,
	.runtime = &runtime_ruby,
	.match = match,
	.tell = tell,
	.measure = measure,
};
