#include "cli/prompt/tags.h"

#include "analyzer/image/files.h"

#include <ctype.h>
#include <elf.h>
#include <string.h>

/* Tags that heapcore reads from the core; absent if the core lacks them. */
static const struct told_tag {
	const char *name;
	enum value_kind kind;
} told_tags[] = {
	{ "core", VALUE_TEXT },
	{ "pid", VALUE_NUMBER },
	{ "time", VALUE_NUMBER },
	{ "build-id", VALUE_TEXT },
};
enum { TOLD_CORE, TOLD_PROCESS, TOLD_TIME, TOLD_BUILD_ID };

/* The place of that name among those that a core has; the count of all if it has none. */
static size_t find_told(const char *name)
{
	size_t i = 0;

	while (i < COUNT_OF(told_tags) && strcmp(told_tags[i].name, name) != 0)
		i++;
	return i;
}

/* Lines of ndjson have keys of their own. */
static bool is_reserved(const char *name, size_t length)
{
	static const char *const reserved[] = { "row", "complete", "incomplete", "message" };

	for (size_t i = 0; i < COUNT_OF(reserved); i++)
		if (strlen(reserved[i]) == length && strncmp(name, reserved[i], length) == 0)
			return true;
	return false;
}

static bool is_name(const char *name, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("_-", name[i]))
			return false;
	return length > 0 && length < COLUMN_NAME_SIZE - 2 && !is_reserved(name, length);
}

/* True if an earlier tag has the name. */
static bool is_given(const struct tag_words *words, const char *name, size_t length)
{
	for (size_t i = 0; i < words->count; i++)
		if (strcspn(words->list[i], "=") == length &&
		    strncmp(words->list[i], name, length) == 0)
			return true;
	return false;
}

error_t tag_words_add(struct tag_words *words, struct argp_state *state, const char *value)
{
	size_t length = strcspn(value, "=");

	if (words->count == MOST_TAGS)
		argp_error(state, "there are more than %d tags", MOST_TAGS);
	else if (!is_name(value, length))
		argp_error(state,
			   "--tag: a name has letters, digits, '_' and '-', and is not 'row', "
			   "'complete', 'incomplete' or 'message'");
	else if (is_given(words, value, length))
		argp_error(state, "--tag: '%.*s' is given twice", (int)length, value);
	else if (!value[length] && find_told(value) == COUNT_OF(told_tags))
		argp_error(state,
			   "--tag %s: without '=VALUE' there are 'core', 'pid', 'time' and "
			   "'build-id'",
			   value);
	else
		words->list[words->count++] = value;
	return 0;
}

/* Write the build-id of the program itself, not of its libraries. */
static struct error *spell_build_id(struct analysis *analysis, char *ret, size_t size)
{
	const struct image *image = analysis_image(analysis);
	const struct module *module;
	struct build_id id;

	TRY(analysis_need(analysis, STAGE_PROGRAM));
	module =
		program_find_module(analysis_program(analysis), image_auxiliary(image, AT_PHDR, 0));
	id = module ? build_id_of_image(image, module->start, module->end)
		    : (struct build_id){ .size = 0 };
	ret[0] = '\0';
	for (size_t i = 0; i < id.size && 2 * i + 2 < size; i++)
		snprintf(ret + 2 * i, 3, "%02x", id.bytes[i]);
	return NULL;
}

static struct error *find_told_value(struct analysis *analysis, const char *core, size_t number,
				     struct tags *tags, struct value *ret)
{
	const struct image_origin *origin = &analysis_image(analysis)->origin;

	switch (number) {
	case TOLD_CORE:
		*ret = value_text(core);
		break;
	case TOLD_PROCESS:
		*ret = value_nonzero(origin->process);
		break;
	case TOLD_TIME:
		*ret = value_nonzero(origin->time / UINT64_C(1000000000));
		break;
	default:
		TRY(spell_build_id(analysis, tags->build_id, sizeof(tags->build_id)));
		*ret = value_text(tags->build_id[0] ? tags->build_id : NULL);
	}
	return NULL;
}

struct error *tags_find(const struct tag_words *words, struct analysis *analysis, const char *core,
			struct tags *ret)
{
	for (size_t i = 0; i < words->count; i++) {
		const char *word = words->list[i];
		size_t length = strcspn(word, "="), number = find_told(word);
		bool is_told = !word[length];
		struct value *value = &ret->report.values[i];

		for (size_t j = 0; j < length; j++)
			ret->names[i][j] = (char)(word[j] == '-' ? '_' : word[j]);
		ret->names[i][length] = '\0';
		ret->report.columns[i].name = ret->names[i];
		ret->report.columns[i].kind = is_told ? told_tags[number].kind : VALUE_TEXT;
		*value = is_told ? ABSENT : value_text(word + length + 1);
		if (is_told && analysis)
			TRY(find_told_value(analysis, core, number, ret, value));
	}
	ret->report.count = words->count;
	return NULL;
}
