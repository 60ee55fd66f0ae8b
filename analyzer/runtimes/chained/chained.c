/*
 * Debug headers that chain all blocks, as those of glibc's mcheck() and of many programs' own
 * wrappers of malloc(): a doubly linked list runs through them, and so nothing is ever lost.
 *
 *	| next | previous | size, ... | what the program asked for |
 *	^ where links lead           ^ where all else leads
 *
 * The list of a program may look alike. It is the wrappers' if it runs through nearly all blocks,
 *of several sizes, and if much of the rest of the heap refers to them, always so many bytes behind
 *the header: who uses a list has the addresses that its links have.
 */
#include "analyzer/base/macros.h"
#include "analyzer/base/sort.h"
#include "analyzer/program/module_words.h"
#include "analyzer/runtimes/runtime.h"

#include <stdlib.h>

enum {
	WORD = 8,
	LINK_WORDS = 8,	   /* of a header, that may be links */
	HEADER_WORDS = 32, /* that it has at most */
	LEAST_BLOCKS = 32,
	SAMPLES = 256,
	NEARLY_ALL = 90, /* percent */
	LEAST_REFERENCED = 25,
	MOST_STRAY = 5,
	MOST_ENDS = 2,
};

/* The words of a header that are links, and whether these lead to links or to headers. */
struct links {
	unsigned int words[2];
	bool to_links;
};

struct chained {
	struct object_space space;
	struct links links;
	struct bitmap blocks; /* in the list */
};

/* The targets of a header's words: used blocks, or NO_ALLOCATION. */
struct header {
	uint64_t start;
	uint64_t words[LINK_WORDS];
	allocation_id targets[LINK_WORDS];
};

static bool read_header(const struct chained *chained, allocation_id id, struct header *ret)
{
	const struct allocation_index *index = chained->space.index;

	ret->start = allocation_start(index, id);
	if (allocation_size(index, id) < sizeof(ret->words) ||
	    !image_read(chained->space.image, ret->start, ret->words, sizeof(ret->words)))
		return false;
	for (size_t i = 0; i < LINK_WORDS; i++) {
		allocation_id target = allocation_find(index, ret->words[i]);

		ret->targets[i] = target != NO_ALLOCATION && target != id &&
						  bitmap_get(allocation_used(index), target)
					  ? target
					  : NO_ALLOCATION;
	}
	return true;
}

/* The address that links to the block at start have. */
static uint64_t linked_place(const struct links *links, uint64_t start)
{
	return start + (links->to_links ? links->words[0] * WORD : 0);
}

/* True if the i-th word points to a block whose j-th word points back. */
static bool is_mutual(const struct chained *chained, const struct header *header, unsigned int i,
		      unsigned int j, const struct links *links)
{
	allocation_id target = header->targets[i];
	uint64_t start =
		target == NO_ALLOCATION ? 0 : allocation_start(chained->space.index, target);
	uint64_t back;

	return start && header->words[i] == linked_place(links, start) &&
	       image_read_u64(chained->space.image, start + j * WORD, &back) &&
	       back == linked_place(links, header->start);
}

static bool is_in_list(const struct chained *chained, const struct header *header,
		       const struct links *links)
{
	return is_mutual(chained, header, links->words[0], links->words[1], links) ||
	       is_mutual(chained, header, links->words[1], links->words[0], links);
}

/* The links that a header may have, by number; false: no more. */
static bool list_links(size_t number, struct links *ret)
{
	unsigned int first = (unsigned int)number / 2 / LINK_WORDS;
	unsigned int second = (unsigned int)number / 2 % LINK_WORDS;

	*ret = (struct links){ { first, second }, number % 2 };
	return first < LINK_WORDS;
}

enum { LINKS = 2 * LINK_WORDS * LINK_WORDS };

/* Count the links that the header of a block may have; returns whether there are any. */
static bool vote(const struct chained *chained, allocation_id id, size_t votes[static LINKS])
{
	struct header header;
	struct links links;
	bool has = false;

	if (!read_header(chained, id, &header))
		return false;
	for (size_t j = 0; list_links(j, &links); j++) {
		if (links.words[0] == links.words[1] || !is_in_list(chained, &header, &links))
			continue;
		votes[j]++;
		has = true;
	}
	return has;
}

/* Find the links that nearly all of some headers have; give up where too many have none. */
static bool guess_links(struct chained *chained)
{
	const struct bitmap *used = allocation_used(chained->space.index);
	size_t votes[LINKS] = { 0 }, samples = 0, without = 0;
	struct links links;

	for (size_t i = 0; i < SAMPLES; i++) {
		size_t id = bitmap_next(used, used->count * i / SAMPLES);

		if (id >= used->count)
			break;
		samples++;
		without += !vote(chained, (allocation_id)id, votes);
		if (without * 100 > SAMPLES * (100 - NEARLY_ALL))
			return false;
	}
	for (size_t j = 0; list_links(j, &links); j++) {
		if (votes[j] == 0 || votes[j] * 100 < samples * NEARLY_ALL)
			continue;
		chained->links = links;
		return true;
	}
	return false;
}

