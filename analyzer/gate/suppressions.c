#include "analyzer/gate/suppressions.h"

#include "analyzer/base/list.h"
#include "analyzer/base/macros.h"
#include "analyzer/base/text.h"
#include "analyzer/gate/label.h"
#include "analyzer/gate/small_file.h"

#include <string.h>

/*
 * Each * first takes nothing; where what is behind it does not fit, it takes one letter more. Only
 * the last * need be tried again.
 */
static bool wildcard_fits(const char *pattern, size_t size, const char *text, bool open_end)
{
	const char *end = pattern + size, *star = NULL, *retry = NULL;

	while (*text) {
		if (pattern < end && *pattern == '*') {
			star = ++pattern;
			retry = text;
		} else if (pattern < end && *pattern == *text) {
			pattern++;
			text++;
		} else if (pattern == end && open_end) {
			return true;
		} else if (star) {
			pattern = star;
			text = ++retry;
		} else {
			return false;
		}
	}
	while (pattern < end && *pattern == '*')
		pattern++;
	return pattern == end;
}

bool wildcard_matches(const char *pattern, const char *text)
{
	return wildcard_fits(pattern, strlen(pattern), text, false);
}

bool wildcard_found(const char *pattern, const char *text)
{
	size_t size = strlen(pattern);
	bool from_start = pattern[0] == '^', to_end;

	pattern += from_start;
	size -= from_start;
	to_end = size > 0 && pattern[size - 1] == '$';
	size -= to_end;
	do {
		if (wildcard_fits(pattern, size, text, !to_end))
			return true;
	} while (!from_start && *text++);
	return false;
}

struct suppression_kind {
	const char *name;
	/* Prepare the rule; NULL: there is nothing to prepare. */
	struct error *(*parse)(struct suppression *rule);
	bool (*matches)(const struct suppression *rule, const struct leak_kind *leak);
};

/* A decimal number. */
static bool parse_number(const char *text, const char **ret_end, uint64_t *ret)
{
	uint64_t number = 0;

	*ret_end = text;
	for (; **ret_end >= '0' && **ret_end <= '9'; ++*ret_end)
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, **ret_end - '0', &number))
			return false;
	*ret = number;
	return *ret_end != text;
}

static struct error *parse_sizes(struct suppression *rule)
{
	const char *end;
	bool right = parse_number(rule->pattern, &end, &rule->least);

	rule->most = rule->least;
	if (right && *end == '-')
		right = parse_number(end + 1, &end, &rule->most);
	if (!right || *end || rule->most < rule->least)
		return error_not(rule->pattern, "a size, as 72, or 64-128: decimal bytes");
	return NULL;
}

static struct error *parse_fingerprint(struct suppression *rule)
{
	if (strlen(rule->pattern) != 16 || !is_address(rule->pattern))
		return error_not(rule->pattern, "a fingerprint: 16 hexadecimal digits");
	return parse_address(rule->pattern, &rule->least);
}

static bool is_within(const char *pattern, const char *text)
{
	return text && wildcard_found(pattern, text);
}

static bool leak_matches(const struct suppression *rule, const struct leak_kind *leak)
{
	return is_within(rule->pattern, leak->name) || is_within(rule->pattern, leak->full_name) ||
	       is_within(rule->pattern, leak->module) || is_within(rule->pattern, leak->holder) ||
	       is_within(rule->pattern, leak->holder_module);
}

static bool is_named(const char *pattern, const char *name)
{
	return name && wildcard_matches(pattern, name);
}

static bool class_matches(const struct suppression *rule, const struct leak_kind *leak)
{
	if (leak->name[0] == '%' || strcmp(leak->name, UNRECOGNIZED) == 0)
		return false;
	return is_named(rule->pattern, leak->name) || is_named(rule->pattern, leak->full_name);
}

static bool pattern_matches(const struct suppression *rule, const struct leak_kind *leak)
{
	const char *pattern = rule->pattern + (rule->pattern[0] == '%');

	return leak->name[0] == '%' && is_named(pattern, leak->name + 1);
}

static bool size_matches(const struct suppression *rule, const struct leak_kind *leak)
{
	return leak->smallest_size >= rule->least && leak->size <= rule->most;
}

