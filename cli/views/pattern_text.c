#include "cli/views/pattern_text.h"

#include "analyzer/classify/reader.h"
#include "analyzer/query/place.h"

#include <inttypes.h>
#include <string.h>

/* Whose owner it is: the allocation, stack or variable around it. */
static char *describe_owner_place(const struct analysis *analysis, uint64_t owner)
{
	struct place place = place_find(analysis, owner);
	struct debug *debug = analysis_debug(analysis);
	const char *name = NULL;
	char *text = NULL;
	int length = 0;

	if (place.kind == PLACE_MODULE)
		name = debug_name(debug, owner);
	if (place.kind == PLACE_STACK && place.stack->thread != NO_THREAD)
		name = debug_stack_place(debug, place.stack->thread, owner);
	if (place.kind == PLACE_ALLOCATION && place.start != owner)
		length =
			asprintf(&text, ", at offset 0x%" PRIx64 " of the allocation at 0x%" PRIx64,
				 owner - place.start, place.start);
	else if (place.kind != PLACE_ALLOCATION && name)
		length = asprintf(&text, ", which is %s", name);
	else
		length = asprintf(&text, "%s", "");
	return length < 0 ? NULL : text;
}

static char *describe_extent(const struct pattern_facts *facts)
{
	/* Of one, the singular: all units end in an s. */
	int unit_length = facts->unit ? (int)strlen(facts->unit) : 0;
	char *text = NULL;
	int length;

	if (facts->length == 1)
		unit_length--;
	if (!facts->unit)
		length = asprintf(&text, "%s", "");
	else if (facts->has_capacity)
		length = asprintf(&text, ": length %" PRIu64 ", capacity %" PRIu64 " %s",
				  facts->length, facts->capacity, facts->unit);
	else
		length = asprintf(&text, ", which has %" PRIu64 " %.*s", facts->length, unit_length,
				  facts->unit);
	return length < 0 ? NULL : text;
}

static struct error *describe_part(const struct analysis *analysis,
				   const struct pattern_facts *facts, char **ret)
{
	_cleanup_(free) char *place = NULL, *extent = NULL;
	char *text = NULL;
	int length;

	if (facts->owner == 0) {
		*ret = strdup(facts->role);
		return *ret ? NULL : &error_no_memory;
	}
	place = describe_owner_place(analysis, facts->owner);
	extent = describe_extent(facts);
	if (!place || !extent)
		return &error_no_memory;
	length = asprintf(&text, "%s at 0x%" PRIx64 "%s%s", facts->role, facts->owner, place,
			  extent);
	if (length < 0)
		return &error_no_memory;
	*ret = text;
	return NULL;
}

struct error *pattern_text_init(struct pattern_text *text, struct analysis *analysis,
				allocation_id id)
{
	struct error *error = analysis_need_owners_of(analysis, &id, 1);
	const struct patterns *patterns;
	struct pattern_facts facts;
	struct reader reader;

	*text = (struct pattern_text){ NULL };
	if (error)
		return error;
	patterns = analysis_owners(analysis);
	patterns_init_reader(patterns, &reader);
	if (!patterns_tell(patterns, &reader, id, &facts))
		return NULL;
	text->name = pattern_name(patterns_of(patterns, id));
	return describe_part(analysis, &facts, &text->part);
}

void pattern_text_deinit(struct pattern_text *text)
{
	free(text->part);
	*text = (struct pattern_text){ NULL };
}
