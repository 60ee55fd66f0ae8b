/*
 * The C library's memory for threads: the vector of thread-local storage, the blocks of variables
 * that it points to, and malloc's cache.
 *
 * glibc, nptl/pthreadP.h and tls.h: a thread control block begins with its own address, that of the
 * vector, and its own again; or, where variables are above it, with that of the vector and a zero,
 * and the variables of the first module follow. The vector has two entries of two words in front,
 * of which only one is counted:
 *
 *	vector	| length |      | generation |     | block | to free | ...
 *	allocation -^           ^- what the control block refers to
 */
#include "analyzer/base/list.h"
#include "analyzer/classify/classifier.h"

enum { ENTRY_WORDS = 2, MOST_ENTRIES = 1 << 16, MOST_BETWEEN = 1 << 16 };

static uint64_t entry_size(const struct reader *reader)
{
	return ENTRY_WORDS * (uint64_t)reader->word;
}

/* The thread control block, if the reference is its own to its vector. */
static uint64_t block_of(const struct reader *reader, const struct reference *reference)
{
	return reference->address - (uint64_t)reader->image->arch->pthread.dtv;
}

/* True if a thread control block refers to its vector here. */
static bool is_vector_reference(const struct reader *reader, const struct reference *reference)
{
	const struct arch *arch = reader->image->arch;
	uint64_t block = block_of(reader, reference), words[3], first, variables;

	if (!arch->pthread.self) {
		variables = block + arch->pthread.variables;
		return reference_words(reference, 0, 2, words) &&
		       (words[1] == 0 || reference->address + reader->word == variables) &&
		       image_read_word(reader->image, words[0] + entry_size(reader), &first) &&
		       first - variables < MOST_BETWEEN;
	}
	return reference_words(reference, -1, 3, words) && words[0] == block && words[2] == block;
}

DEFINE_SUSPECT(suspect_vector, is_vector_reference)

/* True if the allocation begins with a length for which it has room. */
static bool has_length(struct reader *reader, struct memory_range range)
{
	uint64_t length;

	return reader_word(reader, range.start, &length) && length > 0 &&
	       length < range_size(range) / entry_size(reader);
}

static void match_vector(struct reader *reader, const struct reference *reference)
{
	if (is_vector_reference(reader, reference) && has_length(reader, reference->range))
		reader_claim(reader, reference->target, block_of(reader, reference));
}

static void tell_vector(struct reader *reader, struct memory_range range,
			struct pattern_facts *facts)
{
	facts->unit = "modules";
	reader_word(reader, range.start, &facts->length);
}

CLASSIFIER(thread_vector, "ThreadVector", "a thread's table of its thread-local storage (dtv)",
	   "the table of thread-local storage of the thread", .narrow = true,
	   .strength = STRENGTH_MARKED, .match = match_vector, .offset = ENTRY_WORDS,
	   .suspect = suspect_vector, .tell = tell_vector);

/*
 * The thread-local variables of a library loaded later: an entry of the vector has where they
 * begin, and what was allocated for them.
 */
static void claim_blocks(struct reader *reader, uint64_t vector, uint64_t owner)
{
	uint64_t length, entry[2];
	struct memory_range range;

	if (!reader_word(reader, vector - entry_size(reader), &length) || length > MOST_ENTRIES)
		return;
	for (uint64_t i = 1; i <= length; i++) {
		allocation_id id;

		if (!reader_step(reader) ||
		    !reader_words(reader, vector + i * entry_size(reader), 2, entry))
			return;
		id = reader_start(reader, entry[1], &range);
		if (id != NO_ALLOCATION && entry[0] >= range.start && entry[0] < range.end)
			reader_claim(reader, id, owner);
	}
}

static bool vector_leads_on(struct reader *reader, struct memory_range range)
{
	uint64_t length;

	return has_length(reader, range) && reader_word(reader, range.start, &length) &&
	       length <= MOST_ENTRIES;
}

