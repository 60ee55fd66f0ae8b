/*
 * The heap of MRI, Ruby's interpreter: gc.c, 2.7 to 3.4, and gc/default/default.c of 4.0.
 *
 * An object is a slot of a page; all slots of a page have one size. The head of a page leads to its
 * struct heap_page, which is from malloc() and leads back to the first slot:
 *
 *	page (16 or 64 KiB)        struct heap_page
 *	| *heap_page | slots |     | u16 slot size, u16 slots, ... first slot ... |
 *
 * So the two prove each other, and no symbols are needed. Up to 3.0, slots have 40 bytes, and their
 * number comes first. A page is from mmap(), or from posix_memalign(): then it lies in a block of
 * another allocator.
 *
 * A slot begins with its flags, whose lowest bits are its type; 0 is that of a free slot.
 */
#pragma once

#include "analyzer/heap/allocator.h"
#include "analyzer/image/view.h"

enum {
	RUBY_SMALL_PAGE = 16 << 10,
	RUBY_LARGE_PAGE = 64 << 10,
	RUBY_BASE_SLOT = 40,
	RUBY_SLOT_SIZES = 5, /* 40, 80, 160, 320 and 640 bytes */
	RUBY_TYPE_BITS = 0x1f,
};

struct ruby_page {
	uint64_t address;
	uint64_t first_slot;
	uint32_t slot_size;
	uint32_t slots;
	uint32_t place; /* of the word in struct heap_page that leads back */
	uint32_t used;	/* slots that are; known once the heap was walked */
};

/* Read the page at address, a multiple of RUBY_SMALL_PAGE; false: none is there. */
bool ruby_read_page(struct view *view, uint64_t address, struct ruby_page *ret);

static inline uint64_t ruby_slots_end(const struct ruby_page *page)
{
	return page->first_slot + (uint64_t)page->slots * page->slot_size;
}

/* The size of the page, by the slots that it has. */
static inline uint64_t ruby_page_size(const struct ruby_page *page)
{
	return ruby_slots_end(page) - page->address > RUBY_SMALL_PAGE ? RUBY_LARGE_PAGE
								      : RUBY_SMALL_PAGE;
}

struct ruby_pages {
	ARRAY(struct ruby_page) list; /* by address; they do not overlap */
};

/* Find all pages of the dump; in all, the same word of struct heap_page leads back. */
struct error *ruby_find_pages(const struct image *image, struct ruby_pages *pages);
