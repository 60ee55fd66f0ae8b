/*
 * Notes that are said once a stage is there.
 *
 * A note names the stage that it rests on, and is said with one that is built upon that: so none
 * asks for what is not known yet, and commands that build different stages say the same.
 */
#pragma once

#include "analyzer/analysis/analysis.h"

struct stage_note {
	enum stage rests_on;
	enum stage said_with[2]; /* the first of them that is built */
	/* Returns true if it added a finding. */
	bool (*tell)(const struct analysis *analysis, struct findings *findings);
};

enum { STAGE_NOTES = 6 };

extern const struct stage_note stage_notes[STAGE_NOTES];

/* Say those that go with the stage, which was just built; each once. */
void analysis_tell_notes(struct analysis *analysis, enum stage stage);

/* True if the stage needs the other one, or is it. */
bool stage_rests_on(enum stage stage, enum stage other);
