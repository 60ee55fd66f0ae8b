/*
 * The layouts of mimalloc's versions. Those with keys are of secure and debug builds, which encode
 * the links of free lists.
 */
#include "allocators/mimalloc/mimalloc.h"

enum {
	IN_USE = 1,	/* 1.x: its lowest bit says whether the page is */
	LIST_FLAGS = 3, /* bits of the list that other threads freed into */
	SMALL_LEAST = 8,
	SMALL_MOST = 1024,	/* larger blocks begin where the page does: 2.0 */
	TRIPLE_MOST = 64,	/* START_BLOCKS: blocks behind which there is room for three */
	SINGLE_MOST = 512,	/* or for one */
	SHIFTED_MOST = 1 << 17, /* START_MULTIPLE: larger ones begin where the page does */
	HUGE_BYTES = 64 << 20,	/* in a segment for itself; from there on, the size is the page's */
	USED_LEAST = 2,		/* below it, the size is that of a free span */
};

/* clang-format off */
#define SEGMENT_17 .form = FORM_PAGES, .start_form = START_MULTIPLE, .pages = 136, .cookie = 104, \
	.extent = 88, .shift = 112
#define SEGMENT_18 .form = FORM_PAGES, .start_form = START_MULTIPLE, .pages = 136, .cookie = 104, \
	.extent = 32, .shift = 112
#define SEGMENT_189 .form = FORM_PAGES, .start_form = START_STATED, .pages = 160, .cookie = 112, \
	.extent = 32, .shift = 144
#define SEGMENT_20 .form = FORM_SLICES, .pages = 264, .cookie = 216
#define SEGMENT_22 .form = FORM_SLICES, .pages = 288, .cookie = 224
#define MAP .form = FORM_MAP

#define PAGE_17 .stride = 64, .capacity = 2, .free = 8, .used = 16, .size = 20, .local = 24, \
	.thread = 32, .heap = 40
#define PAGE_17_KEYS .stride = 80, .capacity = 2, .free = 8, .used = 16, .size = 20, .local = 24, \
	.keys = 32, .thread = 48, .heap = 56
#define PAGE_189 .stride = 80, .capacity = 2, .free = 8, .local = 16, .used = 24, .size = 32, \
	.start = 40, .thread = 48, .heap = 56
#define PAGE_189_KEYS .stride = 96, .capacity = 2, .free = 8, .local = 16, .used = 24, .size = 32, \
	.start = 40, .keys = 48, .thread = 64, .heap = 72
#define PAGE_20 .stride = 80, .capacity = 10, .free = 16, .used = 24, .size = 28, .local = 32, \
	.thread = 40, .heap = 48
#define PAGE_20_KEYS .stride = 96, .capacity = 10, .free = 16, .used = 24, .size = 28, \
	.local = 32, .keys = 40, .thread = 56, .heap = 64
#define PAGE_21 .stride = 96, .capacity = 10, .free = 16, .local = 24, .used = 32, .size = 40, \
	.start = 48, .thread = 56, .heap = 64
#define PAGE_21_KEYS .stride = 112, .capacity = 10, .free = 16, .local = 24, .used = 32, \
	.size = 40, .start = 48, .keys = 56, .thread = 72, .heap = 80
#define PAGE_30 .free = 8, .used = 16, .capacity = 18, .local = 24, .thread = 32, \
	.size = 40, .start = 48

static const struct mimalloc_layout layouts[] = {
	{ SEGMENT_20, PAGE_20, .start_form = START_384 },	/* 2.0.9 */
	{ SEGMENT_20, PAGE_20_KEYS, .start_form = START_384 },
	{ SEGMENT_20, PAGE_20, .start_form = START_BLOCKS },	/* 2.1.0 to 2.1.2 */
	{ SEGMENT_20, PAGE_20_KEYS, .start_form = START_BLOCKS },
	{ SEGMENT_20, PAGE_20, .start_form = START_128 },	/* 2.0.0 to 2.0.7 */
	{ SEGMENT_20, PAGE_20_KEYS, .start_form = START_128 },
	{ SEGMENT_20, PAGE_21, .start_form = START_STATED },	/* 2.1.4 to 2.1.9 */
	{ SEGMENT_20, PAGE_21_KEYS, .start_form = START_STATED },
	{ SEGMENT_22, PAGE_21, .start_form = START_STATED },	/* 2.2 to 2.4 */
	{ SEGMENT_22, PAGE_21_KEYS, .start_form = START_STATED },
	{ SEGMENT_17, PAGE_17 },				/* 1.7 */
	{ SEGMENT_17, PAGE_17_KEYS },
	{ SEGMENT_18, PAGE_17 },				/* 1.8.0 to 1.8.2 */
	{ SEGMENT_18, PAGE_17_KEYS },
	{ SEGMENT_189, PAGE_189 },				/* 1.8.9, 1.9 */
	{ SEGMENT_189, PAGE_189_KEYS },
	{ MAP, PAGE_30, .start_form = START_STATED, .memory = 96 }, /* 3.0 to 3.3 */
	{ MAP, PAGE_30, .start_form = START_STATED, .keys = 64, .memory = 112 }, /* 3.0, 3.1 */
	{ MAP, PAGE_30, .start_form = START_STATED, .keys = 56, .memory = 112 }, /* 3.2, 3.3 */
	{ MAP, PAGE_30, .start_form = START_WORDS, .memory = 88 },		 /* 3.4 */
	{ MAP, PAGE_30, .start_form = START_WORDS, .keys = 56, .memory = 104 },
	{ MAP, .start_form = START_BYTES, .free = 16, .local = 24, .size = 32, .used = 40,
	  .start = 48, .capacity = 56, .thread = 64, .memory = 104 },		/* 3.6 */
};
/* clang-format on */

