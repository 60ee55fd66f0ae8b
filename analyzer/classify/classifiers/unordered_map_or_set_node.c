#include "analyzer/classify/classifier.h"
#include "analyzer/classify/containers.h"

/* All nodes are in one chain, whatever their buckets. */
static void claim_all(struct reader *reader, const struct hash_table *table)
{
	uint64_t node = table->first;

	for (uint64_t i = 0; i < table->size && node; i++) {
		struct memory_range range;
		allocation_id id = reader_start(reader, node, &range);

		if (id == NO_ALLOCATION || !reader_step(reader))
			return;
		reader_claim(reader, id, table->address);
		if (!reader_word(reader, node, &node))
			return;
	}
}

/* The reference is that to the first node. */
static void match(struct reader *reader, const struct reference *reference)
{
	uint64_t words[5]; /* buckets, bucket count, first node, size, load */
	struct hash_table table;

	if (reference_words(reference, -2, 5, words) && words[0] % 8 == 0 && words[1] > 0 &&
	    words[3] > 0 && words[3] <= allocation_count(reader->index) &&
	    hash_table_read(reader, reference->address - 16, &table))
		claim_all(reader, &table);
}

static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	facts->unit = "elements";
	reader_word(reader, facts->owner + 24, &facts->length);
}

/*
 * By the table's link to the first node, or by that of the node in front of it. Nodes begin with
 * their link, as the buckets do, and are of one size, of which malloc may give 16 bytes more.
 */
static bool favors(struct reader *reader, struct memory_range range, uint64_t owner,
		   uint64_t address)
{
	struct memory_range node = { 0 };
	uint64_t buckets, word;

	if (address == owner + 16)
		return true;
	return reader_word(reader, address, &word) && word == range.start &&
	       reader_start(reader, address, &node) != NO_ALLOCATION &&
	       range_size(node) + 16 - range_size(range) <= 32 &&
	       reader_word(reader, owner, &buckets) && buckets != address;
}

const struct classifier classifier_unordered_map_or_set_node = {
	.name = "UnorderedMapOrSetNode",
	.summary = "an element of a std::unordered_map or the like",
	.role = "a node of the std::unordered_map or std::unordered_set",
	.strength = STRENGTH_LINKED,
	.for_cxx = true,
	.walks = true,
	.match = match,
	.tell = tell,
	.favors = favors,
};
