#include "allocators/ruby/ruby.h"

#include "analyzer/base/keep.h"
#include "analyzer/base/list.h"

enum {
	WORD = 8,
	HEAD_WORDS = 12, /* of struct heap_page, which lead back at the latest */
	LARGEST_SLOT = RUBY_BASE_SLOT << (RUBY_SLOT_SIZES - 1),
	MOST_BEFORE_SLOTS = LARGEST_SLOT + RUBY_BASE_SLOT, /* 3.3 aligns them */
	/* Slots fill the page, but for less than a slot and its head. */
	MOST_UNUSED = LARGEST_SLOT + 64,
};

/* True if size is 40 times a power of two. */
static bool is_slot_size(uint32_t size)
{
	uint32_t times = size / RUBY_BASE_SLOT;

	return size % RUBY_BASE_SLOT == 0 && times > 0 && (times & (times - 1)) == 0 &&
	       size <= LARGEST_SLOT;
}

static bool is_full(const struct ruby_page *page)
{
	uint64_t bytes = ruby_slots_end(page) - page->address, size = ruby_page_size(page);

	return bytes <= size && bytes + MOST_UNUSED > size && page->address % size == 0;
}

bool ruby_read_page(struct view *view, uint64_t address, struct ruby_page *ret)
{
	uint64_t heap_page, head[HEAD_WORDS];

	if (!view_word(view, address, &heap_page) || heap_page % WORD != 0 || heap_page == 0 ||
	    heap_page - address < RUBY_BASE_SLOT || !view_read(view, heap_page, head, sizeof(head)))
		return false;
	*ret = (struct ruby_page){
		.address = address,
		.slot_size = RUBY_BASE_SLOT,
		.slots = head[0] & UINT16_MAX,
	};
	if (is_slot_size(ret->slots)) {
		ret->slot_size = ret->slots;
		ret->slots = head[0] >> 16 & UINT16_MAX;
	}
	for (uint32_t i = 1; i < HEAD_WORDS; i++) {
		if (head[i] % WORD != 0 || head[i] - address - 1 >= MOST_BEFORE_SLOTS)
			continue;
		ret->first_slot = head[i];
		ret->place = i;
		/* It may be near, even right behind the slots: up to 2.7, a page is a bit shorter.
		 */
		return is_full(ret) && heap_page - address >= ruby_slots_end(ret) - address;
	}
	return false;
}

static struct error *find_in(const struct image *image, const struct region *region,
			     struct ruby_pages *pages)
{
	static const uint64_t MASK = RUBY_SMALL_PAGE - 1;
	struct view view = { image };
	struct ruby_page page;

	for (uint64_t at = (region->start + MASK) & ~MASK; at >= region->start && at < region->end;
	     at = (image_next_data(image, at + RUBY_SMALL_PAGE) + MASK) & ~MASK)
		if (ruby_read_page(&view, at, &page))
			TRY(array_append(&pages->list, page));
	return NULL;
}

/* Leave those that most pages agree with, of which none overlaps the one before. */
static void keep_agreed(struct ruby_pages *pages)
{
	size_t votes[HEAD_WORDS] = { 0 }, best = 0;

	array_for_each(page, &pages->list)
		votes[page->place]++;
	for (size_t i = 0; i < HEAD_WORDS; i++)
		if (votes[i] > votes[best])
			best = i;
	array_keep(&pages->list, page, last,
		   page->place == best &&
			   (!last || page->address >= last->address + ruby_page_size(last)));
}

struct error *ruby_find_pages(const struct image *image, struct ruby_pages *pages)
{
	list_for_each(region, image->regions, image->region_count) {
		if (region->bytes && (region->rights & RIGHT_WRITE) && !region->untouched)
			TRY(find_in(image, region, pages));
	}
	keep_agreed(pages);
	return NULL;
}
