#include "analyzer/account/bill_parts.h"

#include <string.h>

/*
 * The head of a page of Ruby's objects leads to its struct heap_page (gc.c), one of whose first
 * words leads back to where objects begin:
 *
 *	page (16 or 64 KiB)          struct heap_page
 *	| *heap_page | objects |     | u16 slot size, slots | .. start .. |
 *
 * Up to Ruby 3.0, slots have 40 bytes, and their number comes first.
 */
enum {
	SMALL_PAGE = 16 << 10,
	LARGE_PAGE = 64 << 10, /* from Ruby 3.2 on */
	SMALLEST_SLOT = 40,
	LARGEST_SLOT = 640,
	MOST_BEFORE_SLOTS = LARGEST_SLOT + SMALLEST_SLOT, /* 3.3 aligns them */
	HEAD_WORDS = 12,
	/* Slots fill the page, but for less than a slot and its head. */
	MOST_UNUSED = LARGEST_SLOT + 64,
};

struct ruby {
	const struct image *image;
	struct ledger *ledger;
	row_number row;
};

static bool is_slot_size(unsigned int size)
{
	return size >= SMALLEST_SLOT && size <= LARGEST_SLOT && size % SMALLEST_SLOT == 0;
}

/* How large the page at address is, by its slots; 0: it is none. */
static uint64_t page_size(uint64_t address, const uint64_t *head)
{
	uint64_t size = SMALLEST_SLOT, slots = head[0] & UINT16_MAX;
	uint64_t bytes, start = 0;

	if (is_slot_size((unsigned int)slots)) {
		size = slots;
		slots = head[0] >> 16 & UINT16_MAX;
	}
	for (size_t i = 1; i < HEAD_WORDS && start == 0; i++)
		if (head[i] - address - 1 < MOST_BEFORE_SLOTS)
			start = head[i] - address;
	bytes = start + size * slots;
	if (start == 0)
		return 0;
	if (bytes <= SMALL_PAGE)
		return bytes + MOST_UNUSED > SMALL_PAGE ? SMALL_PAGE : 0;
	return bytes <= LARGE_PAGE && bytes + MOST_UNUSED > LARGE_PAGE ? LARGE_PAGE : 0;
}

static uint64_t find_page(const struct image *image, uint64_t address)
{
	uint64_t page, head[HEAD_WORDS];

	if (!image_read_u64(image, address, &page) || page % 8 != 0 ||
	    page - address < LARGE_PAGE || !image_read(image, page, head, sizeof(head)))
		return 0;
	return page_size(address, head);
}

static struct error *claim_pages(void *data, const struct region *region, uint64_t start,
				 uint64_t end)
{
	const struct ruby *ruby = data;
	uint64_t at = (start + SMALL_PAGE - 1) & ~(uint64_t)(SMALL_PAGE - 1);
	struct error *error = NULL;

	if (!region->bytes || region->mapping)
		return NULL;
	while (!error && at < end && end - at >= SMALL_PAGE) {
		uint64_t data_at = image_next_data(ruby->image, at);
		uint64_t size;

		if (data_at - at >= SMALL_PAGE) {
			at = data_at & ~(uint64_t)(SMALL_PAGE - 1);
			continue;
		}
		size = find_page(ruby->image, at);
		if (size > end - at)
			size = 0;
		if (size)
			error = ledger_claim(ruby->ledger, at, at + size, ruby->row);
		at += size ? size : SMALL_PAGE;
	}
	return error;
}

static bool has_ruby(const struct program *program)
{
	for (size_t i = 0; i < program_module_count(program); i++)
		if (strstr(module_name(program_module(program, i)), "ruby"))
			return true;
	return false;
}

struct error *bill_add_ruby(struct bill *bill, struct analysis *analysis)
{
	struct ruby ruby = {
		.image = analysis_image(analysis),
		.ledger = bill->ledger,
	};
	struct error *error;

	if (!has_ruby(analysis_program(analysis)))
		return NULL;
	error = ledger_add_row(bill->ledger, "other memory", "Ruby's objects", &ruby.row);
	if (!error)
		error = ledger_rest(bill->ledger, claim_pages, &ruby);
	return error ? error : ledger_settle(bill->ledger, NULL, NULL);
}
