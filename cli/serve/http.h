/*
 * The server: what browsers ask for, and the answers. The requests are in docs/inside/serve.md.
 *
 * Each connection has a thread, which waits for the jobs that it asked for.
 */
#pragma once

#include "cli/serve/fleet_pages.h"
#include "cli/serve/guard.h"
#include "cli/serve/work.h"

struct http;

/*
 * Answer what comes to the socket, which is listened at and taken: of the core that is worked on,
 * or of a fleet; the other one is NULL. The others are borrowed.
 */
struct error *http_start(int socket, struct guard *guard, struct work *work,
			 const struct fleet_pages *fleet, struct http **ret);

/* After work_stop(): no answer waits for a job any more. */
void http_stop(struct http *http);
DEFINE_CLEANUP(http_stop, struct http *)
