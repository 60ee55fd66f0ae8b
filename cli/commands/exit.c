#include "cli/command.h"
#include "cli/prompt/session.h"

static struct error *exit_control(struct session *session, const void *arguments,
				  struct report *report)
{
	session->leaving = true;
	return NULL;
}

const struct command command_exit = {
	.name = "exit",
	.summary = "Leave, as quit",
	.example = "exit",
	.control = exit_control,
};
