/*
 * The containers of C++ that more than one classifier knows: read from where the container stands,
 * and checked against themselves.
 *
 * Each _read() says whether what is there is such a container, as strictly as its parts can be
 * checked against each other.
 */
#ifndef ANALYZER_CLASSIFY_CONTAINERS_H
#define ANALYZER_CLASSIFY_CONTAINERS_H

#include "analyzer/classify/reader.h"

/* std::unordered_map and the like, also those of several equal keys. */
struct hash_table {
	uint64_t address;
	uint64_t buckets, bucket_count;
	uint64_t link;	/* the address of the pointer to the first node */
	uint64_t first; /* node; 0: none */
	uint64_t size;	/* nodes */
	float load;	/* nodes for each bucket, at most */
};

/* The table at the address of its pointer to its buckets, or false. */
bool hash_table_read(struct reader *reader, uint64_t address, struct hash_table *ret);

/* std::deque: a map of blocks, of which those from first to last are in use. */
struct deque {
	uint64_t address;
	struct memory_range map;
	uint64_t first, last; /* where in the map their pointers stand */
	uint64_t begin, end;  /* of the elements; 0: not told */
	uint64_t block_size;  /* bytes asked for each block; 0: not told */
	uint64_t map_size;    /* bytes asked for the map */
};

/* The deque at address, whose map is the allocation. */
bool deque_read(struct reader *reader, uint64_t address, struct memory_range map,
		struct deque *ret);

/*
 * The same where it tells where its elements are. That takes a few steps, how many blocks there
 * ever are, so it may be asked for each.
 */
bool deque_read_elements(struct reader *reader, uint64_t address, struct memory_range map,
			 struct deque *ret);

#endif
