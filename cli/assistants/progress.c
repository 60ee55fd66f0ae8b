/*
 * Reports the progress of a request to the client now and then, if it wants to know.
 *
 * The number must grow each time: a task counts for 1, and how far it is for a part of that. Where
 * nobody knows how far it is, the number grows a little, so that the client sees that work goes on.
 */
#include "cli/assistants/server.h"

#include <string.h>
#include <time.h>

static const int64_t INTERVAL = 500; /* milliseconds */

static int64_t now_milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void tell(struct server *server, const char *task, double share)
{
	static const double LITTLE = 0.001;
	char text[128];

	if (task != server->task)
		server->steps++;
	server->task = task;
	if (server->reported + LITTLE < server->steps + share)
		server->reported = server->steps + share;
	else
		server->reported += LITTLE;
	if (share > 0)
		snprintf(text, sizeof(text), "%s: %.0f %%", task, 100 * share);
	else
		snprintf(text, sizeof(text), "%s", task ? task : "working");
	channel_notify(server->channel, "notifications/progress",
		       json_pack("{s:O, s:f, s:s}", "progressToken", server->token, "progress",
				 server->reported, "message", text));
}

/* From any thread: the clock decides which tells. */
static void show(struct progress *progress)
{
	struct server *server = progress->show_data;
	int64_t next = atomic_load_explicit(&server->next_tell, memory_order_relaxed);
	int64_t now = now_milliseconds();
	uint64_t done = atomic_load(&progress->done), total = progress->total;

	if (now < next ||
	    !atomic_compare_exchange_strong(&server->next_tell, &next, now + INTERVAL) ||
	    atomic_flag_test_and_set(&server->telling))
		return;
	tell(server, progress->task, done < total ? (double)done / (double)total : 0);
	atomic_flag_clear(&server->telling);
}

void progress_tell(struct server *server, const json_t *params)
{
	struct progress *progress = &server->session.progress.progress;

	server->token = json_object_get(json_object_get(params, "_meta"), "progressToken");
	if (!json_is_string(server->token) && !json_is_integer(server->token))
		server->token = NULL;
	server->task = NULL;
	server->steps = server->reported = 0;
	atomic_store(&server->next_tell, now_milliseconds() + INTERVAL);
	progress->task = NULL;
	progress->show_data = server;
	progress->show = server->token ? show : NULL;
}