static bool module_matches(const struct suppression *rule, const struct leak_kind *leak)
{
	return is_named(rule->pattern, leak->module) ||
	       is_named(rule->pattern, leak->holder_module);
}

static bool fingerprint_matches(const struct suppression *rule, const struct leak_kind *leak)
{
	return leak->fingerprint == rule->least;
}

static const struct suppression_kind rule_kinds[] = {
	{ "leak", NULL, leak_matches },
	{ "class", NULL, class_matches },
	{ "pattern", NULL, pattern_matches },
	{ "size", parse_sizes, size_matches },
	{ "module", NULL, module_matches },
	{ "fingerprint", parse_fingerprint, fingerprint_matches },
};

static const struct suppression_kind *find_kind(const char *word, size_t size)
{
	for (size_t i = 0; i < COUNT_OF(rule_kinds); i++)
		if (strlen(rule_kinds[i].name) == size &&
		    memcmp(rule_kinds[i].name, word, size) == 0)
			return &rule_kinds[i];
	return NULL;
}

void suppressions_deinit(struct suppressions *suppressions)
{
	for (size_t i = 0; i < suppressions->count; i++)
		free(suppressions->list[i].text);
	free(suppressions->list);
}

/* Interpret the parts before and behind the colon. */
static struct error *understand(struct suppression *rule)
{
	const char *colon = strchr(rule->text, ':');

	rule->kind = colon ? find_kind(rule->text, (size_t)(colon - rule->text)) : NULL;
	if (!rule->kind)
		return error_not(
			rule->text,
			"a rule: leak:, class:, pattern:, size:, module: or fingerprint: begins one");
	rule->pattern = colon + 1;
	if (!*rule->pattern)
		return error_not(rule->text, "a rule: nothing is behind the colon");
	return rule->kind->parse ? rule->kind->parse(rule) : NULL;
}

static struct error *add_rule(struct suppressions *suppressions, const char *text, const char *path,
			      size_t line)
{
	struct suppression rule = {
		.text = strdup(text),
		.path = path,
		.line = line,
	};
	struct error *error = rule.text ? understand(&rule) : &error_no_memory;

	if (!error)
		error = LIST_APPEND(suppressions->list, suppressions->count, rule);
	if (!error)
		return NULL;
	free(rule.text);
	return error_wrap(error, "%s:%zu", path, line);
}

/* Without the white space around it. */
static char *trim(char *text)
{
	size_t size;

	text += strspn(text, " \t\r");
	size = strlen(text);
	while (size > 0 && strchr(" \t\r", text[size - 1]))
		text[--size] = '\0';
	return text;
}

struct error *suppressions_parse(struct suppressions *suppressions, char *text, const char *path)
{
	size_t line = 0;
	char *rule;

	while ((rule = strsep(&text, "\n"))) {
		rule = trim(rule);
		line++;
		if (*rule && *rule != '#')
			TRY(add_rule(suppressions, rule, path, line));
	}
	return NULL;
}

struct error *suppressions_read(struct suppressions *suppressions, const char *path)
{
	_cleanup_(free) char *text = NULL;
	size_t size;

	TRY(read_small_file(path, &text, &size));
	if (memchr(text, '\0', size))
		return error_create(ERROR_USAGE, "%s: this is not text", path);
	return suppressions_parse(suppressions, text, path);
}

const char *suppressions_find(struct suppressions *suppressions, const struct leak_kind *leak)
{
	const char *found = NULL;

	list_for_each(rule, suppressions->list, suppressions->count) {
		if (!rule->kind->matches(rule, leak))
			continue;
		rule->matched = true;
		if (!found)
			found = rule->text;
	}
	return found;
}

void suppressions_apply(struct suppressions *suppressions, struct leak_kinds *kinds, bool known)
{
	list_for_each(kind, kinds->list, kinds->count) {
		kind->rule = suppressions_find(suppressions, kind);
		if (!kind->rule && known)
			kind->rule = kind->known_cause;
		if (kind->rule)
			kind->state = LEAK_SUPPRESSED;
	}
}