/* Find all blocks of the list. Returns whether it is one, through nearly all, of several sizes. */
static bool find_blocks(struct chained *chained)
{
	const struct bitmap *used = allocation_used(chained->space.index);
	const struct links *links = &chained->links;
	size_t count = 0, found = 0, ends = 0;
	uint64_t size = 0;
	bool differs = false;

	bitmap_for_each(id, used) {
		struct header header;

		count++;
		if (!read_header(chained, (allocation_id)id, &header) ||
		    !is_in_list(chained, &header, links))
			continue;
		bitmap_set(&chained->blocks, id);
		ends += !is_mutual(chained, &header, links->words[0], links->words[1], links);
		ends += !is_mutual(chained, &header, links->words[1], links->words[0], links);
		differs |=
			found++ && allocation_size(chained->space.index, (allocation_id)id) != size;
		size = allocation_size(chained->space.index, (allocation_id)id);
	}
	return found * 100 >= count * NEARLY_ALL && ends <= MOST_ENDS && differs;
}

/* Counts other references to the blocks, by distance behind their header. */
struct others {
	const struct chained *chained;
	size_t counts[HEADER_WORDS];
};

static struct error *count_word(void *data, uint64_t where, uint64_t word)
{
	struct others *others = data;
	const struct chained *chained = others->chained;
	allocation_id id = allocation_find(chained->space.index, word);
	uint64_t offset =
		id == NO_ALLOCATION ? 0 : word - allocation_start(chained->space.index, id);

	if (id != NO_ALLOCATION && bitmap_get(&chained->blocks, id) && offset % WORD == 0 &&
	    offset / WORD < HEADER_WORDS)
		others->counts[offset / WORD]++;
	return NULL;
}

static bool is_link_word(const struct chained *chained, uint64_t offset)
{
	return offset == chained->links.words[0] * WORD || offset == chained->links.words[1] * WORD;
}

/* Count the words of the block but for its links, and for what leads into itself. */
static void count_words(struct others *others, allocation_id id)
{
	const struct chained *chained = others->chained;
	uint64_t start = allocation_start(chained->space.index, id), word;
	uint64_t size = allocation_size(chained->space.index, id);

	for (uint64_t at = 0; size - at >= WORD && at < size; at += WORD)
		if (!is_link_word(chained, at) &&
		    image_read_u64(chained->space.image, start + at, &word) && word - start >= size)
			(void)count_word(others, start + at, word);
}

/*
 * True if the rest of the process refers to the memory behind the headers, and hardly to the
 * headers.
 */
static bool has_headers(const struct chained *chained, const struct program *program)
{
	struct others others = { .chained = chained };
	size_t most = 0, stray = 0, last;

	bitmap_for_each(id, &chained->blocks)
		count_words(&others, (allocation_id)id);
	list_for_each(module, program->modules, program->module_count)
		(void)module_visit_words(chained->space.image, module, count_word, &others);
	last = chained->links.words[chained->links.words[1] > chained->links.words[0]];
	for (size_t i = last + 1; i < HEADER_WORDS; i++)
		most = others.counts[i] > others.counts[most] || most <= last ? i : most;
	for (size_t i = 0; i <= last; i++)
		stray += others.counts[i];
	return most > last &&
	       others.counts[most] * 100 >= bitmap_weight(&chained->blocks) * LEAST_REFERENCED &&
	       stray * 100 <= others.counts[most] * MOST_STRAY + MOST_ENDS * 100;
}

static void chained_release(struct object_space *space)
{
	bitmap_deinit(&((struct chained *)space)->blocks);
}

static struct error *chained_open(struct object_space *space, bool *ret)
{
	struct chained *chained = (struct chained *)space;

	if (bitmap_weight(allocation_used(space->index)) < LEAST_BLOCKS || !guess_links(chained))
		return NULL;
	TRY(bitmap_init(&chained->blocks, allocation_count(space->index), space->account));
	*ret = find_blocks(chained) && has_headers(chained, space->program);
	return NULL;
}

/* Links, and what outside of all holds an end of the list. */
static bool is_link(const struct object_space *space, allocation_id source, allocation_id target,
		    uint64_t word, uint64_t place)
{
	const struct chained *chained = (const struct chained *)space;
	const struct allocation_index *index = chained->space.index;

	if (source != NO_ALLOCATION)
		return bitmap_get(&chained->blocks, source) &&
		       is_link_word(chained, place - allocation_start(index, source));
	if (!image_read_u64(chained->space.image, place, &word))
		return false;
	source = allocation_find(index, word);
	return source != NO_ALLOCATION && bitmap_get(&chained->blocks, source) &&
	       word == linked_place(&chained->links, allocation_start(index, source));
}

const struct runtime runtime_chained = {
	.name = "chained",
	.space_size = sizeof(struct chained),
	.open = chained_open,
	.release = chained_release,
	.is_link = is_link,
	.leaks_note =
		"a debug header, such as that of mcheck(), links all blocks in one list: its links do not count as references, because nothing would be leaked then",
};
