/* Resources: the report of the open core. */
#include "cli/assistants/server.h"

#include <string.h>

static const struct resource {
	const char *uri, *name, *type, *format, *text;
} resources[] = {
	{ "heapcore://report", "report", "text/plain", "text",
	  "An overview of the open core. Strings come from the memory of a process." },
	{ "heapcore://report.html", "report.html", "text/html", "html",
	  "The same as a page for a browser, in more detail. Strings come from the memory of a process." },
};

struct error *resources_list(struct server *server, const json_t *params, json_t **ret)
{
	json_t *list = json_array();

	for (size_t i = 0; i < COUNT_OF(resources); i++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "uri",
						      resources[i].uri, "name", resources[i].name,
						      "mimeType", resources[i].type, "description",
						      resources[i].text));
	*ret = json_pack("{s:o}", "resources", list);
	return NULL;
}

struct error *resource_templates_list(struct server *server, const json_t *params, json_t **ret)
{
	*ret = json_pack("{s:[]}", "resourceTemplates");
	return NULL;
}

static struct error *write_report(struct server *server, const struct resource *resource,
				  struct answer *answer)
{
	char *words[] = { (char *)"report" };
	const struct line line = { .words = words, .count = 1 };
	const struct report_format *usual = server->session.format;

	server_open_given(server, answer);
	if (!answer->failed && !server->session.analysis)
		return error_create(ERROR_USAGE, "no core is open: call the tool 'open' first");
	if (!answer->failed) {
		TRY(report_format_find(resource->format, &server->session.format));
		server_run(server, &line, 0, answer);
		server->session.format = usual;
	}
	if (answer->failed)
		return error_create(ERROR_USAGE, "%s", capture_text(&answer->messages));
	if (answer->text.left_out)
		return error_create(ERROR_USAGE, "the report is too large");
	return NULL;
}

struct error *resources_read(struct server *server, const json_t *params, json_t **ret)
{
	const char *uri = json_string_value(json_object_get(params, "uri"));
	_cleanup_(answer_deinit) struct answer answer = { 0 };
	const struct resource *resource = NULL;
	struct error *error;

	for (size_t i = 0; uri && i < COUNT_OF(resources); i++)
		if (strcmp(resources[i].uri, uri) == 0)
			resource = &resources[i];
	if (!uri)
		return error_create(ERROR_USAGE, "'uri' is not a string");
	if (!resource)
		return error_create(ERROR_SYSTEM, "there is no such resource");
	TRY(answer_init(&answer, MOST_PAGE));
	progress_tell(server, params);
	error = write_report(server, resource, &answer);
	progress_tell(server, NULL);
	if (error)
		return error;
	*ret = json_pack("{s:[{s:s, s:s, s:o}]}", "contents", "uri", uri, "mimeType",
			 resource->type, "text", json_string(capture_text(&answer.text)));
	return NULL;
}
