/*
 * Gives classifiers a reference and access to other memory.
 *
 * A reader remembers where it read last, so each thread has its own. Walks along links take steps,
 * of which there is a budget that readers of several threads share: no dump can make a walk
 * endless, or many walks too long together.
 */
#pragma once

#include "analyzer/base/progress.h"
#include "analyzer/base/ranks.h"
#include "analyzer/heap/address_filter.h"
#include "analyzer/heap/index.h"
#include "analyzer/image/view.h"
#include "analyzer/program/program.h"

#include <string.h>

enum { MOST_OFFSET = 3 /* words */, VERDICTS = 64, OVERVIEW_BITMAPS = 7 };

/* The C++ libraries, whose containers differ. */
enum cxx_library { LIBSTDCXX = 1, LIBCXX = 2 };

/* Remembers whether a vtable is of a wanted class. */
struct verdict {
	uint64_t vtable;
	bool right;
};

struct overview;
struct runtimes;

/* Claims to a few allocations, by id, upwards. */
struct few_claims {
	const allocation_id *ids;
	uint64_t *claims; /* see reader_take_claim() */
	size_t count;
};

struct reader {
	const struct image *image;
	const struct program *program;
	const struct allocation_index *index;
	const struct bitmap *used;
	struct heap_bounds bounds;
	struct memory_range modules;	 /* from the first to the last */
	unsigned int word;		 /* bytes of one: 8, or 4 */
	unsigned int cxx;		 /* enum cxx_library, added up */
	const struct runtimes *runtimes; /* NULL: no objects are known */
	size_t hint;			 /* of the index */
	struct view view;
	uint64_t steps;		  /* that walks may still take, before more are drawn */
	_Atomic uint64_t *budget; /* where from; NULL: nowhere */
	struct verdict verdicts[VERDICTS];
	const struct module *library; /* asked for last: has it operator new? */
	bool library_has_new;
	/*
	 * Arrays for claims, by allocation: at most one of the first two. Without any, claims are
	 * dropped.
	 */
	const struct few_claims *few; /* of these alone, by id; NULL: of all, as follows */
	uint64_t *claims;	      /* see reader_take_claims() */
	uint64_t *owners;	      /* of those whose patterns are known */
	uint8_t *patterns;	      /* known, or to be found */
	/* Indexed by the number here instead, where others cannot have any; or NULL. */
	const struct ranks *places;
	uint8_t number; /* of the classifier that is asked */
	struct overview *overview;
	const struct progress *progress; /* may end walks; or NULL */
};

/* Start on memory of the index; the modules' extent is found. */
void reader_init(struct reader *reader, const struct image *image, const struct program *program,
		 const struct allocation_index *index);

/* A word that points at an allocation in use. */
struct reference {
	uint64_t address;	    /* where it stands */
	const uint8_t *bytes;	    /* the same, in the dump */
	unsigned int word;	    /* bytes of one: 8, or 4 */
	struct memory_range holder; /* the contiguous memory around it in the dump */
	allocation_id source;	    /* NO_ALLOCATION: the holder is a root */
	allocation_id target;
	struct memory_range range; /* of the target */
};

/* An allocation in use, and the size bytes of it that lie in a row. */
struct subject {
	allocation_id id;
	struct memory_range range;
	const uint8_t *bytes;
	uint64_t size;
};

/* The largest allocation that may be chained to its like as the nodes of a list are, bytes. */
enum { MOST_CHAINED = 96 + 16 };

/*
 * Facts that the pass has found about references to the starts of allocations that may be chained.
 */
struct overview {
	const struct program *program;
	struct address_filter chained; /* where these start; without bits: anywhere */
	union {
		struct {
			struct bitmap referred; /* by an allocation or static memory */
			struct bitmap referred_twice;
			struct bitmap held;    /* by anything but an allocation like itself */
			struct bitmap foreign; /* chains of libraries without C++ */
			struct bitmap walked;  /* for walks along chains; empty at first */
			struct bitmap noted;   /* those that may be in a std::list */
			struct bitmap ringed;  /* for walks around rings; empty at first */
		};
		struct bitmap all[OVERVIEW_BITMAPS];
	};
};

/* The bytes at address, *ret_size of them in a row; NULL if absent. */
static inline const uint8_t *reader_bytes(struct reader *reader, uint64_t address,
					  uint64_t *ret_size)
{
	return view_bytes(&reader->view, address, ret_size);
}

