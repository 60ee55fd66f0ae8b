/*
 * Errors as values.
 *
 * A function that can fail returns a struct error *, and NULL for success. The caller owns the
 * error: it hands it on, wraps it, or destroys it. Only cli/ shows one.
 */
#pragma once

#include "analyzer/base/cleanup.h"
#include "analyzer/base/macros.h"

#include <stdbool.h>
#include <stddef.h>

enum error_code {
	ERROR_NO_MEMORY,
	ERROR_SYSTEM,	     /* a system call failed */
	ERROR_BAD_DUMP,	     /* the dump says what cannot be */
	ERROR_NOT_SUPPORTED, /* a dump of a kind that is not understood */
	ERROR_USAGE,	     /* the user asked for what does not exist */
	ERROR_INTERRUPTED,   /* the user no longer wants the answer */
	ERROR_FOUND,	     /* the gate found leaks */
};

struct error;

/* May be returned by anyone, any number of times; destroying it is harmless. */
extern struct error error_no_memory;

struct error *error_create(enum error_code code, const char *format, ...)
	__attribute__((format(printf, 2, 3), returns_nonnull));

/* Like error_create(), with ": " and the text of errno behind the message. */
struct error *error_system(const char *format, ...)
	__attribute__((format(printf, 1, 2), returns_nonnull));

/* Put "context: " in front of the message. Consumes and returns the error. */
struct error *error_wrap(struct error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Leave the function with the error of an expression, unless that is NULL. */
#define TRY(expression)                              \
	do {                                         \
		struct error *tried_ = (expression); \
                                                     \
		if (tried_)                          \
			return tried_;               \
	} while (0)

/* Leave the function with error_no_memory, unless memory was allocated. */
#define TRY_MEMORY(is_allocated)                 \
	do {                                     \
		if (!(is_allocated))             \
			return &error_no_memory; \
	} while (0)

/* The first of two that may be NULL; the other is destroyed. */
struct error *error_first(struct error *error, struct error *other);

void error_destroy(struct error *error);
DEFINE_CLEANUP(error_destroy, struct error *)

enum error_code error_code(const struct error *error);
const char *error_message(const struct error *error);

/*
 * Findings: what limits the trust in the analysis of a dump, such as a truncated file, a missing
 * mapping, a damaged chunk.
 *
 * A finding is a sentence or two for the user: what is wrong, where, and what follows. An
 * incomplete one means that answers may be wrong; a note is something to know; a caveat explains an
 * answer that was asked for, and is shown to users who want no notes, too. The first
 * MAXIMUM_FINDINGS of each weight are kept and the others counted, so that no dump can make the
 * list endless.
 */
enum { MAXIMUM_FINDINGS = 100 };

enum finding_weight { FINDING_NOTE, FINDING_INCOMPLETE, FINDING_CAVEAT, FINDING_WEIGHTS };

struct finding {
	enum finding_weight weight;
	char *message;
};

struct findings {
	struct finding *list;
	size_t count;
	size_t weighed[FINDING_WEIGHTS]; /* all ever added, by weight */
};

void findings_deinit(struct findings *findings);
DEFINE_DEINIT(findings_deinit, struct findings)

/* Never fails: short of memory, the finding is still counted. */
void findings_add(struct findings *findings, enum finding_weight weight, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* True if answers may be wrong. */
static inline bool findings_incomplete(const struct findings *findings)
{
	return findings->weighed[FINDING_INCOMPLETE] > 0;
}
