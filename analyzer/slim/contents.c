#include "analyzer/base/list.h"
#include "analyzer/slim/parts.h"

#include <string.h>

/*
 * Between blocks there are their heads, of so many words at most, which have sizes. After damage it
 * may be anything.
 */
enum { MOST_OF_HEAD = 8 };

/* A text has so many characters in its first word, at least. */
enum { LEAST_CHARACTERS = 4, LEAST_WIDE = 2 };

/* A stretch of memory of one origin. */
struct span {
	uint64_t end;
	enum slim_origin origin;
	bool whole;	    /* it stays as it is */
	bool is_head;	    /* of blocks: sizes stay */
	struct block block; /* if it is in one; with size 0, not */
	const struct heap *heap;
};

/*
 * At the start of a block any character is text, as it is to those who look at it later; or a text
 * that is being read goes on in the next word.
 */
enum text_state { TEXT_NONE, TEXT_FIRST, TEXT_BYTES, TEXT_WIDE };

static const struct heap *heap_of(const struct slim_rules *rules, arena_number arena)
{
	for (size_t i = heaps_count(rules->heaps); i-- > 0;) {
		arena_number first;
		const struct heap *heap = heaps_heap(rules->heaps, i, &first);

		if (first <= arena && heap->allocator == heaps_arena_allocator(rules->heaps, arena))
			return heap;
	}
	return NULL;
}

