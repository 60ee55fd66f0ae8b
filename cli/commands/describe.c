#include "cli/views/description.h"
#include "cli/views/rows.h"

static bool describe_member(void *data, allocation_id id)
{
	struct describer *describer = data;

	describe_allocation(describer, id);
	if (describe_likely(describer, id))
		rows_text(describer->report, "");
	return !describer->error && !report_broken(describer->report);
}

static struct error *describe_run(struct analysis *analysis, const void *arguments,
				  struct report *report)
{
	const struct selection *selection = arguments;
	_cleanup_(describer_deinit) struct describer describer = { 0 };
	struct place place;

	TRY(describer_init(&describer, analysis, selection, report));
	if (!selection->is_address)
		return describe_set(&describer, describe_member);
	place = place_find(analysis, selection->address);
	describe_address(&describer, selection->address, &place);
	if (place.kind == PLACE_ALLOCATION && describe_likely(&describer, place.id))
		rows_text(report, "");
	return take(describer.error);
}

const struct command command_describe = {
	.name = "describe",
	.summary = "Describe an address, or each member of a set",
	.words = "ADDRESS | SET [KIND]",
	.example = "describe 55d0c0ffee10\n"
		   "describe leaked --limit 5 --show-up-to 40   # with contents\n"
		   "describe threads   # with registers and calls",
	.description =
		"For an allocation: whether it is used or free, anchored or leaked; its signature, class, type and pattern, and what it is part of. If it leaked, also whether its address is stored in disguise somewhere (see explain). For any other address: the stack, module or mapping that contains it, and the variable or function there, if known.",
	TAKES_SELECTION,
	.shorten = selection_shorten,
	.options = contents_options,
	.parse = selection_or_address_parse,
	.needs = STAGE_REACHABILITY,
	.run = describe_run,
};

/* A leaked allocation's first line says whether it is a leak root. */
static struct error *need_for(struct analysis *analysis, allocation_id id, bool is_one)
{
	if (!bitmap_get(analysis_leaked(analysis), id))
		return NULL;
	return is_one ? analysis_need_leaks_to(analysis, id) : analysis_need(analysis, STAGE_LEAKS);
}

static bool explain_member(void *data, allocation_id id)
{
	struct describer *describer = data;

	describer->error = need_for(describer->analysis, id, false);
	if (!describer->error)
		describe_allocation(describer, id);
	if (!describer->error)
		describer->error = explain_allocation(describer, id);
	return !describer->error && !report_broken(describer->report);
}

static struct error *explain_run(struct analysis *analysis, const void *arguments,
				 struct report *report)
{
	const struct selection *selection = arguments;
	_cleanup_(describer_deinit) struct describer describer = { 0 };
	struct place place;

	TRY(describer_init(&describer, analysis, selection, report));
	if (!selection->is_address)
		return describe_set(&describer, explain_member);
	place = place_find(analysis, selection->address);
	if (place.kind == PLACE_ALLOCATION)
		TRY(need_for(analysis, place.id, true));
	describe_address(&describer, selection->address, &place);
	if (describer.error || place.kind != PLACE_ALLOCATION)
		return take(describer.error);
	return explain_allocation(&describer, place.id);
}

const struct command command_explain = {
	.name = "explain",
	.summary = "Show what holds an address, or each member of a set",
	.words = "ADDRESS | SET [KIND]",
	.example = "explain 55d0c0ffee10   # what holds it, or how it was lost\n"
		   "explain leakroots --sort-by bytes --limit 3",
	.description =
		"For an allocation in use: the way from a root that lasts longest (static data rather than a variable of a call, and a word of a stack last), a step a line, where the nodes of a list are one step, and how many other ways there are; with '--all', and in formats of data, the nearest root of each kind, and the chain of references from each. For an object of Python or Ruby, how the program reaches it: \"app.users['anna'].orders[3]\". For a leaked one: the leak root that it was lost with, and whether its address is likely stored in disguise: with a tag in the high bits, packed, boxed, one past the end, just before the start, or as a distance from its own place. For a free one: what still refers to it.",
	TAKES_SELECTION,
	.shorten = selection_shorten,
	.options = contents_options,
	.parse = selection_or_address_parse,
	.needs = STAGE_REACHABILITY,
	.run = explain_run,
};
