#include "cli/assistants/channel.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

/* Further ones wait in the pipe. */
enum { MOST_WAITING = 256, BUFFER_SIZE = 1 << 16 };

struct channel {
	int in, out;
	atomic_bool *interrupted;
	pthread_t reader;

	pthread_mutex_t lock; /* protects the fields below */
	pthread_cond_t changed;
	json_t *waiting[MOST_WAITING]; /* from the first on, in a circle */
	size_t first, count;
	bool ended, closing;
	json_t *answered; /* the id of the request that is; a copy; or NULL */
	bool cancelled;	  /* that one */

	pthread_mutex_t out_lock;
	bool broken; /* nobody reads on */
};

/* ---- out */

static bool write_all(int fd, const char *bytes, size_t size)
{
	while (size > 0) {
		ssize_t written = write(fd, bytes, size);

		if (written < 0 && errno != EINTR)
			return false;
		if (written > 0) {
			bytes += written;
			size -= (size_t)written;
		}
	}
	return true;
}

/* Takes the message over; NULL: memory was short. */
static void send_message(struct channel *channel, json_t *message)
{
	_cleanup_(release_json) json_t *owned = message;
	_cleanup_(free) char *text = owned ? json_dumps(owned, JSON_COMPACT) : NULL;

	if (!text)
		fputs("heapcore: out of memory: the connection ends\n", stderr);
	pthread_mutex_lock(&channel->out_lock);
	if (!text || !write_all(channel->out, text, strlen(text)) ||
	    !write_all(channel->out, "\n", 1))
		channel->broken = true;
	pthread_mutex_unlock(&channel->out_lock);
}

/* id NULL: it is not known. Takes data over, which may be NULL. */
static void send_error(struct channel *channel, const json_t *id, enum rpc_code code,
		       const char *message, json_t *data)
{
	json_t *error = json_pack("{s:i, s:s}", "code", (int)code, "message", message);

	if (data)
		json_object_set_new(error, "data", data);
	send_message(channel, json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id",
					id ? id : json_null(), "error", error));
}

static void send_result(struct channel *channel, const json_t *id, json_t *result)
{
	if (result)
		send_message(channel, json_pack("{s:s, s:O, s:o}", "jsonrpc", "2.0", "id", id,
						"result", result));
	else
		send_error(channel, id, RPC_INTERNAL_ERROR, "out of memory", NULL);
}

void channel_notify(struct channel *channel, const char *method, json_t *params)
{
	if (params)
		send_message(channel, json_pack("{s:s, s:s, s:o}", "jsonrpc", "2.0", "method",
						method, "params", params));
}

/* ---- in */

static bool is_id(const json_t *id)
{
	return json_is_string(id) || json_is_integer(id);
}

/* One that waits is dropped; the one that is being answered is interrupted. */
static void cancel(struct channel *channel, const json_t *id)
{
	size_t kept = 0;

	if (!is_id(id))
		return;
	pthread_mutex_lock(&channel->lock);
	if (channel->answered && json_equal(channel->answered, id)) {
		channel->cancelled = true;
		atomic_store(channel->interrupted, true);
	}
	for (size_t i = 0; i < channel->count; i++) {
		json_t *message = channel->waiting[(channel->first + i) % MOST_WAITING];

		if (json_equal(json_object_get(message, "id"), id))
			json_decref(message);
		else
			channel->waiting[(channel->first + kept++) % MOST_WAITING] = message;
	}
	channel->count = kept;
	pthread_mutex_unlock(&channel->lock);
}

/* Takes the message over. */
static void queue(struct channel *channel, json_t *message)
{
	pthread_mutex_lock(&channel->lock);
	while (channel->count == MOST_WAITING && !channel->closing)
		pthread_cond_wait(&channel->changed, &channel->lock);
	if (channel->closing)
		json_decref(message);
	else
		channel->waiting[(channel->first + channel->count++) % MOST_WAITING] = message;
	pthread_cond_broadcast(&channel->changed);
	pthread_mutex_unlock(&channel->lock);
}

