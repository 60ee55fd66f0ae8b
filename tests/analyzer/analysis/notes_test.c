/* The stages that a note needs are built before it, whatever a command needs. */
#include "analyzer/analysis/notes.h"

#include "tests/assertions.h"

TEST(each_note_is_said_with_stages_that_rest_on_what_it_asks_for)
{
	for (size_t i = 0; i < STAGE_NOTES; i++)
		for (size_t j = 0; j < 2; j++)
			assert_true(stage_rests_on(stage_notes[i].said_with[j],
						   stage_notes[i].rests_on));
}

TEST(a_stage_rests_on_all_below_it)
{
	assert_true(stage_rests_on(STAGE_LEAKS, STAGE_PROGRAM));
	assert_true(stage_rests_on(STAGE_TYPES, STAGE_OBJECTS));
	assert_false(stage_rests_on(STAGE_REACHABILITY, STAGE_OBJECTS));
	assert_false(stage_rests_on(STAGE_PROGRAM, STAGE_HEAP));
}
