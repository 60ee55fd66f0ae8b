#include "cli/live/doctor.h"
#include "cli/command.h"

struct writing {
	struct report *report;
	unsigned int limited;
};

static void write_diagnosis(void *data, const struct diagnosis *diagnosis)
{
	struct writing *writing = data;

	writing->limited += diagnosis->is_limited;
	report_row(writing->report, diagnosis->is_limited ? "limited" : "ok", diagnosis->of,
		   diagnosis->finding, diagnosis->change);
}

static struct error *doctor_control(struct session *session, const void *arguments,
				    struct report *report)
{
	static const struct table table =
		TABLE("diagnosis", "{state}: {of}: {finding}[\n    to change it: {change}]",
		      { "state", VALUE_TEXT }, { "of", VALUE_TEXT }, { "finding", VALUE_TEXT },
		      { "change", VALUE_TEXT });
	struct writing writing = { report, 0 };

	report_begin_table(report, &table);
	doctor_visit(write_diagnosis, &writing);
	report_end_table(report);
	return writing.limited ? error_create(ERROR_FOUND, "%u of the checks found a limit",
					      writing.limited)
			       : NULL;
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "Say what this system lets heapcore do, and how to change it",
	.example = "doctor",
	.description =
		"Checks whether processes may be traced (ptrace(2), Yama, capabilities), whether the kernel writes cores and what is in them, the room for them, memory, and where debug information comes from. `heapcore doctor` needs no core. The exit status is 1 if anything is limited.",
	.stands_alone = true,
	.control = doctor_control,
};
