#include "cli/views/description.h"

static bool describe_member(void *data, allocation_id id)
{
	struct describer *describer = data;

	describe_allocation(describer, id);
	if (describe_likely(describer, id))
		describe_text(describer->report, "");
	return !describer->error && !report_broken(describer->report);
}

static struct error *describe_run(struct analysis *analysis, const void *arguments,
				  struct report *report)
{
	const struct selection *selection = arguments;
	_cleanup_(describer_deinit) struct describer describer = { 0 };
	struct error *error = describer_init(&describer, analysis, selection, report);
	struct place place;

	if (error)
		return error;
	if (!selection->is_address)
		return describe_set(&describer, describe_member);
	place = place_find(analysis, selection->address);
	describe_address(&describer, selection->address, &place);
	if (place.kind == PLACE_ALLOCATION && describe_likely(&describer, place.id))
		describe_text(report, "");
	return take(describer.error);
}

const struct command command_describe = {
	.name = "describe",
	.summary = "Say what an address, or each member of a set, is",
	.words = "ADDRESS | SET [KIND]",
	.example = "describe 55d0c0ffee10\n"
		   "describe leaked --limit 5 --show-up-to 40   # with contents\n"
		   "describe threads   # with registers and calls",
	.description =
		"Of an allocation it tells whether it is in use, and anchored or leaked, and if leaked, whether its address stands in disguise somewhere (see explain); its signature and class; its pattern, and what it is part of. Of another address, which stack, module or mapping it is in, and the variable or function there, if that is known.",
	.word = WORD_SET,
	.options = contents_options,
	.parse = selection_or_address_parse,
	.arguments_size = sizeof(struct selection),
	.release = selection_release,
	.needs = STAGE_REACHABILITY,
	.run = describe_run,
};