size_t mimalloc_layout_count(void)
{
	return COUNT_OF(layouts);
}

const struct mimalloc_layout *mimalloc_layout(size_t number)
{
	return &layouts[number];
}

static uint64_t word_at(const uint8_t *bytes, unsigned int offset)
{
	uint64_t word;

	memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

/* The address where blocks begin, as the metadata say it; 0: they do not. */
static uint64_t stated_start(const struct mimalloc_layout *layout, uint64_t address, uint64_t word)
{
	switch (layout->start_form) {
	case START_STATED:
		return word;
	case START_WORDS:
		return address + 8 * (uint64_t)(uint32_t)word;
	case START_BYTES:
		return address + word;
	default:
		return 0;
	}
}

bool mimalloc_read_page(const struct mimalloc_layout *layout, struct view *view, uint64_t address,
			struct mimalloc_page *ret)
{
	uint8_t bytes[PAGE_METADATA];
	bool is_wide = layout->start_form >= START_STATED;
	uint64_t used;

	memset(bytes, 0, sizeof(bytes));
	if (!view_read(view, address, bytes,
		       layout->form == FORM_MAP ? sizeof(bytes) : layout->stride))
		return false;
	used = word_at(bytes, layout->used);
	*ret = (struct mimalloc_page){
		.metadata = address,
		.bytes = is_wide ? word_at(bytes, layout->size) : used >> 32,
		.first = stated_start(layout, address, word_at(bytes, layout->start)),
		.lists = { word_at(bytes, layout->free), word_at(bytes, layout->local),
			   word_at(bytes, layout->thread) & ~(uint64_t)LIST_FLAGS },
		.capacity = (uint16_t)word_at(bytes, layout->capacity),
		.used = is_wide ? (uint16_t)used : (uint32_t)used,
	};
	if (ret->bytes < USED_LEAST || (layout->form == FORM_PAGES && !(bytes[IN_USE] & 1)))
		ret->bytes = 0;
	if (layout->heap)
		ret->heap = word_at(bytes, layout->heap);
	for (unsigned int i = 0; i < 2; i++) {
		if (layout->keys)
			ret->keys[i] = word_at(bytes, layout->keys + 8 * i);
		if (layout->memory)
			ret->memory[i] = word_at(bytes, layout->memory + 8 * i);
	}
	ret->reserved = (uint16_t)word_at(bytes, layout->capacity + 2U);
	return true;
}

/* The distance from the page's start to its blocks, if no metadata state it. */
static uint64_t unstated_offset(const struct mimalloc_layout *layout, bool is_behind_head,
				const struct mimalloc_page *page)
{
	uint64_t bytes = page->bytes;

	switch (layout->start_form) {
	case START_128:
		return bytes >= SMALL_LEAST && bytes <= SMALL_MOST ? 128 : 0;
	case START_384:
		return bytes >= SMALL_LEAST && bytes <= SMALL_MOST ? 384 : 0;
	case START_BLOCKS:
		if (bytes < SMALL_LEAST || bytes > SINGLE_MOST)
			return 0;
		return bytes > TRIPLE_MOST ? bytes : 3 * bytes;
	case START_MULTIPLE:
		return is_behind_head && bytes <= SHIFTED_MOST
			       ? (bytes - page->start % bytes) % bytes
			       : 0;
	default:
		return 0;
	}
}

void mimalloc_set_first(const struct mimalloc_layout *layout, bool is_behind_head,
			struct mimalloc_page *page)
{
	uint64_t room;

	if (!page->bytes)
		return;
	if (layout->start_form < START_STATED)
		page->first = page->start + unstated_offset(layout, is_behind_head, page);
	room = page->first >= page->start && page->first < page->end ? page->end - page->first : 0;
	if (layout->start_form < START_STATED && page->bytes >= HUGE_BYTES)
		page->bytes = room;
	if (page->bytes > 0 && page->capacity > room / page->bytes)
		page->capacity = (uint32_t)(room / page->bytes);
}
