/*
 * JSON-RPC 2.0 on standard input and output, a message a line.
 *
 * A thread of its own reads, so that a request can be cancelled while it is answered, and a ping
 * is answered meanwhile. Other requests wait in a queue, and are answered one by one. What is no
 * request, or longer than MOST_MESSAGE, is refused and costs nothing else.
 */
#pragma once

#include "analyzer/base/error.h"

#include <jansson.h>
#include <stdatomic.h>

enum rpc_code {
	RPC_PARSE_ERROR = -32700,
	RPC_INVALID_REQUEST = -32600,
	RPC_METHOD_NOT_FOUND = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_INTERNAL_ERROR = -32603,
	/* Defined by MCP, not by JSON-RPC */
	RPC_RESOURCE_NOT_FOUND = -32002,
	RPC_UNSUPPORTED_VERSION = -32022,
};

enum { MOST_MESSAGE = 1 << 20 }; /* bytes of a line */

/* All of it belongs to the message. */
struct request {
	json_t *message;
	const json_t *id;
	const char *method;
	const json_t *params; /* an object; or NULL */
};

static inline void release_json(json_t *json)
{
	json_decref(json);
}
DEFINE_CLEANUP(release_json, json_t *)

struct channel;

/*
 * Read from in, write to out. When the request that is being answered is cancelled, interrupted is
 * set until that has ended.
 */
struct error *channel_open(int in, int out, atomic_bool *interrupted, struct channel **ret);
void channel_close(struct channel *channel);
DEFINE_CLEANUP(channel_close, struct channel *)

/* Wait for the next request, to be answered or refused; false: there are no more. */
bool channel_next(struct channel *channel, struct request *ret);

/*
 * End the request by its result, or by what is wrong with it, and release it. One that was
 * cancelled gets no answer. A result of NULL is a lack of memory. Takes the result and data over,
 * of which data may be NULL.
 */
void channel_answer(struct channel *channel, struct request *request, json_t *result);
void channel_refuse(struct channel *channel, struct request *request, enum rpc_code code,
		    const char *message, json_t *data);

/* From any thread. Takes params over. */
void channel_notify(struct channel *channel, const char *method, json_t *params);