/* The number of the first block of the region above address, which is in none. */
static size_t number_above(const struct slim_rules *rules, const struct heap_region *region,
			   uint64_t address)
{
	size_t low = region->first, high = low + region->count;
	allocation_id below = address > region->start ? allocation_find(rules->index, address - 1)
						      : NO_ALLOCATION;

	/* Mostly, the one below has just been passed. */
	if (below != NO_ALLOCATION)
		return (size_t)below + 1;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (allocation_start(rules->index, (allocation_id)middle) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The start of that block; the region's end if there is none. */
static uint64_t next_block(const struct slim_rules *rules, const struct heap_region *region,
			   uint64_t address)
{
	size_t number = number_above(rules, region, address);

	return number < (size_t)region->first + region->count
		       ? allocation_start(rules->index, (allocation_id)number)
		       : region->end;
}

static struct span span_of_block(const struct slim_rules *rules, const struct heap_region *region,
				 allocation_id id, uint64_t address)
{
	struct memory_range range = allocation_range_around(rules->index, id, address);
	struct block block = { range.start, range.end - range.start,
			       allocation_state(rules->index, id) };
	struct span span = {
		.end = range.end,
		.origin = block.state == BLOCK_USED ? SLIM_USED : SLIM_FREE,
		.block = block,
		.heap = heap_of(rules, region->arena),
	};

	if (block.state == BLOCK_USED && span.heap && span.heap->allocator->keeps &&
	    span.heap->allocator->keeps(span.heap, block)) {
		span.origin = SLIM_ALLOCATOR;
		span.whole = true;
	}
	return span;
}

static struct span span_in_heap(const struct slim_rules *rules, const struct heap_region *region,
				uint64_t address)
{
	allocation_id id = allocation_find(rules->index, address);
	const struct allocator *allocator;
	uint64_t end;

	if (id != NO_ALLOCATION)
		return span_of_block(rules, region, id, address);
	end = next_block(rules, region, address);
	/* Without heads, such as at the ends of pages, there is only what was left there. */
	allocator = heaps_arena_allocator(rules->heaps, region->arena);
	if (!allocator->extent || allocator->visits_heads)
		return (struct span){ end, SLIM_ALLOCATOR };
	if (end - address <= (uint64_t)MOST_OF_HEAD * rules->word)
		return (struct span){ end, SLIM_ALLOCATOR, .is_head = true };
	/* Behind a wide gap, such as one for alignment, the head is right before the block. */
	if (end < region->end)
		end -= (uint64_t)LEAST_OF_HEAD * rules->word;
	return (struct span){ end, SLIM_ALLOCATOR };
}

/* The heap region that begins next above address. */
static uint64_t next_heap(const struct slim_rules *rules, uint64_t address)
{
	size_t low = 0, high = heap_region_count(rules->index);

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (heap_region(rules->index, middle)->start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < heap_region_count(rules->index) ? heap_region(rules->index, low)->start
						     : UINT64_MAX;
}

/* True if the page at address is as in the file, to which the program cannot write. */
static bool is_as_in_file(const struct region *region, uint64_t address, uint64_t size)
{
	const struct mapping *mapping = region->mapping;
	uint64_t offset = mapping->offset + (address - mapping->start);

	return mapping->file && !mapping->file->partial && offset <= mapping->file->size &&
	       mapping->file->size - offset >= size &&
	       memcmp(mapping->file->bytes + offset, region->bytes + (address - region->start),
		      size) == 0;
}

static bool is_of_elf_file(const struct region *region)
{
	const struct image_file *file = region->mapping ? region->mapping->file : NULL;

	return file && file->size >= SELFMAG && memcmp(file->bytes, ELFMAG, SELFMAG) == 0;
}

/* The dump says so, it is code, it is the file's header, or it equals the file. */
bool slim_is_binary(const struct slim_rules *rules, const struct region *region, uint64_t page)
{
	const struct module *module = program_find_module(rules->program, page);
	uint64_t size = region->end - page;

	if (region->rights & RIGHT_WRITE)
		return false;
	/* Guile's code is in ELF files that it maps itself. */
	if (!module)
		return is_of_elf_file(region) && is_as_in_file(region, page, MIN(size, PAGE));
	if (region->origin == REGION_FILE || (region->rights & RIGHT_EXECUTE) ||
	    page == module->start)
		return true;
	return region->mapping && is_as_in_file(region, page, MIN(size, PAGE));
}

static struct span span_outside(const struct slim_rules *rules, const struct region *region,
				uint64_t address)
{
	uint64_t page = page_below(address);
	struct span span = { MIN(page + PAGE, next_heap(rules, address)), SLIM_OTHER };

	if (page < region->start)
		page = region->start;
	if (slim_is_binary(rules, region, page)) {
		span.origin = SLIM_BINARY;
		span.whole = true;
	} else if (program_find_stack(rules->program, address)) {
		span.origin = SLIM_STACK;
	} else if (program_find_module(rules->program, address)) {
		span.origin = SLIM_DATA;
	}
	return span;
}

/* Each byte of a word has its highest bit, its other bits, or 1. */
static const uint64_t ONES = UINT64_MAX / UINT8_MAX, LOW = UINT64_MAX / UINT8_MAX * 0x7f;
static const uint64_t HIGH = UINT64_MAX / UINT8_MAX * 0x80;

/* The highest bit of each byte of the word that has this value. */
static inline uint64_t bytes_equal(uint64_t word, uint8_t value)
{
	uint64_t difference = word ^ ONES * value;

	return ~(((difference & LOW) + LOW) | difference) & HIGH;
}

/* The highest bit of each byte that is printable; no sum of two bytes carries. */
static inline uint64_t bytes_printable(uint64_t word)
{
	uint64_t graphic = ((word & LOW) + ONES * (0x80 - ' ')) & ~((word & LOW) + ONES);

	return ((graphic & HIGH) | bytes_equal(word, '\t') | bytes_equal(word, '\n') |
		bytes_equal(word, '\r')) &
	       ~word;
}

/* How many characters the word begins with, each of so many bytes: 1 or 2. */
static inline unsigned int count_characters(uint64_t word, unsigned int each)
{
	uint64_t places = each == 1 ? HIGH : UINT64_MAX / UINT16_MAX * 0x80;
	uint64_t good = bytes_printable(word), bad;

	if (each == 2)
		good &= bytes_equal(word, 0) >> 8;
	bad = ~good & places;
	return bad ? (unsigned int)__builtin_ctzll(bad) / 8 / each
		   : (unsigned int)sizeof(word) / each;
}

/* True if the text ends within the word of so many bytes, or may go on behind it. */
static inline bool is_terminated(uint64_t word, unsigned int bytes, unsigned int count,
				 unsigned int each)
{
	unsigned int bits = count * each * 8;

	return count == bytes / each || (word >> bits & (each == 1 ? UINT8_MAX : UINT16_MAX)) == 0;
}

/* The bytes of each character of the text that is in the word; 0: it is none. */
static inline unsigned int text_width(uint64_t word, enum text_state state)
{
	unsigned int narrow = count_characters(word, 1), wide;

	if (narrow == 0 && state == TEXT_NONE)
		return 0;
	wide = count_characters(word, 2);
	/* It may end behind the last word. */
	if (state == TEXT_BYTES && (narrow > 0 || (word & UINT8_MAX) == 0))
		return 1;
	if (state == TEXT_WIDE && (wide > 0 || (word & UINT16_MAX) == 0))
		return 2;
	if (wide >= LEAST_WIDE)
		return 2;
	return narrow >= (state == TEXT_FIRST ? 1 : LEAST_CHARACTERS) ? 1 : 0;
}

/* Replace text by letters, and what is left behind its end by zeros; false if the word is none. */
static inline bool redact_text(const struct slim_rules *rules, uint64_t word, unsigned int bytes,
			       uint64_t *ret, enum text_state *state)
{
	/* Without text, the first bytes are rarely all of ASCII, or are the byte of a number. */
	bool may_be_text = *state != TEXT_NONE || (!(word & 0x80808080) && word > UINT8_MAX);
	unsigned int each = may_be_text ? text_width(word, *state) : 0;
	unsigned int count = each ? count_characters(word, each) : 0;

	if (!each || !is_terminated(word, bytes, count, each))
		return false;
	*ret = (each == 1 ? ONES : UINT64_MAX / UINT16_MAX) * rules->letter;
	if (count * each < sizeof(word))
		*ret &= (UINT64_C(1) << count * each * 8) - 1;
	*state = count * each < bytes ? TEXT_NONE : each == 1 ? TEXT_BYTES : TEXT_WIDE;
	return true;
}

/* Words that the allocator leaves in a free block stand at its ends; one may stay once it is used.
 */
static bool is_of_allocator(const struct span *span, uint64_t address, uint64_t word,
			    unsigned int bytes)
{
	uint64_t offset = address - span->block.start;
	const struct heap *heap = span->heap;

	return heap && heap->allocator->wrote &&
	       ((offset <= bytes && span->block.state != BLOCK_USED) ||
		offset == span->block.size - bytes) &&
	       heap->allocator->wrote(heap, span->block, offset, word);
}

/*
 * The state in which the words from address on, which need not be the first of the block, begin:
 * memory is cut anywhere. The word below is there if it is of the same block.
 */
static enum text_state state_at(const struct span *span, uint64_t address, const uint8_t *bytes,
				unsigned int word)
{
	if (address == span->block.start)
		return TEXT_FIRST;
	if (address - span->block.start >= span->block.size)
		return TEXT_NONE;
	if (count_characters(load_word(bytes - word, word), 1) == word)
		return TEXT_BYTES;
	return count_characters(load_word(bytes - word, word), 2) == word / 2 ? TEXT_WIDE
									      : TEXT_NONE;
}

/*
 * Words of 4 characters happen to be addresses where there are many of these: within a text they
 * are no such.
 */
static inline bool is_within_text(uint64_t word, unsigned int bytes, enum text_state state)
{
	return bytes < sizeof(word) && state == TEXT_BYTES && count_characters(word, 1) == bytes;
}

/* Bytes of words: what became of them. */
struct redacted {
	uint64_t addresses, placeholders;
};

/* Redact the words of a span, each of so many bytes, but for structure. */
static inline __attribute__((always_inline)) struct redacted redact_words(
	const struct slim_rules *rules, const struct span *span, unsigned int each,
	uint64_t address, const uint8_t *bytes, uint64_t size, uint8_t *ret)
{
	enum text_state text =
		span->origin == SLIM_USED ? state_at(span, address, bytes, each) : TEXT_NONE;
	struct redacted redacted = { 0 };

	for (uint64_t i = 0; i < size; i += each) {
		uint64_t word = load_word(bytes + i, each);
		bool is_address = word != 0 && slim_is_address(rules, word) &&
				  !is_within_text(word, each, text);

		redacted.addresses += is_address ? each : 0;
		if (word == 0 || is_address || (span->is_head && slim_is_size(rules, word)) ||
		    (span->block.size && is_of_allocator(span, address + i, word, each))) {
			text = TEXT_NONE;
			memcpy(ret + i, &word, each);
			continue;
		}
		redacted.placeholders += each;
		if (!span->block.size || !redact_text(rules, word, each, &word, &text)) {
			text = TEXT_NONE;
			word = slim_placeholder(rules, word);
		}
		memcpy(ret + i, &word, each);
	}
	return redacted;
}

static struct redacted redact_span(const struct slim_rules *rules, const struct span *span,
				   uint64_t address, const uint8_t *bytes, uint64_t size,
				   uint8_t *ret)
{
	/* Each is compiled for its own. */
	if (rules->word == sizeof(uint64_t))
		return redact_words(rules, span, sizeof(uint64_t), address, bytes, size, ret);
	return redact_words(rules, span, sizeof(uint32_t), address, bytes, size, ret);
}

/* True if redacting the word does not change it: what is left out looks like that. */
static bool is_placeholder(const struct slim_rules *rules, uint64_t word)
{
	static const enum text_state states[] = { TEXT_BYTES, TEXT_WIDE };

	for (size_t i = 0; i < COUNT_OF(states); i++) {
		enum text_state state = states[i];
		uint64_t text;

		if (redact_text(rules, word, rules->word, &text, &state) && text == word)
			return true;
	}
	return word == slim_placeholder(rules, word);
}

/* The bytes of words that are not as they were, or, if some were not yet put back, look so. */
static uint64_t count_left_out(const struct slim_rules *rules, const uint8_t *bytes, uint64_t size,
			       const uint8_t *ret, bool by_look)
{
	uint64_t count = 0;

	for (uint64_t i = 0; i < size; i += rules->word) {
		uint64_t word = load_word(bytes + i, rules->word);
		uint64_t now = load_word(ret + i, rules->word);

		if (now != word || (by_look && word && is_placeholder(rules, word)))
			count += rules->word;
	}
	return count;
}

/* Put back what is kept to the byte. Returns how many bytes of words had been left out. */
static uint64_t restore(const struct slim_rules *rules, const struct range_list *list,
			uint64_t address, const uint8_t *bytes, uint64_t size, uint8_t *ret)
{
	size_t i = LIST_ABOVE(list->items, list->count, end, address);
	uint64_t restored = 0;

	for (; i < list->count && list->items[i].start < address + size; i++) {
		uint64_t start = MAX(list->items[i].start, address) - address;
		uint64_t end = MIN(list->items[i].end, address + size) - address;
		/* What is redacted consists of whole words. */
		uint64_t first = start & ~(uint64_t)(rules->word - 1);
		uint64_t all =
			MIN((end + rules->word - 1) & ~(uint64_t)(rules->word - 1), size) - first;

		restored += count_left_out(rules, bytes + first, all, ret + first, true);
		memcpy(ret + start, bytes + start, end - start);
		restored -= count_left_out(rules, bytes + first, all, ret + first, false);
	}
	return restored;
}

static uint64_t count_zeros(const uint8_t *bytes, uint64_t size, unsigned int each)
{
	uint64_t count = 0;

	for (uint64_t i = 0; i < size; i += each)
		count += load_word(bytes + i, each) == 0 ? each : 0;
	return count;
}

/* Redact memory of one span, and add to its tally what became of it. */
static void redact_part(const struct slim_rules *rules, const struct span *span, uint64_t address,
			const uint8_t *bytes, uint64_t size, uint8_t *ret, struct slim_tally *tally)
{
	uint64_t zeros = count_zeros(bytes, size, rules->word), structure, contents;
	struct redacted redacted = { 0 };

	if (span->whole)
		memcpy(ret, bytes, size);
	else
		redacted = redact_span(rules, span, address, bytes, size, ret);
	structure = restore(rules, &rules->structure, address, bytes, size, ret);
	slim_names_replace(rules, address, size, ret);
	contents = restore(rules, &rules->contents, address, bytes, size, ret);
	tally->zeros += zeros;
	tally->addresses += redacted.addresses;
	tally->structure += size - zeros - redacted.addresses - redacted.placeholders + structure;
	tally->contents += contents;
	tally->placeholders += redacted.placeholders - structure - contents;
}

static struct span span_at(const struct slim_rules *rules, const struct region *region,
			   uint64_t address)
{
	const struct heap_region *heap = heap_region_find(rules->index, address);

	return heap ? span_in_heap(rules, heap, address) : span_outside(rules, region, address);
}

void slim_redact(const struct slim_rules *rules, uint64_t address, const uint8_t *bytes,
		 uint64_t size, uint8_t *ret, struct slim_tally *tallies)
{
	const struct region *region = image_find(rules->image, address);

	memset(ret, 0, size);
	for (uint64_t done = 0; region && done < size;) {
		struct span span = span_at(rules, region, address + done);
		/* Blocks begin and end with words; what does not is no block. */
		uint64_t part = (span.end - (address + done)) & ~(uint64_t)(rules->word - 1);

		part = MIN(MAX(part, rules->word), size - done);
		if (part < rules->word) /* the rest of a dump that was cut off */
			break;
		part &= ~(uint64_t)(rules->word - 1);
		redact_part(rules, &span, address + done, bytes + done, part, ret + done,
			    &tallies[span.origin]);
		done += part;
	}
}
