#include "analyzer/runtimes/python/entries.h"

enum { WORD = 8 };

static const uint64_t MOST_ITEMS = 1 << 28;

/* From 3.11 on: powers of two of the sizes, and the kind; entries of kind 0 have a hash. */
static bool read_entries(const uint64_t *words, uint64_t table, struct python_entries *ret)
{
	enum { HEAD = 32, MOST_POWER = 40, KINDS = 3 };
	uint64_t power = words[1] & UINT8_MAX, bytes = words[1] >> 8 & UINT8_MAX;
	uint64_t kind = words[1] >> 16 & UINT8_MAX, start = table + HEAD;

	if (power > MOST_POWER || bytes > MOST_POWER || kind >= KINDS ||
	    words[3] > UINT64_C(1) << power || words[2] > UINT64_C(1) << power)
		return false;
	start += UINT64_C(1) << bytes;
	*ret = kind == 0 ? (struct python_entries){ start + WORD, 3 * WORD, words[3] }
			 : (struct python_entries){ start, 2 * WORD, words[3] };
	return true;
}

/* Up to 3.10: the size, a function, free ones, entries. */
static bool read_old_entries(const uint64_t *words, uint64_t table, struct python_entries *ret)
{
	enum { HEAD = 40 };
	uint64_t size = words[1];
	uint64_t bytes = size <= UINT8_MAX    ? 1
			 : size <= UINT16_MAX ? 2
			 : size <= UINT32_MAX ? 4
					      : 8;

	if (size == 0 || (size & (size - 1)) != 0 || size > MOST_ITEMS || words[4] > size)
		return false;
	*ret = (struct python_entries){ table + HEAD + size * bytes + WORD, 3 * WORD, words[4] };
	return true;
}

bool python_find_entries(struct view *view, uint64_t table, struct python_entries *ret)
{
	uint64_t words[5];

	return table != 0 && table % WORD == 0 && view_read(view, table, words, sizeof(words)) &&
	       (read_entries(words, table, ret) || read_old_entries(words, table, ret)) &&
	       ret->count <= MOST_ITEMS;
}

/* Up to 3.10, the number of entries and a function stand there. */
static bool find_shared(struct view *view, uint64_t table, struct python_entries *ret)
{
	enum { SPLIT = 2, LEAST = 4 };
	uint64_t words[5];

	if (table == 0 || table % WORD != 0 || !view_read(view, table, words, sizeof(words)))
		return false;
	if ((words[1] >> 16 & UINT8_MAX) == SPLIT)
		return read_entries(words, table, ret);
	return words[1] >= LEAST && words[2] && image_find(view->image, words[2]) &&
	       read_old_entries(words, table, ret);
}

bool python_find_shared_keys(struct view *view, uint64_t type, uint64_t *ret_table,
			     struct python_entries *ret)
{
	/* Types compiled into the interpreter end there; types of programs have more. */
	enum { TYPE_END = 416, MOST_MORE = 64 };

	for (uint64_t place = type + TYPE_END; place < type + TYPE_END + MOST_MORE * WORD;
	     place += WORD)
		if (view_word(view, place, ret_table) && find_shared(view, *ret_table, ret))
			return true;
	return false;
}
