#include "analyzer/analysis/notes.h"

#include "analyzer/analysis/parts.h"

#include <assert.h>

enum { MOST_NOTE = 160 };

/* Note features that do not support processes with words of 4 bytes. */
static bool tell_narrow(const struct analysis *analysis, struct findings *findings)
{
	if (!analysis_is_narrow(analysis))
		return false;
	findings_add(findings, FINDING_NOTE, "disguised pointers of %s are not read yet",
		     analysis->image->arch->name);
	for (const struct runtime *const *kind = analysis->runtime_kinds; *kind; kind++)
		if (runtime_is_loaded(*kind, analysis->program))
			findings_add(
				findings, FINDING_NOTE,
				"%s is loaded, and its objects are not read in 32-bit programs: they are not counted, and its memory outside of known heaps is a root%s",
				(*kind)->name,
				(*kind)->integer
					? "; a block whose only reference is an integer looks leaked"
					: "");
	return true;
}

static bool tell_collection(const struct analysis *analysis, struct findings *findings)
{
	char text[MOST_NOTE];
	const char *name = runtimes_collecting(analysis->runtimes, text, sizeof(text));

	if (name)
		findings_add(
			findings, FINDING_NOTE,
			"the collector of %s was running: objects that it was about to free still count as in use or garbage",
			name);
	return name;
}

static bool tell_runtimes(const struct analysis *analysis, struct findings *findings)
{
	size_t count = 0;

	for (size_t i = 0; i < runtime_count(analysis->runtimes); i++) {
		const struct runtime *runtime = runtime_at(analysis->runtimes, i);

		if (!runtime->leaks_note || runtimes_space(analysis->runtimes, runtime))
			continue;
		findings_add(findings, FINDING_NOTE, "%s", runtime->leaks_note);
		count++;
	}
	return count > 0;
}

/* Garbage stays in memory if the collector does not run. */
static bool tell_collector(const struct analysis *analysis, struct findings *findings)
{
	char text[MOST_NOTE] = "";

	if (analysis->liveness.garbage.words)
		runtimes_collecting(analysis->runtimes, text, sizeof(text));
	if (!text[0])
		return false;
	findings_add(findings, FINDING_NOTE, "%s", text);
	return true;
}

/* Debug information says little about the objects of an interpreter. */
static bool tell_missing_types(const struct analysis *analysis, struct findings *findings)
{
	if (!runtimes_have_objects(analysis->runtimes))
		debug_miss_types(analysis->debug);
	return true;
}

static bool tell_limit(const struct analysis *analysis, struct findings *findings)
{
	const char *limit = typing_limit(analysis_typing(analysis));

	if (limit)
		findings_add(findings, FINDING_NOTE,
			     "not all types of allocations are inferred: %s", limit);
	return limit;
}

const struct stage_note stage_notes[STAGE_NOTES] = {
	{ STAGE_PROGRAM, { STAGE_HEAP, STAGE_HEAP }, tell_narrow },
	{ STAGE_FIBERS, { STAGE_REACHABILITY, STAGE_OBJECTS }, tell_collection },
	{ STAGE_REACHABILITY, { STAGE_REACHABILITY, STAGE_REACHABILITY }, tell_collector },
	{ STAGE_FIBERS, { STAGE_REACHABILITY, STAGE_REACHABILITY }, tell_runtimes },
	{ STAGE_OBJECTS, { STAGE_TYPES, STAGE_LEAKED_TYPES }, tell_missing_types },
	{ STAGE_TYPE_TABLE, { STAGE_TYPES, STAGE_LEAKED_TYPES }, tell_limit },
};

bool stage_rests_on(enum stage stage, enum stage other)
{
	const enum stage *needs = analysis_recipes[stage].needs;

	return stage == other || other == STAGE_IMAGE ||
	       (needs[0] != STAGE_IMAGE && stage_rests_on(needs[0], other)) ||
	       (needs[1] != STAGE_IMAGE && stage_rests_on(needs[1], other));
}

void analysis_tell_notes(struct analysis *analysis, enum stage stage)
{
	for (size_t i = 0; i < STAGE_NOTES; i++) {
		const struct stage_note *note = &stage_notes[i];

		if (analysis->is_told[i] ||
		    (note->said_with[0] != stage && note->said_with[1] != stage))
			continue;
		assert(analysis->costs[note->rests_on].built);
		analysis->is_told[i] = note->tell(analysis, &analysis->findings);
	}
}
