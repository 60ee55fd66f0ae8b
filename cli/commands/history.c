#include "cli/prompt/history.h"

#include "cli/command.h"

static struct error *history_control(struct session *session, const void *arguments,
				     struct report *report)
{
	static const struct table table = TABLE("line", "{number}  {line}",
						{ "number", VALUE_COUNT }, { "line", VALUE_TEXT });
	const char *line;

	report_begin_table(report, &table);
	for (size_t i = 0; (line = history_line(i)); i++)
		report_row(report, i + 1, line);
	report_end_table(report);
	return NULL;
}

const struct command command_history = {
	.name = "history",
	.summary = "List the lines typed at the prompt, the oldest first",
	.example = "history | tail",
	.description = "The last thousand lines are kept across runs.",
	.control = history_control,
};
