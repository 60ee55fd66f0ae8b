#include "cli/prompt/captured.h"

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
