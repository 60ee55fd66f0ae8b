/*
 * What was found about the dump that limits how far its analysis can be trusted: a truncated file,
 * a missing mapping, a damaged chunk.
 *
 * A finding is a sentence or two for the user: what is wrong, where, and what follows. An
 * incomplete finding means that answers may be wrong; a note means only that the user ought to
 * know, and a caveat says what an answer means that was asked for, also to users who want no notes.
 * The first MAXIMUM_FINDINGS of each weight are kept, the rest are counted, so that no dump can
 * make the list endless.
 */
#ifndef ANALYZER_BASE_FINDINGS_H
#define ANALYZER_BASE_FINDINGS_H

#include "analyzer/base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

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

/* Whether answers may be wrong. */
static inline bool findings_incomplete(const struct findings *findings)
{
	return findings->weighed[FINDING_INCOMPLETE] > 0;
}

#endif
