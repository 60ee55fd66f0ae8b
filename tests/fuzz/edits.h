/*
 * Files with a structure, changed in places that matter.
 *
 * Mutating the bytes of a core as such would mostly change what nobody reads. So the input of a
 * target is a list of edits, 16 bytes each, to one of a few files: "the size in the header of the
 * 12th allocation becomes what it was, less 64". Whatever the bytes of an input are, they are such
 * a list.
 *
 * A file is kept as a memory file; an edit is taken back once the target has seen it. So an input
 * costs what the target does with it, no more.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum place {
	PLACE_HEADERS, /* a byte of the first headers and notes */
	PLACE_CHUNK,   /* a word of an allocation's header */
	PLACE_POINTER, /* a word that is an address of the process */
	PLACE_WORD,    /* a word that is not zero */
	PLACE_FIRST,   /* one of an allocation's first words */
	PLACE_ANY,     /* any byte */
	PLACE_CUT,     /* the file ends there */
	PLACE_BLANK,   /* from here on, so many bytes become zero */
	PLACES,
};

enum change {
	CHANGE_SET,
	CHANGE_ADD,	/* a small number */
	CHANGE_FLIP,	/* bits */
	CHANGE_POINTER, /* the value of another word that is an address */
	CHANGE_BLOCK,	/* the address of an allocation */
	CHANGE_SELF,	/* the address of the word itself, or nearby */
	CHANGE_EXTREME, /* a number on the brink of something */
	CHANGES,
};

struct edit {
	uint8_t place, change, width, count; /* repeated at what follows */
	uint32_t index;			     /* which of those places */
	uint64_t value;
};

/* Places are offsets into the file. */
struct places {
	uint64_t *list;
	size_t count;
};

struct edited_file {
	int fd;
	char path[32]; /* names it as long as it is open */
	uint8_t *bytes;
	size_t size;
	size_t headers; /* how many of the bytes PLACE_HEADERS is about */
	struct places chunks, pointers, words, first;
};

/*
 * Read the file of that name, which the build unpacked. The caller fills in the places; exits if
 * it is not there.
 */
void edited_file_open(struct edited_file *file, const char *name);

/*
 * Like edited_file_open(), with the contents of fd, which is open for reading and writing and
 * becomes the file's. name is for messages.
 */
void edited_file_adopt(struct edited_file *file, int fd, const char *name);

/* As edited_file_open() with the places of a core, found by means of heapcore
 * itself. */
void edited_core_open(struct edited_file *file, const char *name);

void places_add(struct places *places, uint64_t place);

/* Make the changes that the bytes stand for, or take them back. */
void edits_make(struct edited_file *file, const uint8_t *bytes, size_t size);
void edits_undo(struct edited_file *file);

/* As LLVMFuzzerCustomMutator(): edits behind a head of so many bytes. */
size_t edits_mutate(uint8_t *bytes, size_t size, size_t most, size_t head, unsigned int seed);
