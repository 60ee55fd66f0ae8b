#include "cli/description.h"

static bool describe_member(void *data, allocation_id id)
{
	struct describer *describer = data;

	describe_allocation(describer, id);
	return !describer->error && !report_broken(describer->report);
}

static struct error *describe_run(struct analysis *analysis,
				  const void *arguments, struct report *report)
{
	const struct selection *selection = arguments;
	_cleanup_(describer_deinit) struct describer describer = { 0 };
	struct error *error =
		describer_init(&describer, analysis, selection, report);
	struct place place;

	if (error)
		return error;
	if (!selection->is_address)
		return describe_set(&describer, describe_member);
	place = place_find(analysis, selection->address);
	describe_address(&describer, selection->address, &place);
	return take(describer.error);
}

const struct command command_describe = {
	.name = "describe",
	.summary = "Say what an address, or each member of a set, is",
	.words = "ADDRESS | SET [KIND]",
	.example =
		"describe 55d0c0ffee10\n"
		"describe leaked --limit 5 --show-up-to 40   # with contents\n"
		"describe threads   # with registers and calls",
	.description = "Of an allocation it tells whether it is in use, and "
		       "anchored or leaked; its signature and class; its "
		       "pattern, and what it is part of. Of another address, "
		       "which stack, module or mapping it is in, and the "
		       "variable or function there, if that is known.",
	.word = WORD_SET,
	.options = contents_options,
	.parse = selection_or_address_parse,
	.arguments_size = sizeof(struct selection),
	.release = selection_release,
	.needs = STAGE_REACHABILITY,
	.needs_analysis = true,
	.run = describe_run,
};
