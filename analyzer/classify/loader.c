#include "analyzer/classify/loader.h"

enum {
	WORD_ADDRESS,
	WORD_NAME,
	WORD_DYNAMIC,
	WORD_NEXT,
	WORD_PREVIOUS,
	WORD_REAL,
	WORDS,
};

bool is_link_map(const struct reader *reader, struct memory_range range, const uint8_t *bytes,
		 uint64_t size)
{
	uint64_t words[WORDS], real;

	if (size < LINK_MAP_LEAST_SIZE)
		return false;
	memcpy(&real, bytes + 8 * WORD_REAL, sizeof(real));
	if (real != range.start)
		return false;
	memcpy(words, bytes, sizeof(words));
	return words[WORD_NAME] && words[WORD_PREVIOUS] % 8 == 0 && words[WORD_NEXT] % 8 == 0 &&
	       reader_in_module(reader, words[WORD_DYNAMIC]) &&
	       words[WORD_DYNAMIC] > words[WORD_ADDRESS];
}
