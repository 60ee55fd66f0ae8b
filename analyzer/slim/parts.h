/*
 * The parts of writing a slim core: rules.c decides on words, contents.c redacts memory by them,
 * notes.c what is no memory, slim.c writes the file.
 */
#pragma once

#include "analyzer/base/ranges.h"
#include "analyzer/heap/word_filter.h"
#include "analyzer/slim/slim.h"

#include <elf.h>
#include <zstd.h>

/* The rules for one dump; constant while memory is redacted, so that several threads may. */
struct slim_rules {
	const struct image *image;
	const struct program *program;
	const struct heaps *heaps;
	const struct allocation_index *index;
	unsigned int word;	  /* bytes of one: 8 or 4 */
	struct range_list mapped; /* memory that addresses may be of: by address, apart */
	/* Near the program and near the libraries: most words that are no addresses are in neither.
	 */
	struct memory_range bounds[2];
	struct word_filter filter;   /* for both, of words of 8 bytes */
	struct memory_range largest; /* of what is mapped: most addresses are of that */
	uint64_t ignored_bits;	     /* of a pointer to data, which are no part of the address */
	bool has_signatures;	     /* pointers to code have */
	struct range_list structure; /* kept as it is, likewise */
	struct range_list names;     /* that are hashed, by start, apart */
	uint64_t name_key[2];
	bool hash_names;
	struct range_list contents; /* so are these: somebody wanted them */
	uint32_t half;		    /* placeholder of each half of a word that is not zero */
	uint8_t letter;		    /* of each character of text */
};

struct error *slim_rules_init(struct slim_rules *rules, struct analysis *analysis,
			      const struct slim_options *options);
void slim_rules_deinit(struct slim_rules *rules);
DEFINE_DEINIT(slim_rules_deinit, struct slim_rules)

/* slim_is_address() for a word within the bounds. */
bool slim_is_mapped(const struct slim_rules *rules, uint64_t word);

/* True if it is an address of code with a signature. */
bool slim_is_signed(const struct slim_rules *rules, uint64_t word);

/* True if the word is an address of memory that the process had, or of its end. */
static inline bool slim_is_address(const struct slim_rules *rules, uint64_t word)
{
	const struct memory_range *bounds = rules->bounds;
	uint64_t address = word & ~rules->ignored_bits;

	if (address - rules->largest.start < rules->largest.end - rules->largest.start)
		return true;
	if ((address - bounds[0].start <= bounds[0].end - bounds[0].start ||
	     address - bounds[1].start <= bounds[1].end - bounds[1].start) &&
	    slim_is_mapped(rules, address))
		return true;
	return rules->has_signatures && slim_is_signed(rules, word);
}

enum { LEAST_OF_HEAD = 2 /* words of the head of a block, if it has one */ };

/* True if it may be the size of a block: so large are heaps. */
static inline bool slim_is_size(const struct slim_rules *rules, uint64_t word)
{
	return word < UINT64_C(1) << (rules->word == sizeof(word) ? 40 : 31);
}

/* The placeholder of a word that is not kept; 0 stays 0. */
static inline uint64_t slim_placeholder(const struct slim_rules *rules, uint64_t word)
{
	uint64_t low = (uint32_t)word ? rules->half : 0, high = word >> 32 ? rules->half : 0;

	return high << 32 | low;
}

/* A look at up to 64 words of 8 bytes: a bit for each. */
enum { SLIM_LOOK_WORDS = 64 };

struct slim_look {
	uint64_t texts; /* text may begin there */
	uint64_t zeros;
};

/* Look at words, and make placeholders of all of them. The plain way does without vectors. */
struct slim_look slim_look(const uint8_t *bytes, size_t words, uint32_t half, uint8_t *ret);
struct slim_look slim_look_plain(const uint8_t *bytes, size_t words, uint32_t half, uint8_t *ret);

enum { SLIM_MOST_REDACTED = 1 << 19 }; /* fits into the second-level cache */

/*
 * Redact size bytes of memory at address, in one region of the dump, where 8 bytes more can be read
 * below; ret has as much room. Both are multiples of 8. Adds to the tallies of all origins.
 */
void slim_redact(const struct slim_rules *rules, uint64_t address, const uint8_t *bytes,
		 uint64_t size, uint8_t *ret, struct slim_tally *tallies);

/* True if the page of the region is of a program or library, and as the linker made it. */
bool slim_is_binary(const struct slim_rules *rules, const struct region *region, uint64_t page);

/* names.c: find the names that no binary has; the others become structure. */
struct error *slim_names_prepare(struct slim_rules *rules);

/* Replace names in size bytes of memory at address, which are in ret. */
void slim_names_replace(const struct slim_rules *rules, uint64_t address, uint64_t size,
			uint8_t *ret);

/* One thread packs with it. */
struct slim_output {
	ZSTD_CCtx *context;
	uint8_t *frame;
	size_t size, room;
};

struct error *slim_output_init(struct slim_output *output, uint64_t most);
void slim_output_deinit(struct slim_output *output);

/* Make a frame of up to so many bytes as output was made for. */
struct error *slim_output_pack(struct slim_output *output, const uint8_t *bytes, uint64_t size);

enum { SLIM_FRAME_HEAD = 9 };

/* A frame of the header whose size does not depend on what is in it. Returns its size. */
size_t slim_output_pack_header(const Elf64_Ehdr *header, uint8_t *ret);

/* A note segment being written. */
struct slim_notes {
	uint8_t *bytes;
	size_t size, room;
};

static inline void slim_notes_deinit(struct slim_notes *notes)
{
	free(notes->bytes);
}
DEFINE_DEINIT(slim_notes_deinit, struct slim_notes)

/* Add what may stay of the notes, size bytes as in the dump. */
struct error *slim_notes_add(struct slim_notes *notes, const struct slim_rules *rules,
			     const uint8_t *bytes, size_t size, struct slim_tally *tally);

/* Add the notes that say that this is a slim core, unless it has one, and which contents it has. */
struct error *slim_notes_end(struct slim_notes *notes, const struct slim_rules *rules);
