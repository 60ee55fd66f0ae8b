#include "allocators/zend/zend.h"

/* Zend/zend_alloc_sizes.h */
const struct zend_bin zend_bins[ZEND_BINS] = {
	{ 8, 1 },    { 16, 1 },	  { 24, 1 },   { 32, 1 },   { 40, 1 },	 { 48, 1 },
	{ 56, 1 },   { 64, 1 },	  { 80, 1 },   { 96, 1 },   { 112, 1 },	 { 128, 1 },
	{ 160, 1 },  { 192, 1 },  { 224, 1 },  { 256, 1 },  { 320, 5 },	 { 384, 3 },
	{ 448, 1 },  { 512, 1 },  { 640, 5 },  { 768, 3 },  { 896, 2 },	 { 1024, 2 },
	{ 1280, 5 }, { 1536, 3 }, { 1792, 7 }, { 2048, 4 }, { 2560, 5 }, { 3072, 3 },
};

enum { LARGE = 1, SMALL = 2, SMALL_REST = 3 }; /* the upper two bits of a page's word */

static uint32_t kind_of(uint32_t word)
{
	return word >> 30;
}

static uint32_t bin_of(uint32_t word)
{
	return word & 0x1f;
}

bool zend_read_head(struct view *view, const struct zend_space *space, uint64_t chunk,
		    struct zend_head *ret)
{
	return view_read(view, chunk + space->map - sizeof(ret->bits), ret, sizeof(*ret));
}

static bool is_taken(const struct zend_head *head, uint32_t number)
{
	return head->bits[number / 64] >> number % 64 & 1;
}

/* True if all pages of the run or large block are in the chunk and taken. */
static bool is_whole(const struct zend_head *head, uint32_t first, uint32_t count)
{
	if (count == 0 || count > ZEND_PAGES - first)
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!is_taken(head, first + i))
			return false;
	return true;
}

struct zend_page zend_read_page(const struct zend_head *head, uint32_t number)
{
	uint32_t word = head->map[number];
	struct zend_page page = { .kind = ZEND_FREE, .first = number, .count = 1 };

	if (!is_taken(head, number))
		return page;
	page.kind = ZEND_NONSENSE;
	if (kind_of(word) == LARGE) {
		page.count = word & 0x3ff;
		page.kind = ZEND_LARGE;
	} else if (kind_of(word) >= SMALL && bin_of(word) < ZEND_BINS) {
		uint32_t offset = kind_of(word) == SMALL_REST ? word >> 16 & 0x1ff : 0;

		page.bin = bin_of(word);
		page.count = zend_bins[page.bin].pages;
		if (offset < page.count && offset < number) {
			page.first = number - offset;
			word = head->map[page.first];
			if (kind_of(word) == SMALL && bin_of(word) == page.bin)
				page.kind = ZEND_RUN;
		}
	}
	if (!is_whole(head, page.first, page.count))
		page = (struct zend_page){ ZEND_NONSENSE, number, 1, 0 };
	return page;
}
