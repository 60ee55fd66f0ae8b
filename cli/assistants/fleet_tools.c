#include "cli/assistants/fleet_tools.h"

#include "analyzer/base/list.h"
#include "analyzer/base/text.h"
#include "cli/assistants/schema.h"

#include <string.h>

enum { USUAL_FLEET_ROWS = 20 };

static const struct fleet_tool fleet_tools[] = {
	{ "fleet_report",
	  "report",
	  "What the cores of a fleet have in common: leaks across hosts and builds, what each build brought, outliers, doubtful cores.",
	  { NULL } },
	{ "fleet_diff",
	  "diff",
	  "Compare two builds of a fleet: leaks that only one of them has, and growth of kinds.",
	  { "old", "new" } },
	{ "fleet_show",
	  "show",
	  "One leak of a fleet: the builds that have it, and the cores that leak most, to be opened.",
	  { "fingerprint" } },
	{ "fleet_sql",
	  "sql",
	  "Answer a question in SQLite's SQL about a fleet. 'core' in other tables is core.id; fleet_report has rows of the tables from 'brought_leak' on. Tables:",
	  { "query" } },
};

static const struct {
	const char *name, *text;
} words[] = {
	{ "old", "The former build, as fleet_report names it" },
	{ "new", "The later build" },
	{ "fingerprint", "Of the leak, or its beginning" },
	{ "query", "One SELECT, or several with semicolons" },
};

const struct fleet_tool *fleet_tool_at(size_t number)
{
	return number < COUNT_OF(fleet_tools) ? &fleet_tools[number] : NULL;
}

const struct fleet_tool *fleet_tool_find(const char *name)
{
	for (size_t i = 0; i < COUNT_OF(fleet_tools); i++)
		if (strcmp(fleet_tools[i].name, name) == 0)
			return &fleet_tools[i];
	return NULL;
}

char *fleet_tool_description(const struct fleet_tool *tool)
{
	_cleanup_(free) char *tables = NULL;

	if (strcmp(tool->word, "sql") != 0)
		return strdup(tool->text);
	tables = store_signatures(fleet_tables);
	return tables ? format_text("%s\n%s.", tool->text, tables) : NULL;
}

static json_t *text_property(const char *text)
{
	return json_pack("{s:s, s:s}", "type", "string", "description", text);
}

json_t *fleet_tool_schema(const struct fleet_tool *tool)
{
	json_t *properties = json_object(), *required = json_pack("[s]", "fleet");

	json_object_set_new(
		properties, "fleet",
		text_property("The file that 'heapcore fleet' made; 'open' lists them"));
	for (size_t i = 0; i < COUNT_OF(words); i++) {
		bool is_its = false;

		for (size_t j = 0; j < COUNT_OF(tool->words); j++)
			is_its |= tool->words[j] && strcmp(tool->words[j], words[i].name) == 0;
		if (!is_its)
			continue;
		json_object_set_new(properties, words[i].name, text_property(words[i].text));
		json_array_append_new(required, json_string(words[i].name));
	}
	json_object_set_new(
		properties, "select",
		json_pack("{s:s, s:{s:s}, s:s}", "type", "array", "items", "type", "string",
			  "description",
			  "NAME=PATTERN: only cores whose host, build, program or tag matches"));
	json_object_set_new(properties, "limit", schema_of_limit());
	json_object_set_new(properties, "as", schema_of_as());
	return schema_object(properties, required);
}

static bool is_property(const struct fleet_tool *tool, const char *name)
{
	static const char *const common[] = { "fleet", "select", "limit", "as" };

	for (size_t i = 0; i < COUNT_OF(common); i++)
		if (strcmp(common[i], name) == 0)
			return true;
	for (size_t i = 0; i < COUNT_OF(tool->words); i++)
		if (tool->words[i] && strcmp(tool->words[i], name) == 0)
			return true;
	return false;
}

static struct error *check_names(const struct fleet_tool *tool, const json_t *arguments)
{
	const json_t *value;
	const char *name;

	json_object_foreach((json_t *)arguments, name, value)
	{
		if (!is_property(tool, name))
			return error_unknown("property", name, NULL);
	}
	return NULL;
}

/* A text that must be there. */
static struct error *read_text(const json_t *arguments, const char *name, const char **ret)
{
	const json_t *value = json_object_get(arguments, name);

	if (!schema_is_given(value))
		return error_create(ERROR_USAGE, "'%s' is missing", name);
	*ret = json_string_value(value);
	return *ret ? NULL : schema_wrong_type(name, "a string");
}

/* The list is the question's; the texts are of the arguments. */
static struct error *read_selection(const json_t *value, struct fleet_question *question)
{
	const json_t *each;
	size_t i;

	if (!schema_is_given(value))
		return NULL;
	if (!json_is_array(value))
		return schema_wrong_type("select", "a list of NAME=PATTERN");
	json_array_foreach(value, i, each)
	{
		const char *text = json_string_value(each);

		if (!text || !strchr(text, '='))
			return schema_wrong_type("select", "a list of NAME=PATTERN");
		TRY(LIST_APPEND(question->select.list, question->select.count, text));
	}
	return NULL;
}

static void release_question(struct fleet_question *question)
{
	free(question->select.list);
}
DEFINE_DEINIT(release_question, struct fleet_question)

struct error *fleet_tool_call(struct server *server, const struct fleet_tool *tool,
			      const json_t *arguments, struct answer *answer)
{
	_cleanup_(release_question) struct fleet_question question = { .limit = USUAL_FLEET_ROWS };
	const char *name = NULL;
	_cleanup_(free) char *path = NULL;
	uint64_t most_rows = USUAL_ROWS;

	TRY(check_names(tool, arguments));
	TRY(read_text(arguments, "fleet", &name));
	for (size_t i = 0; i < COUNT_OF(tool->words) && tool->words[i]; i++)
		TRY(read_text(arguments, tool->words[i], &question.words[i]));
	TRY(read_selection(json_object_get(arguments, "select"), &question));
	if (schema_is_given(json_object_get(arguments, "limit"))) {
		TRY(schema_read_limit(json_object_get(arguments, "limit"), &most_rows));
		question.limit = most_rows;
	}
	TRY(folders_find(&server->folders, "fleet", name, &path));
	server_ask_fleet(server, path, tool->word, &question, most_rows, answer);
	return NULL;
}
