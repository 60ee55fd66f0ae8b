#include "analyzer/runtimes/ruby/pages.h"

enum {
	WORD = 8,
	SMALL_PAGE = 16 << 10,
	LARGE_PAGE = 64 << 10, /* from Ruby 3.2 on */
	BASE_SLOT = 40,
	LARGEST_SLOT = 16 * BASE_SLOT,
	MOST_BEFORE_SLOTS = LARGEST_SLOT + BASE_SLOT, /* 3.3 aligns them */
	/* Slots fill the page, but for less than a slot and its head. */
	MOST_UNUSED = LARGEST_SLOT + 64,
};

struct page {
	uint64_t heap_page, start, end, slot_size;
};

/* Whether it is 40 times a power of two. */
static bool is_slot_size(uint64_t size)
{
	uint64_t times = size / BASE_SLOT;

	return size % BASE_SLOT == 0 && times > 0 && (times & (times - 1)) == 0 &&
	       size <= LARGEST_SLOT;
}

static bool read_page(const struct image *image, uint64_t address, struct page *ret)
{
	enum { HEAD_WORDS = 12 };
	uint64_t head[HEAD_WORDS], slots;

	if (!image_read_u64(image, address, &ret->heap_page) || ret->heap_page % WORD != 0 ||
	    !image_read(image, ret->heap_page, head, sizeof(head)))
		return false;
	slots = head[0] & UINT16_MAX;
	ret->slot_size = BASE_SLOT;
	if (is_slot_size(slots)) {
		ret->slot_size = slots;
		slots = head[0] >> 16 & UINT16_MAX;
	}
	for (size_t i = 1; i < HEAD_WORDS; i++) {
		if (head[i] - address - 1 >= MOST_BEFORE_SLOTS)
			continue;
		ret->start = head[i];
		ret->end = head[i] + slots * ret->slot_size;
		return true;
	}
	return false;
}

static uint64_t measure_page(const struct image *image, uint64_t address)
{
	struct page page;
	uint64_t bytes;

	if (!read_page(image, address, &page) || page.heap_page - address < LARGE_PAGE)
		return 0;
	bytes = page.end - address;
	if (bytes <= SMALL_PAGE)
		return bytes + MOST_UNUSED > SMALL_PAGE ? SMALL_PAGE : 0;
	return bytes <= LARGE_PAGE && bytes + MOST_UNUSED > LARGE_PAGE ? LARGE_PAGE : 0;
}

const struct object_pages ruby_pages = {
	.name = "Ruby's objects",
	.alignment = { SMALL_PAGE },
	.measure = measure_page,
	.is_certain = true,
};

/* A Fixnum: 2n + 1. */
static void decode(const uint64_t *words, size_t count, uint64_t *ret)
{
	for (size_t i = 0; i < count; i++)
		ret[i] = words[i] & 1 ? words[i] >> 1 : 0;
}

/* Not in a slot of what holds no VALUE there. */
static bool check(const struct image *image, uint64_t place, uint64_t address)
{
	enum { TYPE = 0x1f };
	static const uint64_t sizes[] = { SMALL_PAGE, LARGE_PAGE };
	/* none, float, string, big number, zombie, moved */
	static const uint32_t valueless =
		1U << 0 | 1U << 4 | 1U << 5 | 1U << 10 | 1U << 29 | 1U << 30;
	struct page page;
	uint64_t flags;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		if (!read_page(image, place & ~(sizes[i] - 1), &page) || place < page.start ||
		    place >= page.end)
			continue;
		place -= (place - page.start) % page.slot_size;
		return !image_read_u64(image, place, &flags) || !(valueless >> (flags & TYPE) & 1);
	}
	return true;
}

const struct integer_encoding ruby_integer = {
	.name = "Ruby Integer",
	.decode = { decode },
	.check = check,
};
