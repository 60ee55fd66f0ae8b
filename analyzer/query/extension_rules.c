#include "analyzer/query/extension_rules.h"

#include "analyzer/base/list.h"
#include "analyzer/base/text.h"

#include <ctype.h>
#include <string.h>

void extension_rules_deinit(struct extension_rules *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		free(rules->list[i].parts);
	free(rules->list);
	free(rules->state_names);
	*rules = (struct extension_rules){ 0 };
}

const char *extension_state_name(const struct extension_rules *rules, uint16_t state)
{
	return state == BASE_STATE ? NULL : rules->state_names[state - 1];
}

/* The error, told of which rule. Consumes it. */
static struct error *in_rule(const char *word, struct error *error)
{
	_cleanup_(free) char *escaped = escape_text(word);

	if (!escaped) {
		error_destroy(error);
		return &error_no_memory;
	}
	return error_wrap(error, "rule '%s'", escaped);
}

static bool is_arrow(const char *text)
{
	return strncmp(text, "->", 2) == 0 || strncmp(text, "~>", 2) == 0 ||
	       strncmp(text, "<-", 2) == 0;
}

/* True if each < of a template's arguments in [text, end) has its >. */
static bool is_balanced(const char *text, const char *end)
{
	size_t open = 0;

	for (; text < end; text++) {
		if (*text == '<')
			open++;
		else if (*text == '>' && open-- == 0)
			return false;
	}
	return open == 0;
}

/*
 * The first arrow between two whole names: "Ring<-1>" has none in it. Where none is, the first at
 * all; NULL if there is no arrow.
 */
static char *find_arrow(char *text)
{
	char *first = NULL, *end = text + strlen(text);

	for (char *at = text; *at; at++) {
		if (!is_arrow(at))
			continue;
		if (is_balanced(text, at) && is_balanced(at + 2, end))
			return at;
		if (!first)
			first = at;
	}
	return first;
}

static enum arrow arrow_at(const char *text)
{
	switch (text[0]) {
	case '-':
		return ARROW_TO;
	case '~':
		return ARROW_TO_LEAKED;
	default:
		return ARROW_FROM;
	}
}

/* Cut an offset off at the end of the side, which may have one. */
static struct error *cut_offset(char *side, bool *ret_has, uint64_t *ret)
{
	char *at = strchr(side, '@');

	if (!at)
		return NULL;
	*at++ = '\0';
	if (!is_address(at))
		return error_not(at, "an offset in hexadecimal");
	*ret_has = true;
	return parse_address(at, ret);
}

static bool is_state(const char *word)
{
	if (!isalpha((unsigned char)*word) && *word != '_')
		return false;
	for (; *word; word++)
		if (!isalnum((unsigned char)*word) && *word != '_')
			return false;
	return true;
}

/* Cut the state off at the end of the parts. */
static struct error *cut_state(struct extension_rule *rule)
{
	char *state = strstr(rule->parts, "=>");

	if (!state)
		return NULL;
	*state = '\0';
	state += 2;
	rule->state_word = state;
	if (!*state)
		return error_create(ERROR_USAGE, "a state is missing behind '=>'");
	if (!is_state(state))
		return error_not(state, "a state: a word of letters, digits and underscores");
	return NULL;
}

static struct error *split(struct extension_rule *rule)
{
	char *arrow;

	TRY(cut_state(rule));
	arrow = find_arrow(rule->parts);
	if (!arrow)
		return error_create(ERROR_USAGE, "there is no arrow in it: '->', '~>' or '<-'");
	rule->arrow = arrow_at(arrow);
	*arrow = '\0';
	rule->member_word = rule->parts;
	rule->extension_word = arrow + 2;
	TRY(cut_offset(rule->parts, &rule->has_member_offset, &rule->member_offset));
	TRY(cut_offset(arrow + 2, &rule->has_extension_offset, &rule->extension_offset));
	return kind_parse(rule->extension_word, &rule->extension);
}

struct error *extension_rules_take(struct extension_rules *rules, const char *word)
{
	struct extension_rule rule = { .word = word, .parts = strdup(word) };
	struct error *error;

	TRY_MEMORY(rule.parts);
	error = rules->count < MOST_RULES ? split(&rule)
					  : error_create(ERROR_USAGE, "there are too many rules");
	error = error ? in_rule(word, error) : LIST_APPEND(rules->list, rules->count, rule);
	if (error)
		free(rule.parts);
	return error;
}

uint16_t extension_state_find(const struct extension_rules *rules, const char *name)
{
	for (size_t i = 0; i < rules->state_count; i++)
		if (strcmp(rules->state_names[i], name) == 0)
			return (uint16_t)(i + 1);
	return BASE_STATE;
}

/* The number of the state that a rule leads to, which may be a new one. */
static struct error *number_state(struct extension_rules *rules, struct extension_rule *rule)
{
	if (!rule->state_word)
		return NULL;
	rule->next_state = extension_state_find(rules, rule->state_word);
	if (rule->next_state != BASE_STATE)
		return NULL;
	TRY(LIST_APPEND(rules->state_names, rules->state_count, rule->state_word));
	rule->next_state = (uint16_t)rules->state_count;
	return NULL;
}

/* True if both rules try the same candidates, whatever follows from them. */
static bool is_same(const struct extension_rule *a, const struct extension_rule *b)
{
	return a->arrow == b->arrow && strcmp(a->member_word, b->member_word) == 0 &&
	       strcmp(a->extension_word, b->extension_word) == 0 &&
	       a->has_member_offset == b->has_member_offset &&
	       a->has_extension_offset == b->has_extension_offset &&
	       a->member_offset == b->member_offset && a->extension_offset == b->extension_offset;
}

/* Go on until no state more is found that something leads to. */
static void find_reached(const struct extension_rules *rules, bool *reached)
{
	bool found = true;

	reached[BASE_STATE] = true;
	while (found) {
		found = false;
		list_for_each(rule, rules->list, rules->count) {
			if (!reached[rule->state] || reached[rule->next_state])
				continue;
			reached[rule->next_state] = found = true;
		}
	}
}

static struct error *find_idle(struct extension_rules *rules)
{
	_cleanup_(free) bool *reached = calloc(rules->state_count + 1, sizeof(*reached));

	TRY_MEMORY(reached);
	find_reached(rules, reached);
	for (size_t i = 0; i < rules->count; i++) {
		struct extension_rule *rule = &rules->list[i];

		for (size_t j = 0; j < i; j++)
			if (is_same(&rules->list[j], rule))
				rule->idle = RULE_REPEATED;
		if (!reached[rule->state])
			rule->idle = RULE_UNREACHED;
	}
	return NULL;
}

struct error *extension_rules_check(struct extension_rules *rules)
{
	bool extends_base = false;

	if (rules->count == 0)
		return NULL;
	for (size_t i = 0; i < rules->count; i++)
		TRY(number_state(rules, &rules->list[i]));
	/* MEMBER is a state, or else a kind in the base state. */
	list_for_each(rule, rules->list, rules->count) {
		struct error *error;

		rule->state = extension_state_find(rules, rule->member_word);
		if (rule->state != BASE_STATE)
			continue;
		extends_base = true;
		error = kind_parse(rule->member_word, &rule->member);
		if (error)
			return in_rule(rule->word, error);
	}
	if (!extends_base)
		return error_create(
			ERROR_USAGE,
			"nothing can be extended: every rule begins with a state, and the set itself has none");
	return find_idle(rules);
}