static void take_notification(struct channel *channel, const char *method, const json_t *params)
{
	if (strcmp(method, "notifications/cancelled") == 0)
		cancel(channel, json_object_get(params, "requestId"));
}

/* Return the message's mistake, or NULL if it is well-formed. */
static const char *find_mistake(const json_t *message)
{
	const json_t *version = json_object_get(message, "jsonrpc");
	const json_t *id = json_object_get(message, "id");
	const json_t *params = json_object_get(message, "params");

	if (!json_is_object(message))
		return "a message is an object";
	if (!json_is_string(version) || strcmp(json_string_value(version), "2.0") != 0)
		return "'jsonrpc' is not \"2.0\"";
	if (id && !is_id(id))
		return "'id' is neither a string nor an integer";
	if (!json_is_string(json_object_get(message, "method")))
		return "'method' is not a string";
	if (params && !json_is_object(params))
		return "'params' is not an object";
	return NULL;
}

/* Nothing was asked of the client. */
static bool is_response(const json_t *message)
{
	return !json_object_get(message, "method") &&
	       (json_object_get(message, "result") || json_object_get(message, "error"));
}

static void take_message(struct channel *channel, json_t *message)
{
	_cleanup_(release_json) json_t *owned = message;
	const json_t *id = json_object_get(message, "id");
	const char *mistake = find_mistake(message), *method;

	if (is_response(message))
		return;
	if (mistake) {
		send_error(channel, is_id(id) ? id : NULL, RPC_INVALID_REQUEST, mistake, NULL);
		return;
	}
	method = json_string_value(json_object_get(message, "method"));
	if (!id)
		take_notification(channel, method, json_object_get(message, "params"));
	else if (strcmp(method, "ping") == 0)
		send_result(channel, id, json_object());
	else
		queue(channel, take(owned));
}

/* A line; empty ones mean nothing. */
static void take_line(struct channel *channel, const char *line, size_t length)
{
	json_t *message;

	if (length > MOST_MESSAGE) {
		send_error(channel, NULL, RPC_INVALID_REQUEST, "the message is too long", NULL);
		return;
	}
	while (length > 0 &&
	       (line[length - 1] == ' ' || line[length - 1] == '\t' || line[length - 1] == '\r'))
		length--;
	if (length == 0)
		return;
	message = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL);
	if (message)
		take_message(channel, message);
	else
		send_error(channel, NULL, RPC_PARSE_ERROR, "the line is no JSON", NULL);
}

/* A line as far as it was read; what is too much of it is only counted. */
struct line_buffer {
	char *bytes; /* MOST_MESSAGE of them; owned */
	size_t length;
};

static void take_bytes(struct channel *channel, struct line_buffer *line, const char *bytes,
		       size_t size)
{
	while (size > 0) {
		const char *end = memchr(bytes, '\n', size);
		size_t length = end ? (size_t)(end - bytes) : size;
		size_t room = line->length < MOST_MESSAGE ? MOST_MESSAGE - line->length : 0;

		memcpy(line->bytes + (room ? line->length : 0), bytes, MIN(length, room));
		line->length += length;
		bytes += length;
		size -= length;
		if (!end)
			return;
		take_line(channel, line->bytes, line->length);
		line->length = 0;
		bytes++;
		size--;
	}
}

/* Only while it waits for input can the thread be ended. */
static ssize_t read_some(int fd, char *bytes, size_t size)
{
	ssize_t got;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	do
		got = read(fd, bytes, size);
	while (got < 0 && errno == EINTR);
	pthread_setcancelstate(state, NULL);
	return got;
}

struct reader {
	struct channel *channel;
	struct line_buffer line;
	char buffer[BUFFER_SIZE];
};

static void reader_end(void *data)
{
	struct reader *reader = data;
	struct channel *channel = reader->channel;

	pthread_mutex_lock(&channel->lock);
	channel->ended = true;
	pthread_cond_broadcast(&channel->changed);
	pthread_mutex_unlock(&channel->lock);
	free(reader->line.bytes);
	free(reader);
}

