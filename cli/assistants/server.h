/*
 * Model Context Protocol server: the questions that an assistant may ask about cores.
 *
 * One core is open at a time. Its session is that of a prompt, but for where its output goes: a
 * command's text, its rows as JSON, and messages are kept, and become the answer.
 */
#pragma once

#include "cli/assistants/channel.h"
#include "cli/assistants/folders.h"
#include "cli/fleet/fleet.h"
#include "cli/prompt/capture.h"
#include "cli/prompt/captured.h"

struct server {
	struct folders folders;
	struct session session; /* reused for one core after the other */
	struct channel *channel;
	bool initialized;
	bool unopened; /* the core named on the command line, so far */

	/* See progress_tell(). */
	const json_t *token; /* NULL: it is not wanted */
	_Atomic int64_t next_tell;
	atomic_flag telling;
	const char *task;
	double steps, reported; /* tasks so far, and the progress reported last */
};

/* The output of one command. */
struct answer {
	struct capture text, rows, messages;
	bool failed;
};

/*
 * The most that is kept of each, in bytes. An assistant reads all of an answer, which is text, or
 * rows, or both if they fit; a resource is for a person.
 */
enum {
	MOST_ANSWER = 64 << 10,
	MOST_MESSAGES = 8 << 10,
	MOST_TEXT = MOST_ANSWER - MOST_MESSAGES,
	MOST_DATA = MOST_TEXT,
	MOST_PAGE = 8 << 20,
};

struct error *answer_init(struct answer *answer, size_t most_text);
void answer_deinit(struct answer *answer);
DEFINE_DEINIT(answer_deinit, struct answer)

/* Run a command; most_rows 0: as many as it writes. Errors are part of the answer. */
void server_run(struct server *server, const struct line *line, uint64_t most_rows,
		struct answer *answer);

/* Open that in place of what is open; false: it failed, the answer says why, and that stays. */
bool server_open(struct server *server, const char *path, struct answer *answer);

/* Open the core of the command line, unless that was done. */
void server_open_given(struct server *server, struct answer *answer);

/* Answer as `fleet WORD` does, of the file at path; no core is needed, and none is closed. */
void server_ask_fleet(struct server *server, const char *path, const char *word,
		      const struct fleet_question *question, uint64_t most_rows,
		      struct answer *answer);

/* Write the cores that may be opened, and the files of fleets. */
void server_list_cores(struct server *server, uint64_t most_rows, struct answer *answer);

/* Answer requests up to the end. */
void server_serve(struct server *server);

/* ---- methods: the result, or what is wrong with params */

struct error *tools_list(struct server *server, const json_t *params, json_t **ret);
struct error *tools_call(struct server *server, const json_t *params, json_t **ret);
struct error *resources_list(struct server *server, const json_t *params, json_t **ret);
struct error *resource_templates_list(struct server *server, const json_t *params, json_t **ret);
/* ERROR_SYSTEM: there is none of that name. */
struct error *resources_read(struct server *server, const json_t *params, json_t **ret);

/* Begin to tell how far a request is, if the params ask for that; NULL: end it. */
void progress_tell(struct server *server, const json_t *params);

/* Warns the assistant that text from a core is untrusted. */
extern const char untrusted_note[];