/* Threads that have ended keep theirs, if their stack is kept. */
static void match_block(struct reader *reader, const struct reference *reference)
{
	uint64_t vector;

	if (is_vector_reference(reader, reference) && reference_words(reference, 0, 1, &vector))
		claim_blocks(reader, vector, block_of(reader, reference));
}

/* The first thread's vector need not be in the heap. */
static void finish_blocks(struct reader *reader, struct overview *overview)
{
	const struct arch *arch = reader->image->arch;

	list_for_each(thread, overview->program->threads, overview->program->thread_count) {
		uint64_t block = thread->thread_pointer, words[3], vector;
		bool is_known = thread->pointer_source != POINTER_UNKNOWN;

		if (is_known && reader_words(reader, block, 3, words) &&
		    (!arch->pthread.self || (words[0] == block && words[2] == block)) &&
		    reader_word(reader, block + (uint64_t)arch->pthread.dtv, &vector))
			claim_blocks(reader, vector, block);
	}
}

CLASSIFIER(thread_local_block, "ThreadLocalBlock", "a thread's variables of a library loaded later",
	   "a block of thread-local variables of the thread", .narrow = true,
	   .strength = STRENGTH_MARKED, .match = match_block, .offset = ENTRY_WORDS,
	   .suspect = suspect_vector, .leads_on = vector_leads_on, .finish = finish_blocks);

/*
 * glibc, malloc/malloc.c, tcache_perthread_struct: how many are cached of each size, or from 2.42
 * on how many more may be, then the first of each. A thread refers to it from its static
 * thread-local variables, which end at the thread pointer, or begin there.
 */
enum { MOST_BINS = 76, MOST_VARIABLES = 0x2000 };

static const struct layout {
	uint64_t size; /* after malloc's rounding */
	unsigned int bins, counter_size;
	bool counts;
} layouts[] = {
	{ 0x288, 64, 2, true },
	{ 0x2f8, 76, 2, false },
	{ 0x248, 64, 1, true },
	/* For words of 4 bytes. */
	{ 0x18c, 64, 2, true },
	{ 0x1cc, 76, 2, false },
	{ 0x14c, 64, 1, true },
};

static bool is_cache(struct reader *reader, struct memory_range range, const struct layout *layout)
{
	uint8_t counters[MOST_BINS * sizeof(uint16_t)];
	uint64_t entries[MOST_BINS];
	size_t size = layout->bins * layout->counter_size;

	if (range_size(range) != layout->size ||
	    !image_read(reader->image, range.start, counters, size) ||
	    !reader_words(reader, range.start + size, layout->bins, entries))
		return false;
	for (unsigned int i = 0; i < layout->bins; i++) {
		const uint8_t *counter = counters + i * layout->counter_size;
		bool any = counter[0] || counter[layout->counter_size - 1];

		if ((layout->counts && any != (entries[i] != 0)) ||
		    (entries[i] && !heap_bounds_hold(&reader->bounds, entries[i])))
			return false;
	}
	return true;
}

static void find_cache(struct reader *reader, uint64_t word, uint64_t owner)
{
	struct memory_range range;
	allocation_id id = reader_start(reader, word, &range);

	for (size_t i = 0; id != NO_ALLOCATION && i < COUNT_OF(layouts); i++)
		if (is_cache(reader, range, &layouts[i]))
			reader_claim(reader, id, owner);
}

static void finish_caches(struct reader *reader, struct overview *overview)
{
	bool are_above = reader->image->arch->pthread.pointer != 0;

	for (size_t i = 0; i < overview->program->thread_count; i++) {
		uint64_t pointer = overview->program->threads[i].thread_pointer;
		uint64_t start = are_above ? pointer : pointer - MOST_VARIABLES, word;

		for (uint64_t at = 0; at < MOST_VARIABLES && pointer >= MOST_VARIABLES;
		     at += reader->word)
			if (reader_word(reader, start + at, &word))
				find_cache(reader, word, pointer);
	}
}

CLASSIFIER(thread_cache, "ThreadCache", "malloc's list of what a thread has freed (tcache)",
	   "malloc's cache of the thread", .narrow = true, .is_reserve = true,
	   .strength = STRENGTH_MARKED, .finish = finish_caches);
