/*
 * The contract of a packing: what a core may be compressed with.
 *
 * Each file of packings/ defines one struct packing; the build collects them. A packed file is one
 * member or several, one after another, each of which begins with the packing's magic number. All
 * of it may be hostile: a decoder may take no more than MOST_DECODER_MEMORY, whatever the file asks
 * for.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The memory that the largest levels of the usual tools ask for, in bytes. */
enum { MOST_DECODER_MEMORY = 256 << 20 };

/* Input to read and output to write; a step advances both. */
struct packing_step {
	const uint8_t *input;
	size_t input_size;
	uint8_t *output;
	size_t output_size;
};

enum packing_state {
	PACKING_GOES_ON,   /* all of the input or of the output is used up */
	PACKING_ENDED,	   /* the member is whole; another may follow */
	PACKING_DAMAGED,   /* no packer writes that, or a checksum is wrong */
	PACKING_NO_MEMORY, /* or more is asked for than may be taken */
};

/*
 * Call step(), of a library whose stream has members called as zlib's, and move on what it used.
 * The library does not write to what it reads, whatever its types; pieces are of a few MB.
 */
#define PACKING_CALL(stream, step, call)                                                    \
	({                                                                                  \
		(stream)->next_in = (__typeof__((stream)->next_in))(step)->input;           \
		(stream)->avail_in = (__typeof__((stream)->avail_in))(step)->input_size;    \
		(stream)->next_out = (__typeof__((stream)->next_out))(step)->output;        \
		(stream)->avail_out = (__typeof__((stream)->avail_out))(step)->output_size; \
		__auto_type status_ = (call);                                               \
		(step)->input = (const uint8_t *)(stream)->next_in;                         \
		(step)->input_size = (stream)->avail_in;                                    \
		(step)->output = (uint8_t *)(stream)->next_out;                             \
		(step)->output_size = (stream)->avail_out;                                  \
		status_;                                                                    \
	})

struct packing {
	const char *name; /* for messages */
	/* True if a member begins with these bytes. */
	bool (*recognise)(const uint8_t *bytes, size_t size);
	/* A decoder for one member; NULL if memory is short. */
	void *(*open)(void);
	enum packing_state (*step)(void *decoder, struct packing_step *step);
	void (*close)(void *decoder);
};

extern const struct packing *const packings[]; /* NULL at the end */
