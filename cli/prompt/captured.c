#include "cli/prompt/captured.h"

#include "cli/prompt/machine.h"

void captured_init(struct session *session, struct debug_options *debug, size_t memory,
		   bool no_content)
{
	const char *folder = getenv("TMPDIR");

	if (folder && *folder)
		debug->temporary_folder = folder;
	debug->give_up = give_up;
	debug->memory = machine_memory();
	session_init(session, true);
	session->quiet = false;
	session->colour = COLOUR_NEVER;
	session->debug = debug;
	session->maximum_memory = memory ? memory : debug->memory;
	session->no_content = no_content;
	vanished_catch();
}

static void do_nothing(void *data)
{
}

void captured_begin(struct captured *captured, struct session *session, FILE *output, FILE *rows,
		    FILE *messages)
{
	*captured = (struct captured){
		.output = { .destination = TO_FILE,
			    .into = output,
			    .before = do_nothing,
			    .interrupted = &session->progress.progress.interrupted },
		.rows = { .output.stream = rows },
	};
	session->output = &captured->output;
	session->messages = messages;
	session->wrong_usage = session->failed = session->found = false;
	if (rows && !report_format_find("json", &captured->rows.format)) {
		session->files[0] = &captured->rows;
		session->file_count = 1;
	}
}

bool captured_end(struct session *session)
{
	session->output = NULL;
	session->messages = NULL;
	session->file_count = 0;
	return !session->wrong_usage && !session->failed;
}
