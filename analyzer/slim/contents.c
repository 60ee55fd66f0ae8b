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

/*
 * The place that the spans of a piece have come to. They follow each other, so mostly the next
 * block is the one behind the last.
 */
struct place {
	const struct heap_region *region; /* that the last span was in; or NULL */
	const struct heap *heap;	  /* whose it is */
	bool has_heads;
	size_t next;		   /* the number of the first block that ends above it */
	struct memory_range block; /* that one; the region's end if there is none */
	size_t hint;
	size_t structure, contents; /* the first ranges that may end above it */
};

/* Find the first block of the region that ends above address. */
static void find_block(const struct slim_rules *rules, struct place *place, uint64_t address)
{
	const struct heap_region *region = place->region;
	size_t end = (size_t)region->first + region->count;

	for (; place->next < end; place->next++) {
		place->block = allocation_range_near(rules->index, (allocation_id)place->next,
						     &place->hint);
		if (address < place->block.end)
			return;
	}
	place->block = (struct memory_range){ region->end, UINT64_MAX };
}

static void enter_region(const struct slim_rules *rules, struct place *place,
			 const struct heap_region *region, uint64_t address)
{
	const struct allocator *allocator = heaps_arena_allocator(rules->heaps, region->arena);
	allocation_id id = allocation_find(rules->index, address);

	place->region = region;
	place->heap = heaps_heap_of(rules->heaps, region->arena);
	place->has_heads = allocator->extent && !allocator->visits_heads;
	place->next = id != NO_ALLOCATION ? id : number_above(rules, region, address);
	find_block(rules, place, address);
}

static struct span span_of_block(const struct slim_rules *rules, const struct place *place)
{
	struct memory_range range = place->block;
	struct block block = { range.start, range.end - range.start,
			       allocation_state(rules->index, (allocation_id)place->next) };
	struct span span = {
		.end = range.end,
		.origin = block.state == BLOCK_USED ? SLIM_USED : SLIM_FREE,
		.block = block,
		.heap = place->heap,
	};

	if (block.state == BLOCK_USED && span.heap && span.heap->allocator->keeps &&
	    span.heap->allocator->keeps(span.heap, block)) {
		span.origin = SLIM_ALLOCATOR;
		span.whole = true;
	}
	return span;
}

