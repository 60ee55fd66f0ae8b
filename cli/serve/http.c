#include "cli/serve/http.h"

#include "analyzer/base/text.h"
#include "analyzer/report/page/page.h"
#include "analyzer/report/values.h"
#include "cli/serve/microhttpd.h"
#include "cli/serve/page_files.h"

#include <inttypes.h>
#include <string.h>

enum {
	MOST_QUERY = 8 << 10,
	MOST_HEADERS = 32 << 10,
	MOST_CONNECTIONS = 64,
	IDLE_SECONDS = 20,
	USUAL_PAGE = 200,
	MOST_PAGE = 5000,
	MOST_TEXT = 256 << 10,
};

struct http {
	struct microhttpd library;
	struct MHD_Daemon *daemon;
	struct guard *guard;
	struct work *work;		 /* of a core, or: */
	const struct fleet_pages *fleet; /* else NULL */
};

/* A request that is being answered. */
struct exchange {
	struct http *http;
	struct MHD_Connection *connection;
	const char *path;
};

/* Passed from the first line of a request to its handler. */
struct request_line {
	bool is_refused;
	bool has_headers;
};

static const struct header {
	const char *name, *value;
} headers[] = {
	{ "Content-Security-Policy",
	  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" },
	{ "X-Content-Type-Options", "nosniff" },
	{ "Referrer-Policy", "no-referrer" },
	{ "Cross-Origin-Resource-Policy", "same-origin" },
	{ "Cross-Origin-Opener-Policy", "same-origin" },
	{ "Cache-Control", "no-store" },
};

/* ---- answers */

static const struct microhttpd *library_of(const struct exchange *exchange)
{
	return &exchange->http->library;
}

/* Takes the response over; NULL: memory was short, and the connection ends. */
static enum MHD_Result respond(const struct exchange *exchange, unsigned int status,
			       struct MHD_Response *response, const char *type)
{
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	for (size_t i = 0; i < COUNT_OF(headers); i++)
		library_of(exchange)->add_response_header(response, headers[i].name,
							  headers[i].value);
	library_of(exchange)->add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	result = library_of(exchange)->queue_response(exchange->connection, status, response);
	library_of(exchange)->destroy_response(response);
	return result;
}

static enum MHD_Result respond_static(const struct exchange *exchange, unsigned int status,
				      const char *text, const char *type)
{
	return respond(exchange, status,
		       library_of(exchange)->create_response_from_buffer(strlen(text), (void *)text,
									 MHD_RESPMEM_PERSISTENT),
		       type);
}

/* Takes what is in the writer. */
static enum MHD_Result respond_json(const struct exchange *exchange, unsigned int status,
				    struct writer *writer)
{
	struct writer taken = take_struct(*writer);
	struct MHD_Response *response = NULL;

	if (!taken.failed)
		response = library_of(exchange)->create_response_from_buffer(
			taken.used, taken.buffer, MHD_RESPMEM_MUST_FREE);
	if (!response)
		writer_deinit(&taken);
	return respond(exchange, status, response, "application/json; charset=utf-8");
}

static enum MHD_Result respond_error(const struct exchange *exchange, unsigned int status,
				     const char *message)
{
	struct writer writer = { 0 };

	writer_text(&writer, "{\"error\": ");
	json_text(&writer, message);
	writer_text(&writer, "}\n");
	return respond_json(exchange, status, &writer);
}

/* ---- requests */

static const char *header_of(const struct exchange *exchange, const char *name)
{
	return library_of(exchange)->lookup_connection_value(exchange->connection, MHD_HEADER_KIND,
							     name);
}

static const char *argument_of(const struct exchange *exchange, const char *name)
{
	return library_of(exchange)->lookup_connection_value(exchange->connection,
							     MHD_GET_ARGUMENT_KIND, name);
}

/* False: it is no number. */
static bool number_of(const struct exchange *exchange, const char *name, uint64_t usual,
		      uint64_t *ret)
{
	const char *text = argument_of(exchange, name);
	struct error *error;

	*ret = usual;
	if (!text)
		return true;
	error = parse_count(text, ret);
	error_destroy(error);
	return !error;
}

static int socket_of(const struct exchange *exchange)
{
	const union MHD_ConnectionInfo *info = library_of(exchange)->get_connection_info(
		exchange->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	return info ? info->connect_fd : -1;
}

static enum MHD_Result answer_state(const struct exchange *exchange)
{
	struct writer writer = { 0 };

	work_state(exchange->http->work, &writer);
	return respond_json(exchange, MHD_HTTP_OK, &writer);
}

/* Do the job; true if there is something to answer. A mistake of the command is none of the page.
 */
static bool do_job(const struct exchange *exchange, struct job *job, enum MHD_Result *ret)
{
	job->id = argument_of(exchange, "id");
	if (!work_do(exchange->http->work, job, socket_of(exchange)))
		*ret = respond_error(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "cancelled");
	else if (job->complaint)
		*ret = respond_error(exchange, MHD_HTTP_OK, job->complaint);
	else
		return true;
	return false;
}

/* Write the notes as the document's first member, to be freed. */
static char *write_notes(const char *notes)
{
	struct writer writer = { 0 };
	_cleanup_(free) char *lines = strdup(notes);
	char *rest = NULL;
	size_t count = 0;

	if (!lines)
		return NULL;
	writer_text(&writer, "{\n \"notes\": [");
	for (char *line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		writer_text(&writer, count++ ? ", " : "");
		json_text(&writer, line);
	}
	writer_text(&writer, "],");
	writer_put(&writer, '\0');
	return writer.buffer;
}

/* Answer a command that writes something else than rows. */
static struct error *write_text(const struct kept_rows *rows, struct writer *writer)
{
	struct writer text = { 0 };
	struct error *error = kept_rows_text(rows, MOST_TEXT, &text);

	if (!error) {
		writer_text(writer, "{\"text\": ");
		json_bytes(writer, text.buffer ? text.buffer : "", text.used);
		writer_text(writer, ", \"truncated\": ");
		writer_text(writer, json_truth(kept_rows_size(rows) > MOST_TEXT));
		writer_text(writer, "}\n");
	}
	writer_deinit(&text);
	return error;
}

static enum MHD_Result respond_rows(const struct exchange *exchange, const struct job *job,
				    struct page *page)
{
	struct writer writer = { 0 };
	_cleanup_(free) char *more = job->notes ? write_notes(job->notes) : NULL;
	_cleanup_(error_destroy) struct error *error = NULL;

	page->more = more;
	error = kept_rows_has_tables(job->rows) ? kept_rows_write(job->rows, page, &writer)
						: write_text(job->rows, &writer);
	if (!error)
		return respond_json(exchange, MHD_HTTP_OK, &writer);
	writer_deinit(&writer);
	return respond_error(exchange, MHD_HTTP_INTERNAL_SERVER_ERROR, error_message(error));
}

static enum MHD_Result answer_run(const struct exchange *exchange)
{
	_cleanup_(job_deinit) struct job job = { .kind = JOB_ROWS };
	struct page page = { .one_table = argument_of(exchange, "table") };
	uint64_t table;
	enum MHD_Result result;

	job.text = argument_of(exchange, "command");
	if (!job.text || !number_of(exchange, "from", 0, &page.from) ||
	    !number_of(exchange, "rows", USUAL_PAGE, &page.rows) ||
	    !number_of(exchange, "table", 0, &table))
		return respond_error(exchange, MHD_HTTP_BAD_REQUEST,
				     "'command' is missing, or a number is none");
	page.rows = MIN(page.rows, (uint64_t)MOST_PAGE);
	page.table = (size_t)table;
	return do_job(exchange, &job, &result) ? respond_rows(exchange, &job, &page) : result;
}

static enum MHD_Result answer_other(const struct exchange *exchange, enum job_kind kind,
				    const char *argument)
{
	_cleanup_(job_deinit) struct job job = { .kind = kind };
	enum MHD_Result result;

	job.text = argument_of(exchange, argument);
	if (!job.text)
		return respond_error(exchange, MHD_HTTP_BAD_REQUEST, "an argument is missing");
	return do_job(exchange, &job, &result) ? respond_json(exchange, MHD_HTTP_OK, &job.answer)
					       : result;
}

static enum MHD_Result answer_text(const struct exchange *exchange)
{
	return answer_other(exchange, JOB_TEXT, "command");
}

static enum MHD_Result answer_complete(const struct exchange *exchange)
{
	return answer_other(exchange, JOB_WORDS, "line");
}

static enum MHD_Result answer_cancel(const struct exchange *exchange)
{
	const char *id = argument_of(exchange, "id");

	if (id)
		work_cancel(exchange->http->work, id);
	return respond_static(exchange, MHD_HTTP_OK, "{}\n", "application/json; charset=utf-8");
}

/* Rows of a command that still runs. */
static enum MHD_Result answer_first(const struct exchange *exchange)
{
	const char *id = argument_of(exchange, "id");
	struct writer writer = { 0 };

	if (id && work_first_rows(exchange->http->work, id, USUAL_PAGE, &writer))
		return respond_json(exchange, MHD_HTTP_OK, &writer);
	writer_deinit(&writer);
	return respond_static(exchange, MHD_HTTP_OK, "{\"tables\": []}\n",
			      "application/json; charset=utf-8");
}

static enum MHD_Result answer_layout(const struct exchange *exchange)
{
	return respond_static(exchange, MHD_HTTP_OK, page_layout, "text/javascript; charset=utf-8");
}

static const struct route {
	const char *path;
	enum MHD_Result (*answer)(const struct exchange *exchange);
} routes[] = {
	{ "/api/state", answer_state },	       { "/api/run", answer_run },
	{ "/api/text", answer_text },	       { "/api/complete", answer_complete },
	{ "/api/cancel", answer_cancel },      { "/api/first", answer_first },
	{ "/d3-hierarchy.js", answer_layout },
};

/* Answer by a page of the fleet; false: there is none of that path. */
static bool answer_page(const struct exchange *exchange, enum MHD_Result *ret)
{
	struct MHD_Response *response = NULL;
	char *text = NULL;
	size_t size = 0;
	bool is_found = false;
	FILE *out = open_memstream(&text, &size);
	_cleanup_(error_destroy) struct error *error =
		out ? fleet_pages_write(exchange->http->fleet, exchange->path,
					argument_of(exchange, "of"), out, &is_found)
		    : &error_no_memory;

	if ((out && fclose(out) != 0) || error || !is_found) {
		free(text);
		if (error)
			*ret = respond_error(exchange, MHD_HTTP_INTERNAL_SERVER_ERROR,
					     error_message(error));
		return error;
	}
	response = library_of(exchange)->create_response_from_buffer(size, text,
								     MHD_RESPMEM_MUST_FREE);
	*ret = respond(exchange, MHD_HTTP_OK, response, "text/html; charset=utf-8");
	return true;
}

static enum MHD_Result answer_path(const struct exchange *exchange)
{
	const char *path = strcmp(exchange->path, "/") == 0 ? "/page.html" : exchange->path;
	bool is_fleet = exchange->http->fleet;
	enum MHD_Result result;

	if (is_fleet && answer_page(exchange, &result))
		return result;
	for (size_t i = 0; !is_fleet && i < COUNT_OF(routes); i++)
		if (strcmp(path, routes[i].path) == 0)
			return routes[i].answer(exchange);
	for (const struct page_file *file = page_files; file->path; file++)
		if (strcmp(path, file->path) == 0)
			return respond_static(exchange, MHD_HTTP_OK, file->text, file->type);
	return respond_error(exchange, MHD_HTTP_NOT_FOUND, "there is no such page");
}

/* The token becomes a cookie, so that it stays neither in the address nor in the history. */
static enum MHD_Result take_token(const struct exchange *exchange)
{
	struct guard *guard = exchange->http->guard;
	struct MHD_Response *response = library_of(exchange)->create_response_from_buffer(
		0, (void *)"", MHD_RESPMEM_PERSISTENT);
	char cookie[COOKIE_NAME_SIZE + TOKEN_SIZE + 64];

	if (!response)
		return MHD_NO;
	snprintf(cookie, sizeof(cookie), "%s=%s; Path=/; HttpOnly; SameSite=Strict", guard->cookie,
		 guard->token);
	library_of(exchange)->add_response_header(response, MHD_HTTP_HEADER_SET_COOKIE, cookie);
	library_of(exchange)->add_response_header(response, MHD_HTTP_HEADER_LOCATION, "/");
	return respond(exchange, MHD_HTTP_SEE_OTHER, response, "text/plain; charset=utf-8");
}

static bool has_cookie(const struct exchange *exchange)
{
	const struct guard *guard = exchange->http->guard;

	return guard_takes_cookie(guard,
				  library_of(exchange)->lookup_connection_value(
					  exchange->connection, MHD_COOKIE_KIND, guard->cookie));
}

static bool has_body(const struct exchange *exchange)
{
	const char *length = header_of(exchange, MHD_HTTP_HEADER_CONTENT_LENGTH);

	return header_of(exchange, MHD_HTTP_HEADER_TRANSFER_ENCODING) ||
	       (length && strcmp(length, "0") != 0);
}

/* Refuse it, or answer it. */
static enum MHD_Result answer(const struct exchange *exchange, const char *method, bool is_too_long)
{
	struct guard *guard = exchange->http->guard;
	const char *host = header_of(exchange, MHD_HTTP_HEADER_HOST);

	if (!guard_takes_host(guard, host))
		return respond_error(
			exchange, MHD_HTTP_FORBIDDEN,
			"this server has another name: use the address that it printed");
	if (!guard_takes_origin(host, header_of(exchange, MHD_HTTP_HEADER_ORIGIN),
				header_of(exchange, "Sec-Fetch-Site")))
		return respond_error(exchange, MHD_HTTP_FORBIDDEN,
				     "another page must not ask this server");
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 || has_body(exchange))
		return respond_error(exchange, MHD_HTTP_METHOD_NOT_ALLOWED,
				     "only GET, without a body, is answered");
	if (is_too_long)
		return respond_error(exchange, MHD_HTTP_URI_TOO_LONG, "the request is too long");
	if (strcmp(exchange->path, "/") == 0 &&
	    guard_takes_token(guard, argument_of(exchange, "token")))
		return take_token(exchange);
	if (!has_cookie(exchange))
		return respond_error(
			exchange, MHD_HTTP_FORBIDDEN,
			"open the address that heapcore printed, with its token, in this browser");
	return answer_path(exchange);
}

/* ---- the library's callbacks */

/* A NUL would cut what follows it off, unseen. */
static void *begin_request(void *data, const char *uri, struct MHD_Connection *connection)
{
	struct request_line *line = calloc(1, sizeof(*line));

	if (line)
		line->is_refused = strlen(uri) > MOST_QUERY || strstr(uri, "%00");
	return line;
}

static void end_request(void *data, struct MHD_Connection *connection, void **line,
			enum MHD_RequestTerminationCode code)
{
	free(*line);
	*line = NULL;
}

static enum MHD_Result take_request(void *data, struct MHD_Connection *connection, const char *url,
				    const char *method, const char *version,
				    const char *upload_data, size_t *upload_data_size, void **state)
{
	const struct exchange exchange = { data, connection, url };
	struct request_line *line = *state;

	if (!line)
		return MHD_NO;
	/* A body is refused before it is read. */
	if (!line->has_headers && !has_body(&exchange)) {
		line->has_headers = true;
		return MHD_YES;
	}
	return answer(&exchange, method, line->is_refused);
}

struct error *http_start(int socket, struct guard *guard, struct work *work,
			 const struct fleet_pages *fleet, struct http **ret)
{
	_cleanup_(free) struct http *http = calloc(1, sizeof(*http));

	TRY_MEMORY(http);
	TRY(microhttpd_load(&http->library));
	http->guard = guard;
	http->work = work;
	http->fleet = fleet;
	http->daemon = http->library.start_daemon(
		MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0,
		NULL, NULL, take_request, http, MHD_OPTION_LISTEN_SOCKET, socket,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned int)MOST_CONNECTIONS,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)IDLE_SECONDS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MOST_HEADERS,
		MHD_OPTION_URI_LOG_CALLBACK, begin_request, NULL, MHD_OPTION_NOTIFY_COMPLETED,
		end_request, NULL, MHD_OPTION_END);
	if (!http->daemon)
		return error_system("the server");
	*ret = take(http);
	return NULL;
}

void http_stop(struct http *http)
{
	http->library.stop_daemon(http->daemon);
	free(http);
}
