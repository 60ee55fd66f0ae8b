#include "analyzer/analysis/liveness.h"

static const struct {
	const char *word, *title, *phrase;
} names[LIVE_STATES] = {
	[STATE_AT_RISK] = { "at risk", "At-risk", "an at-risk allocation" },
	[STATE_ANCHORED] = { "anchored", "Anchored", "an anchored allocation" },
	[STATE_GARBAGE] = { "garbage", "Garbage", "a garbage allocation" },
	[STATE_HELD] = { "held by garbage", "Garbage-held", "an allocation held by garbage" },
	[STATE_LEAKED] = { "leaked", "Leaked", "a leaked allocation" },
	[STATE_UNREFERENCED] = { "leaked", "Unreferenced", "an unreferenced allocation" },
	[STATE_USED] = { "used", "Used", "a used allocation" },
	[STATE_UNSWEPT] = { "unswept", "Unswept", "an unswept allocation" },
	[STATE_CACHED] = { "thread cached", "Thread cached free",
			   "a thread cached free allocation" },
	[STATE_FREE] = { "free", "Free", "a free allocation" },
};

const char *liveness_word(enum live_state state)
{
	return names[state].word;
}

const char *liveness_title(enum live_state state)
{
	return names[state].title;
}

const char *liveness_phrase(enum live_state state)
{
	return names[state].phrase;
}

static const struct bitmap *built(const struct bitmap *set)
{
	return set->words ? set : NULL;
}

const struct bitmap *liveness_set(const struct analysis *analysis, enum live_state state)
{
	const struct allocation_index *index = analysis_index(analysis);

	switch (state) {
	case STATE_AT_RISK:
		return analysis_at_risk(analysis);
	case STATE_ANCHORED:
		return built(analysis_anchored(analysis));
	case STATE_GARBAGE:
		return analysis_garbage(analysis);
	case STATE_HELD:
		return analysis_held(analysis);
	case STATE_LEAKED:
		return built(analysis_leaked(analysis));
	case STATE_USED:
		return allocation_used(index);
	case STATE_UNSWEPT:
		return allocation_having(index, TRAIT_DEAD);
	case STATE_CACHED:
		return allocation_cached(index);
	default:
		return NULL;
	}
}

enum live_state liveness_of(const struct analysis *analysis, allocation_id id)
{
	for (enum live_state state = STATE_NONE + 1; state < STATE_FREE; state++) {
		const struct bitmap *set = liveness_set(analysis, state);

		if (set && bitmap_get(set, id))
			return state;
	}
	return STATE_FREE;
}