static struct span span_in_heap(const struct slim_rules *rules, struct place *place,
				uint64_t address)
{
	uint64_t end;

	if (address >= place->block.end)
		find_block(rules, place, address);
	if (address >= place->block.start)
		return span_of_block(rules, place);
	end = place->block.start;
	/* Without heads, such as at the ends of pages, there is only what was left there. */
	if (!place->has_heads)
		return (struct span){ end, SLIM_ALLOCATOR };
	if (end - address <= (uint64_t)MOST_OF_HEAD * rules->word)
		return (struct span){ end, SLIM_ALLOCATOR, .is_head = true };
	/* Behind a wide gap, such as one for alignment, the head is right before the block. */
	if (end < place->region->end)
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
	unsigned int each, count;

	if (bytes == sizeof(word) && bytes_printable(word) == HIGH) {
		*ret = ONES * rules->letter;
		*state = TEXT_BYTES;
		return true;
	}
	/* Without text, the first bytes are rarely all of ASCII, or are the byte of a number. */
	if (*state == TEXT_NONE && ((word & 0x80808080) || word <= UINT8_MAX))
		return false;
	each = text_width(word, *state);
	count = each ? count_characters(word, each) : 0;
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

/* Redact words, each of so many bytes, of a span, but for structure. */
static inline __attribute__((always_inline)) void redact_words(const struct slim_rules *rules,
							       const struct span *span,
							       unsigned int each, uint64_t address,
							       const uint8_t *bytes, uint64_t size,
							       uint8_t *ret, enum text_state *text,
							       struct redacted *redacted)
{
	for (uint64_t i = 0; i < size; i += each) {
		uint64_t word = load_word(bytes + i, each);
		bool is_address = word != 0 && slim_is_address(rules, word) &&
				  !is_within_text(word, each, *text);

		redacted->addresses += is_address ? each : 0;
		if (word == 0 || is_address || (span->is_head && slim_is_size(rules, word)) ||
		    (span->block.size && is_of_allocator(span, address + i, word, each))) {
			*text = TEXT_NONE;
			memcpy(ret + i, &word, each);
			continue;
		}
		redacted->placeholders += each;
		if (!span->block.size || !redact_text(rules, word, each, &word, text)) {
			*text = TEXT_NONE;
			word = slim_placeholder(rules, word);
		}
		memcpy(ret + i, &word, each);
	}
}

enum {
	WORD = sizeof(uint64_t),
	MASK_WORDS = SLIM_LOOK_WORDS,
	MASKS = SLIM_MOST_REDACTED / WORD / MASK_WORDS,
};

/* A piece of memory being redacted. Words of 8 bytes are placeholders at first. */
struct redaction {
	const struct slim_rules *rules;
	const uint8_t *bytes;
	uint8_t *ret;
	uint64_t address; /* of its first byte */
	/* A bit for each word of 8 bytes: it may be an address, text may begin there, it is 0. */
	uint64_t addresses[MASKS], texts[MASKS], zeros[MASKS];
};

static void look_at_words(struct redaction *redaction, uint64_t size)
{
	const struct slim_rules *rules = redaction->rules;
	bool any = rules->ignored_bits || rules->has_signatures;

	for (size_t i = 0, count = size / WORD; i < count; i += MASK_WORDS) {
		size_t number = i / MASK_WORDS, words = MIN(count - i, MASK_WORDS);
		const uint8_t *bytes = redaction->bytes + i * WORD;
		struct slim_look look =
			slim_look(bytes, words, rules->half, redaction->ret + i * WORD);

		redaction->addresses[number] =
			any ? UINT64_MAX : word_filter_mask(&rules->filter, bytes, words);
		redaction->texts[number] = look.texts;
		redaction->zeros[number] = look.zeros;
	}
}

/* The bits of the words from that one on, up to another one or the end of its mask. */
static inline uint64_t bits_from(const uint64_t *masks, size_t from, size_t to)
{
	uint64_t bits = masks[from / MASK_WORDS] >> from % MASK_WORDS;

	return to - from < MASK_WORDS ? bits & ((UINT64_C(1) << (to - from)) - 1) : bits;
}

static inline size_t next_mask(size_t from, size_t to)
{
	return MIN((from / MASK_WORDS + 1) * MASK_WORDS, to);
}

static uint64_t count_bits(const uint64_t *masks, size_t from, size_t to)
{
	uint64_t count = 0;

	for (; from < to; from = next_mask(from, to))
		count += (uint64_t)__builtin_popcountll(bits_from(masks, from, to));
	return count;
}

/* The first of the words [from, to) that may be more than a placeholder; or to. */
static inline size_t next_looked_at(const struct redaction *redaction, size_t from, size_t to,
				    bool texts)
{
	for (; from < to; from = next_mask(from, to)) {
		uint64_t bits = bits_from(redaction->addresses, from, to);

		if (texts)
			bits |= bits_from(redaction->texts, from, to);
		if (bits)
			return from + (size_t)__builtin_ctzll(bits);
	}
	return to;
}

/* Redact words [from, to) one by one. */
static void redact_edge(const struct redaction *redaction, const struct span *span, size_t from,
			size_t to, enum text_state *text, struct redacted *redacted)
{
	redact_words(redaction->rules, span, WORD, redaction->address + from * WORD,
		     redaction->bytes + from * WORD, (to - from) * WORD,
		     redaction->ret + from * WORD, text, redacted);
}

/* Redact words [from, to), none of which is kept but addresses. */
static void redact_most(const struct redaction *redaction, const struct span *span, size_t from,
			size_t to, enum text_state *text, struct redacted *redacted)
{
	const struct slim_rules *rules = redaction->rules;
	bool texts = span->block.size > 0;
	uint64_t addresses = 0, zeros = count_bits(redaction->zeros, from, to);

	redacted->placeholders += (to - from - zeros) * WORD;
	for (; from < to; from++) {
		uint64_t word, now;

		if (*text == TEXT_NONE)
			from = next_looked_at(redaction, from, to, texts);
		if (from == to)
			break;
		word = load_word(redaction->bytes + from * WORD, WORD);
		if (word != 0 && slim_is_address(rules, word)) {
			*text = TEXT_NONE;
			addresses += WORD;
			now = word;
		} else if (!texts || word == 0 || !redact_text(rules, word, WORD, &now, text)) {
			*text = TEXT_NONE;
			continue;
		}
		memcpy(redaction->ret + from * WORD, &now, WORD);
	}
	redacted->addresses += addresses;
	redacted->placeholders -= addresses;
}

/* Redact the words [from, to) of a span, but for structure; edges of blocks may have that. */
static struct redacted redact_wide(const struct redaction *redaction, const struct span *span,
				   size_t from, size_t to, enum text_state text)
{
	uint64_t address = redaction->address + from * WORD;
	const struct block *block = &span->block;
	uint64_t links = block->state == BLOCK_USED ? 0 : 2 * WORD;
	struct redacted redacted = { 0 };
	size_t first = from, last = to;

	if (span->is_head) {
		first = to;
	} else if (block->size && span->heap && span->heap->allocator->wrote) {
		if (address < block->start + links)
			first = MIN(from + (block->start + links - address) / WORD, to);
		if (redaction->address + to * WORD == block->start + block->size && last > first)
			last--;
	}
	redact_edge(redaction, span, from, first, &text, &redacted);
	redact_most(redaction, span, first, last, &text, &redacted);
	redact_edge(redaction, span, last, to, &text, &redacted);
	return redacted;
}

/* Redact size bytes of a span, so far behind the first. */
static struct redacted redact_span(const struct redaction *redaction, const struct span *span,
				   uint64_t done, uint64_t size)
{
	const struct slim_rules *rules = redaction->rules;
	uint64_t address = redaction->address + done;
	const uint8_t *bytes = redaction->bytes + done;
	struct redacted redacted = { 0 };
	enum text_state text =
		span->origin == SLIM_USED ? state_at(span, address, bytes, rules->word) : TEXT_NONE;

	if (rules->word == WORD)
		return redact_wide(redaction, span, done / WORD, (done + size) / WORD, text);
	redact_words(rules, span, sizeof(uint32_t), address, bytes, size, redaction->ret + done,
		     &text, &redacted);
	return redacted;
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

/*
 * Put back what is kept to the byte; *first is the first range that may end above address. Returns
 * how many bytes of words had been left out.
 */
static uint64_t restore(const struct slim_rules *rules, const struct range_list *list,
			size_t *first, uint64_t address, const uint8_t *bytes, uint64_t size,
			uint8_t *ret)
{
	uint64_t restored = 0;

	while (*first < list->count && list->items[*first].end <= address)
		++*first;
	for (size_t i = *first; i < list->count && list->items[i].start < address + size; i++) {
		uint64_t start = MAX(list->items[i].start, address) - address;
		uint64_t end = MIN(list->items[i].end, address + size) - address;
		/* Whole words are redacted. */
		uint64_t from = start & ~(uint64_t)(rules->word - 1);
		uint64_t all =
			MIN((end + rules->word - 1) & ~(uint64_t)(rules->word - 1), size) - from;

		restored += count_left_out(rules, bytes + from, all, ret + from, true);
		memcpy(ret + start, bytes + start, end - start);
		restored -= count_left_out(rules, bytes + from, all, ret + from, false);
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

/* Redact size bytes of one span, so far behind the first, and add to its tally. */
static void redact_part(const struct redaction *redaction, const struct span *span,
			struct place *place, uint64_t done, uint64_t size, struct slim_tally *tally)
{
	const struct slim_rules *rules = redaction->rules;
	const uint8_t *bytes = redaction->bytes + done;
	uint8_t *ret = redaction->ret + done;
	uint64_t address = redaction->address + done, structure, contents, zeros;
	struct redacted redacted = { 0 };

	if (span->whole)
		memcpy(ret, bytes, size);
	else
		redacted = redact_span(redaction, span, done, size);
	zeros = rules->word == WORD
			? count_bits(redaction->zeros, done / WORD, (done + size) / WORD) * WORD
			: count_zeros(bytes, size, rules->word);
	structure = restore(rules, &rules->structure, &place->structure, address, bytes, size, ret);
	slim_names_replace(rules, address, size, ret);
	contents = restore(rules, &rules->contents, &place->contents, address, bytes, size, ret);
	tally->zeros += zeros;
	tally->addresses += redacted.addresses;
	tally->structure += size - zeros - redacted.addresses - redacted.placeholders + structure;
	tally->contents += contents;
	tally->placeholders += redacted.placeholders - structure - contents;
}

static struct span span_at(const struct slim_rules *rules, const struct region *region,
			   struct place *place, uint64_t address)
{
	if (!place->region || address < place->region->start || address >= place->region->end) {
		const struct heap_region *heap = heap_region_find(rules->index, address);

		place->region = NULL;
		if (!heap)
			return span_outside(rules, region, address);
		enter_region(rules, place, heap, address);
	}
	return span_in_heap(rules, place, address);
}

void slim_redact(const struct slim_rules *rules, uint64_t address, const uint8_t *bytes,
		 uint64_t size, uint8_t *ret, struct slim_tally *tallies)
{
	const struct range_list *structure = &rules->structure, *contents = &rules->contents;
	const struct region *region = image_find(rules->image, address);
	struct redaction redaction;
	struct place place = {
		.structure = LIST_ABOVE(structure->items, structure->count, end, address),
		.contents = LIST_ABOVE(contents->items, contents->count, end, address),
	};
	/* The rest of a dump that was cut off is left out. */
	uint64_t whole = region ? size & ~(uint64_t)(rules->word - 1) : 0;

	redaction.rules = rules;
	redaction.bytes = bytes;
	redaction.ret = ret;
	redaction.address = address;
	if (rules->word == WORD)
		look_at_words(&redaction, whole);
	for (uint64_t done = 0, part; done < whole; done += part) {
		struct span span = span_at(rules, region, &place, address + done);

		/* Blocks begin and end with words; what does not is no block. */
		part = (span.end - (address + done)) & ~(uint64_t)(rules->word - 1);
		part = MIN(MAX(part, rules->word), whole - done);
		redact_part(&redaction, &span, &place, done, part, &tallies[span.origin]);
	}
	memset(ret + whole, 0, size - whole);
}
