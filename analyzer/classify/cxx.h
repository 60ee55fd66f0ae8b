/*
 * C++ without debug information: which standard library the program uses, and which bytes are a
 * std::string.
 */
#pragma once

#include "analyzer/classify/reader.h"

/* The C++ libraries in use: the sum of enum cxx_library. */
unsigned int cxx_find(const struct image *image, const struct program *program);

enum string_kind {
	STRING_SHORT,  /* its text is within it */
	STRING_LONG,   /* its text is an allocation of its own */
	STRING_SHARED, /* the same, and strings may share it: copy on write */
};

struct cxx_string {
	enum string_kind kind;
	uint64_t size; /* of the string itself, not of its text */
	uint64_t text, length, capacity;
	allocation_id body; /* that the text is in, unless it is short */
};

/* The most words that decide it: of 8 bytes, 4 do. */
enum { STRING_WORDS = 6 };

/*
 * True if body, an allocation, has the text of a libstdc++ std::string at address. The words behind
 * the pointer to it are its length, its capacity, and an unused one. C programs have similar
 * buffers, so there must be text, or a capacity to which strings grow.
 */
enum { STRING_WORDS_BEHIND = 3 };

bool cxx_is_body(struct reader *reader, uint64_t address, struct memory_range body,
		 const uint64_t *words);

/* True if a libc++ string with a buffer may have this word as its size. */
bool cxx_is_libcxx_size(uint64_t word);

/* Like cxx_is_body(), for libc++, whose strings have more to check. */
bool cxx_is_libcxx_body(struct reader *reader, struct memory_range body, uint64_t length,
			uint64_t capacity);

/* True if body has a text that strings may share, this many words behind its start. */
enum { SHARED_TEXT = 3 };

static inline uint64_t cxx_shared_text(const struct reader *reader)
{
	return SHARED_TEXT * (uint64_t)reader->word;
}

bool cxx_read_shared(struct reader *reader, struct memory_range body, uint64_t *ret_length,
		     uint64_t *ret_capacity);

/*
 * True if a std::string is at address, given count words, at most STRING_WORDS. Short strings of
 * libc++ look like anything, and are not found.
 */
bool cxx_string_read(struct reader *reader, uint64_t address, const uint64_t *words, size_t count,
		     struct cxx_string *ret);
