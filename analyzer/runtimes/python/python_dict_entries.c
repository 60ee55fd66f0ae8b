#include "analyzer/runtimes/python/python.h"

/*
 * CPython 3.11 to 3.13, Include/internal/pycore_dict.h:
 *
 *	PyDictObject: | references | type | length | version | keys | values |
 *
 *	keys: | references | powers of sizes, kind, version | free | entries |
 *	      | indices ... | entries in order ... | free ones |
 *
 * The second byte of the powers is that of the indices' size in bytes; of kind 0, entries have a
 * hash besides.
 */
enum {
	OWNER_WORDS = 5,
	LENGTH = 2,
	KEYS = 4,
	KEYS_WORDS = 4,
	HEADER = 32,
	ENTRY = 16,
	GENERAL_ENTRY = 24,
	MOST_POWER = 40,
	WORD = 8,
};

struct keys {
	uint64_t entry_size, start; /* bytes; where entries begin */
	uint64_t used, capacity;    /* entries */
};

static bool read_keys(struct reader *reader, struct memory_range range, struct keys *ret)
{
	uint64_t words[KEYS_WORDS];
	uint64_t size = range_size(range), power, kind;

	if (!reader_words(reader, range.start, KEYS_WORDS, words))
		return false;
	power = words[1] >> 8 & UINT8_MAX;
	kind = words[1] >> 16 & UINT8_MAX;
	if (words[0] == 0 || power > MOST_POWER || kind > 2 || words[2] > size || words[3] > size)
		return false;
	ret->entry_size = kind == 0 ? GENERAL_ENTRY : ENTRY;
	ret->start = HEADER + (UINT64_C(1) << power);
	ret->used = words[3];
	ret->capacity = words[2] + words[3];
	return ret->capacity <= size / ENTRY &&
	       reader_fits(reader, range, ret->start + ret->entry_size * ret->capacity);
}

static bool is_dict(struct reader *reader, struct memory_range range, const uint64_t *words,
		    struct keys *ret)
{
	return words[KEYS] == range.start && read_keys(reader, range, ret) &&
	       words[LENGTH] <= ret->capacity && python_is(reader, words, PYTHON_DICT);
}

static void match(struct reader *reader, const struct reference *reference)
{
	uint64_t words[OWNER_WORDS];
	struct keys keys;

	if (reference_words(reference, -KEYS, OWNER_WORDS, words) &&
	    is_dict(reader, reference->range, words, &keys))
		reader_claim(reader, reference->target, reference->address - WORD * KEYS);
}

static bool measure(struct reader *reader, struct memory_range range, uint64_t owner,
		    struct pattern_extent *ret)
{
	uint64_t words[OWNER_WORDS];
	struct keys keys;

	if (!reader_words(reader, owner, OWNER_WORDS, words) ||
	    !is_dict(reader, range, words, &keys))
		return false;
	ret->asked = keys.start + keys.entry_size * keys.capacity;
	ret->spare = keys.entry_size * (keys.capacity - keys.used);
	ret->live_end = ret->asked - ret->spare;
	return true;
}

static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	uint64_t words[OWNER_WORDS];
	struct keys keys;

	if (!reader_words(reader, facts->owner, OWNER_WORDS, words) ||
	    !is_dict(reader, range, words, &keys))
		return;
	facts->unit = "entries";
	facts->length = words[LENGTH];
	facts->has_capacity = true;
	facts->capacity = keys.capacity;
	facts->dead = "spare capacity of a dict";
	facts->live_end = keys.start + keys.entry_size * keys.used;
}

const struct classifier classifier_python_dict_entries = {
	.name = "PythonDictEntries",
	.summary = "the keys, and mostly the values, of a dict of Python",
	.role = "the entries of the dict",
	.strength = STRENGTH_MARKED,
	.runtime = &runtime_python,
	.match = match,
	.tell = tell,
	.measure = measure,
};
