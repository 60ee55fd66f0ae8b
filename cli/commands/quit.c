#include "cli/command.h"
#include "cli/prompt/session.h"

static struct error *quit_control(struct session *session, const void *arguments,
				  struct report *report)
{
	session->leaving = true;
	return NULL;
}

const struct command command_quit = {
	.name = "quit",
	.summary = "Leave",
	.example = "quit",
	.control = quit_control,
};
