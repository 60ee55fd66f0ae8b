/*
 * Calls of an interpreter's language, which the recorder notes among those of machine code.
 *
 * A language is a file of this folder. It reads its interpreter's memory in the thread that
 * allocates, amid whatever the interpreter is doing: it calls only functions of it that do not
 * allocate, and knows the thread by them, so that it needs no lock.
 */
#pragma once

#include "analyzer/capture/recorder.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A call; add its file, then its function. */
struct script_call {
	uint64_t line; /* 0: not known */
	bool is_first; /* machine code made it: another loop of the interpreter has those around */
	size_t size;
	char text[RECORDER_SCRIPT_TEXT]; /* file and function, each with a 0 at its end */
};

/*
 * Add a text, as far as there is room: in UTF-8, with width 0, or so many characters, each of width
 * bytes.
 */
void script_call_add(struct script_call *call, const void *text, size_t length, unsigned int width);

/* False: no more are asked for. */
typedef bool script_visitor(void *data, const struct script_call *call);

struct language {
	/* The interpreter's loop, an exported function: calls of the language stand in its place.
	 */
	const char *loop;
	/* Find the interpreter's functions; false: this version of it is not known. */
	bool (*open)(void);
	/* Visit this thread's calls, the innermost first. */
	void (*visit)(script_visitor *visit, void *data);
};

extern const struct language *const languages[]; /* NULL at the end */

static inline const char *word_at(const char *address)
{
	const char *word;

	memcpy(&word, address, sizeof(word));
	return word;
}

static inline uint32_t int_at(const char *address)
{
	uint32_t word;

	memcpy(&word, address, sizeof(word));
	return word;
}

/* Set the variable, a pointer to a function or variable that the program exports. */
#define FIND_EXPORTED(variable, name) \
	(((variable) = (__typeof__(variable))dlsym(RTLD_DEFAULT, name)) != NULL)
