/*
 * Finds used allocations that contain a std::string, and its offset.
 *
 * The strings are counted by what the allocation is, its pattern or signature, and by their offset
 * in it: a row for each member variable. In arrays, as the body of a vector, and far behind the
 * start the offset tells nothing.
 */
#ifndef ANALYZER_QUERY_STRING_USERS_H
#define ANALYZER_QUERY_STRING_USERS_H

#include "analyzer/analysis/analysis.h"
#include "analyzer/base/table.h"
#include "analyzer/query/members.h"

/* An offset that is not told. */
#define ANY_OFFSET UINT64_MAX

struct string_use {
	pattern_number pattern;
	uint64_t signature; /* 0: none */
	uint64_t offset;
	uint64_t count; /* of strings */
	uint64_t empty_count, short_count, long_count, shared_count;
	uint64_t length, capacity; /* of the texts outside of their strings */
	uint64_t bytes;		   /* of the allocations that these are in, each once */
};

struct string_uses {
	HASH_TABLE(struct string_use);
};

/* Count the strings in the members. Builds what it needs. Release *ret by table_release(), even
 * after an error. */
struct error *string_uses_count(struct analysis *analysis, const struct bitmap *members,
				struct string_uses *ret);

/* Sort them: most strings first, most bytes, or by what they are in. */
void string_uses_sort(struct string_uses *uses, enum sort_key key);

#endif