/* The word at address. */
static inline bool reader_word(struct reader *reader, uint64_t address, uint64_t *ret)
{
	return view_word(&reader->view, address, ret);
}

/* Like reader_words(), for words of 4 bytes. */
bool reader_narrow_words(struct reader *reader, uint64_t address, unsigned int count,
			 uint64_t *ret);

/* count words from address on. */
static inline bool reader_words(struct reader *reader, uint64_t address, unsigned int count,
				uint64_t *ret)
{
	if (reader->word != sizeof(*ret))
		return reader_narrow_words(reader, address, count, ret);
	return view_read(&reader->view, address, ret, count * sizeof(*ret));
}

/* The used allocation that starts at address, or NO_ALLOCATION. */
allocation_id reader_start(struct reader *reader, uint64_t address, struct memory_range *ret);

/* True if address is in a module, or right behind it in its data. */
bool reader_in_module(const struct reader *reader, uint64_t address);

/* Draw steps from the budget, unless it is empty or the user interrupts. */
bool reader_draw_steps(struct reader *reader);

/* Take a step of a walk; false if there were too many. */
static inline bool reader_step(struct reader *reader)
{
	if (reader->steps == 0 && !reader_draw_steps(reader))
		return false;
	reader->steps--;
	return true;
}

/* The classifier knows the allocation, which belongs to what is at owner; 0: that is not known. */
void reader_claim(struct reader *reader, allocation_id id, uint64_t owner);

/* True if the classifier has the strongest claim to the allocation so far. */
bool reader_has_claim(const struct reader *reader, allocation_id id);

/* The owner that is known so far; 0: none, or owners are not looked for. */
uint64_t reader_owner(const struct reader *reader, allocation_id id);

/* The pattern of a claim; *ret_owner is its owner. */
uint8_t reader_take_claim(uint64_t claim, uint64_t *ret_owner);

/*
 * A pattern and its owner in one number, so that threads can claim both at once. Make count of
 * these owners, in place, and put the patterns, if any, in the other array.
 */
void reader_take_claims(uint64_t *claims, size_t count, uint8_t *patterns);

/* count words from the first-th behind the reference on; 0 is itself. */
static inline bool reference_words(const struct reference *reference, int first, unsigned int count,
				   uint64_t *ret)
{
	uint64_t before = reference->address - reference->holder.start;
	uint64_t behind = reference->holder.end - reference->address;
	const unsigned int word = reference->word;

	if (first < 0 && before < word * (uint64_t)-first)
		return false;
	if (first + (int)count > 0 && behind < word * (uint64_t)(first + (int)count))
		return false;
	if (word == sizeof(*ret))
		memcpy(ret, reference->bytes + (int64_t)word * first, count * sizeof(*ret));
	else
		for (unsigned int i = 0; i < count; i++)
			ret[i] = load_word(reference->bytes + (int64_t)word * (first + (int)i),
					   word);
	return true;
}

/*
 * Select the words of that size, among those in mask, for which may is true: see suspect() of
 * classifier.h. It is inline so that the compiler makes a loop for may and one size.
 */
static inline __attribute__((always_inline)) uint64_t references_filter_sized(
	const struct reader *reader, const struct reference *first, uint64_t mask,
	unsigned int word,
	bool (*may)(const struct reader *reader, const struct reference *reference))
{
	struct reference reference = *first;
	uint64_t kept = 0;

	reference.word = word;
	for (; mask; mask &= mask - 1) {
		uint64_t offset = word * (uint64_t)__builtin_ctzll(mask);

		reference.address = first->address + offset;
		reference.bytes = first->bytes + offset;
		if (may(reader, &reference))
			kept |= mask & -mask;
	}
	return kept;
}

static inline __attribute__((always_inline)) uint64_t references_filter(
	const struct reader *reader, const struct reference *first, uint64_t mask,
	bool (*may)(const struct reader *reader, const struct reference *reference))
{
	if (first->word == sizeof(uint64_t))
		return references_filter_sized(reader, first, mask, sizeof(uint64_t), may);
	return references_filter_sized(reader, first, mask, sizeof(uint32_t), may);
}

/* True if the allocation was made for wanted bytes, given its allocator's rounding. */
static inline bool reader_fits(const struct reader *reader, struct memory_range range,
			       uint64_t wanted)
{
	return allocation_fits(reader->index, range, wanted, false);
}

static inline uint64_t range_size(struct memory_range range)
{
	return range.end - range.start;
}
