#include "analyzer/classify/classifier.h"
#include "analyzer/classify/containers.h"

static void match(struct reader *reader, const struct reference *reference)
{
	struct hash_table table;
	uint64_t words[4]; /* bucket count, first node, size, load */

	if (reference_words(reference, 1, 4, words) && words[0] > 0 &&
	    words[0] <= range_size(reference->range) / 8 &&
	    reader_fits(reader, reference->range, 8 * words[0]) &&
	    hash_table_read(reader, reference->address, &table))
		reader_claim(reader, reference->target, table.address);
}

static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	struct hash_table table;

	if (!hash_table_read(reader, facts->owner, &table))
		return;
	facts->unit = "elements";
	facts->length = table.size;
}

/* Buckets beyond those that so many nodes need; which, cannot be said. */
static bool measure(struct reader *reader, struct memory_range range, uint64_t owner,
		    struct pattern_extent *ret)
{
	struct hash_table table;
	double buckets;
	uint64_t needed;

	if (!hash_table_read(reader, owner, &table) || table.buckets != range.start)
		return false;
	buckets = (double)table.size / (double)table.load;
	needed = (uint64_t)buckets;
	if ((double)needed < buckets)
		needed++;
	ret->asked = 8 * table.bucket_count;
	ret->live_end = ret->asked;
	if (needed < table.bucket_count)
		ret->spare = 8 * (table.bucket_count - needed);
	return true;
}

const struct classifier classifier_unordered_map_or_set_buckets = {
	.name = "UnorderedMapOrSetBuckets",
	.summary = "the hash table of a std::unordered_map or the like",
	.role = "the buckets of the std::unordered_map or std::unordered_set",
	.strength = STRENGTH_LINKED,
	.for_cxx = true,
	.match = match,
	.tell = tell,
	.measure = measure,
	.favors = favors_first_word,
};