static void *reader_run(void *data)
{
	struct reader *reader = data;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_cleanup_push(reader_end, reader);
	for (;;) {
		ssize_t got = read_some(reader->channel->in, reader->buffer, BUFFER_SIZE);

		if (got <= 0)
			break;
		take_bytes(reader->channel, &reader->line, reader->buffer, (size_t)got);
	}
	/* The last line need not be ended. */
	take_line(reader->channel, reader->line.bytes, reader->line.length);
	pthread_cleanup_pop(true);
	return NULL;
}

static struct error *start_reader(struct channel *channel)
{
	struct reader *reader = calloc(1, sizeof(*reader));

	if (reader)
		reader->line.bytes = malloc(MOST_MESSAGE);
	if (reader && reader->line.bytes) {
		reader->channel = channel;
		errno = pthread_create(&channel->reader, NULL, reader_run, reader);
		if (!errno)
			return NULL;
		free(reader->line.bytes);
	}
	free(reader);
	return error_system("a thread that reads");
}

struct error *channel_open(int in, int out, atomic_bool *interrupted, struct channel **ret)
{
	struct channel *channel = calloc(1, sizeof(*channel));
	struct error *error;

	TRY_MEMORY(channel);
	channel->in = in;
	channel->out = out;
	channel->interrupted = interrupted;
	pthread_mutex_init(&channel->lock, NULL);
	pthread_mutex_init(&channel->out_lock, NULL);
	pthread_cond_init(&channel->changed, NULL);
	error = start_reader(channel);
	if (error)
		free(channel);
	else
		*ret = channel;
	return error;
}

void channel_close(struct channel *channel)
{
	pthread_mutex_lock(&channel->lock);
	channel->closing = true;
	pthread_cond_broadcast(&channel->changed);
	pthread_mutex_unlock(&channel->lock);
	pthread_cancel(channel->reader);
	pthread_join(channel->reader, NULL);
	for (size_t i = 0; i < channel->count; i++)
		json_decref(channel->waiting[(channel->first + i) % MOST_WAITING]);
	pthread_cond_destroy(&channel->changed);
	pthread_mutex_destroy(&channel->out_lock);
	pthread_mutex_destroy(&channel->lock);
	free(channel);
}

/* ---- requests, one by one */

static bool is_broken(struct channel *channel)
{
	bool broken;

	pthread_mutex_lock(&channel->out_lock);
	broken = channel->broken;
	pthread_mutex_unlock(&channel->out_lock);
	return broken;
}

bool channel_next(struct channel *channel, struct request *ret)
{
	json_t *message = NULL;

	if (is_broken(channel))
		return false;
	pthread_mutex_lock(&channel->lock);
	while (!channel->count && !channel->ended)
		pthread_cond_wait(&channel->changed, &channel->lock);
	if (channel->count) {
		message = channel->waiting[channel->first];
		channel->first = (channel->first + 1) % MOST_WAITING;
		channel->count--;
		channel->answered = json_deep_copy(json_object_get(message, "id"));
		pthread_cond_broadcast(&channel->changed);
	}
	pthread_mutex_unlock(&channel->lock);
	*ret = (struct request){
		.message = message,
		.id = json_object_get(message, "id"),
		.method = json_string_value(json_object_get(message, "method")),
		.params = json_object_get(message, "params"),
	};
	return message;
}

/* Returns true if the request was cancelled. */
static bool end_request(struct channel *channel)
{
	bool cancelled;

	pthread_mutex_lock(&channel->lock);
	cancelled = channel->cancelled;
	channel->cancelled = false;
	json_decref(take(channel->answered));
	atomic_store(channel->interrupted, false);
	pthread_mutex_unlock(&channel->lock);
	return cancelled;
}

void channel_answer(struct channel *channel, struct request *request, json_t *result)
{
	if (end_request(channel))
		json_decref(result);
	else
		send_result(channel, request->id, result);
	json_decref(take(request->message));
}

void channel_refuse(struct channel *channel, struct request *request, enum rpc_code code,
		    const char *message, json_t *data)
{
	if (end_request(channel))
		json_decref(data);
	else
		send_error(channel, request->id, code, message, data);
	json_decref(take(request->message));
}
