#include "cli/prompt/completion.h"

#include "analyzer/base/text.h"
#include "analyzer/export/export.h"
#include "analyzer/kinds/known_names.h"
#include "analyzer/program/debug/variables.h"
#include "analyzer/query/columns.h"
#include "analyzer/query/query.h"
#include "cli/help/manual.h"
#include "cli/prompt/execute.h"
#include "cli/prompt/lexer.h"
#include "cli/prompt/switches.h"
#include "cli/prompt/variable_words.h"
#include "cli/views/selection.h"

#include <string.h>

#include <readline/readline.h>

const char completion_word_breaks[] = " \t\"'>|";

/* The matches; readline asks for one at a time. */
static struct {
	char **list; /* owned */
	size_t count;
	size_t next;
} matches;

/* readline hands over words alone: what else is offered comes from here, if it is not NULL. */
static struct {
	struct analysis *analysis;
	const struct named_sets *sets;
	struct known_names kinds; /* found when first asked for */
	bool reads_symbols;
	bool are_kinds_found;
	bool is_quoted;	    /* the word, so that it may hold any character */
	const char *before; /* the part of the word that readline left out, up to a "->"; or NULL */
} known;

void completion_use(struct analysis *analysis, bool reads_symbols)
{
	known.reads_symbols = reads_symbols;
	known_names_deinit(&known.kinds);
	known.are_kinds_found = false;
	known.analysis = analysis;
	known.sets = analysis ? analysis_named_sets(analysis) : NULL;
}

/* Add the candidate before + name + behind, if the word may become it. */
static void offer(const char *word, const char *before, const char *name, size_t length)
{
	char **list = realloc(matches.list, (matches.count + 1) * sizeof(*list));
	char *candidate;

	if (!list)
		return;
	matches.list = list;
	if (asprintf(&candidate, "%s%.*s", before, (int)length, name) < 0)
		return;
	if (strncasecmp(candidate, word, strlen(word)) == 0)
		list[matches.count++] = candidate;
	else
		free(candidate);
}

static void forget_matches(void)
{
	for (size_t i = 0; i < matches.count; i++)
		free(matches.list[i]);
	free(matches.list);
	matches.list = NULL;
	matches.count = 0;
}

static void offer_name(const char *word, const char *name)
{
	offer(word, "", name, strlen(name));
}

static void offer_commands(const char *word)
{
	for (size_t i = 0; commands[i]; i++)
		offer_name(word, commands[i]->name);
}

/* Offer sets behind the text in front of them in the same word. */
static void offer_sets_behind(const char *word, const char *before)
{
	const char *name;

	for (size_t i = 0; set_at(i); i++)
		offer(word, before, set_at(i)->name, strlen(set_at(i)->name));
	for (size_t i = 0; known.sets; i++) {
		name = named_sets_name(known.sets, i);
		if (!name)
			return;
		if (!set_find(name))
			offer(word, before, name, strlen(name));
	}
}

static void offer_sets(const char *word)
{
	offer_sets_behind(word, "");
}

static void offer_operators(const char *word)
{
	for (size_t i = 0; query_operator_name(i); i++)
		offer_name(word, query_operator_name(i));
}

static void offer_topics(const char *word)
{
	for (size_t i = 0; topics[i]; i++)
		offer_name(word, topics[i]->name);
}

static void offer_formats(const char *word, const char *before)
{
	for (size_t i = 0; report_formats[i]; i++)
		offer(word, before, report_formats[i]->name, strlen(report_formats[i]->name));
}

/* The pattern that the last % in the word begins, as in A->%Lo. */
static void offer_patterns(const char *word)
{
	size_t length = (size_t)(strrchr(word, '%') + 1 - word);
	_cleanup_(free) char *before = strndup(word, length);

	for (size_t i = 0; before && pattern_name_at(i); i++)
		offer(word, before, pattern_name_at(i), strlen(pattern_name_at(i)));
}

static void offer_options(const char *word, const struct argp_option *option)
{
	char slashed[SLASHED_SIZE];

	for (; option && (option->name || option->doc); option++) {
		if (!option->name || !switch_is_shown(option))
			continue;
		switch_spell_slashed(option->name, slashed);
		if (word[0] == '/')
			offer_name(word, slashed);
		else
			offer(word, "--", option->name, strlen(option->name));
	}
}

static void offer_switches(const char *word, const struct command *command)
{
	offer_options(word, command->own_options);
	offer_options(word, command->options);
	if (command_needs_core(command))
		offer_options(word, common_options);
	if (command->word == WORD_COMMAND)
		offer_options(word, contents_options);
}

static void offer_exports(const char *word, const char *before)
{
	for (size_t i = 0; export_formats[i]; i++)
		offer(word, before, export_formats[i]->name, strlen(export_formats[i]->name));
}

/* Columns behind those that the word has already. */
static void offer_columns(const char *word, const char *before)
{
	const char *comma = strrchr(word, ',');
	_cleanup_(free) char *front = comma ? strndup(word, (size_t)(comma + 1 - word)) : NULL;
	const char *name, *summary;

	for (size_t i = 0; column_at(i, &name, &summary); i++)
		offer(word, front ? front : before, name, strlen(name));
}

/* An option's values are listed in its value's name, such as "on|off". */
static void offer_values(const char *word, const char *before, const char *values)
{
	if (values && strcmp(values, "FORMAT") == 0)
		offer_formats(word, before);
	if (values && strcmp(values, "EXPORT") == 0)
		offer_exports(word, before);
	if (values && strcmp(values, "COLUMN,...") == 0)
		offer_columns(word, before);
	if (!values || !strchr(values, '|'))
		return;
	for (;;) {
		size_t length = strcspn(values, "|");

		offer(word, before, values, length);
		if (!values[length])
			return;
		values += length + 1;
	}
}

/* The value of a switch that is a word of its own. */
static void offer_separate_value(const char *word, const char *name,
				 const struct argp_option *option)
{
	if (!option->arg && name[0] == '/')
		offer_values(word, "", "true|false");
	else
		offer_values(word, "", option->arg);
}

/* `--name=` and its value. */
static void offer_joined_value(const char *word, const struct command *command)
{
	const struct argp_option *option = switch_find(command, word);
	_cleanup_(free) char *before = NULL;

	if (option)
		before = strndup(word, strcspn(word, "=") + 1);
	if (before)
		offer_values(word, before, option->arg);
}

/* An error is no message: nothing is offered then. */
static void find_kinds(void)
{
	struct error *error;

	if (known.are_kinds_found && !known_names_are_old(&known.kinds, known.analysis))
		return;
	known_names_deinit(&known.kinds);
	error = analysis_need(known.analysis, STAGE_DEBUG);
	if (!error)
		error = known_names_find(known.analysis, &known.kinds);
	error_destroy(error);
	known.are_kinds_found = true;
}

/* True if the word may become that name. Without quotes, a blank would end it. */
static bool is_possible(const char *word, const char *name)
{
	return strncasecmp(name, word, strlen(word)) == 0 &&
	       (known.is_quoted || !strpbrk(name, " \t\"'<>|#\\"));
}

enum { MOST_OFFERED = 200 };

/* The names of classes and types. If they are too many, only what they all begin with. */
static void offer_kinds(const char *word)
{
	const char *first = NULL;
	size_t count = 0, common = 0;

	if (!known.analysis || !known.reads_symbols || !word[0])
		return;
	find_kinds();
	for (size_t i = 0; i < known.kinds.count; i++) {
		const char *name = known.kinds.list[i];
		size_t same = 0;

		if (!is_possible(word, name))
			continue;
		while (first && same < common && first[same] == name[same])
			same++;
		common = first ? same : strlen(name);
		first = first ? first : name;
		count++;
	}
	if (count > MOST_OFFERED) {
		offer(word, "", first, common);
		rl_completion_suppress_append = 1;
		return;
	}
	for (size_t i = 0; i < known.kinds.count; i++)
		if (is_possible(word, known.kinds.list[i]))
			offer_name(word, known.kinds.list[i]);
}

/* Types are read when a variable is first asked for, which may take some seconds. */
static bool have_variables(void)
{
	struct error *error;

	if (!known.analysis || !known.reads_symbols)
		return false;
	error = analysis_need(known.analysis, STAGE_TYPE_TABLE);
	error_destroy(error);
	return !error;
}

/* Their names behind operators; if they are too many, only what these all begin with. */
static void offer_names_of_variables(const char *word)
{
	size_t operators = strspn(word, "*&("), common = 0, count = 0;
	_cleanup_(free) char *before = strndup(word, operators);
	const char *name = word + operators, *first = NULL;

	if (!before || !*name || !have_variables())
		return;
	const struct type_table *types = analysis_type_table(known.analysis);

	for (size_t i = 0; i < type_variable_count(types) && count <= MOST_OFFERED; i++)
		count += is_possible(name, type_variables(types)[i].name);
	for (size_t i = 0; i < type_variable_count(types); i++) {
		const char *other = type_variables(types)[i].name;
		size_t same = 0;

		if (!is_possible(name, other))
			continue;
		while (first && same < common && first[same] == other[same])
			same++;
		common = first ? same : strlen(other);
		first = first ? first : other;
		if (count <= MOST_OFFERED)
			offer(word, before, other, strlen(other));
	}
	if (count > MOST_OFFERED)
		offer(word, before, first, common);
	rl_completion_suppress_append = 1;
}

struct member_offer {
	const char *word, *before;
};

static bool offer_member(void *data, const char *name)
{
	const struct member_offer *to = data;

	offer(to->word, to->before, name, strlen(name));
	return true;
}

/* The length of the path in front of the last `.` or `->`; *ret_end: and of these. 0: neither. */
static size_t find_path(const char *text, size_t *ret_end)
{
	const char *dot = strrchr(text, '.'), *arrow = NULL;

	for (const char *next = text; (next = strstr(next, "->")); next += 2)
		arrow = next;
	if (!dot && !arrow)
		return 0;
	*ret_end = dot > arrow ? (size_t)(dot - text) + 1 : (size_t)(arrow - text) + 2;
	return dot > arrow ? (size_t)(dot - text) : (size_t)(arrow - text);
}

/* Operators in front of the path hold for what comes behind it, but for those in parentheses. */
static const char *skip_operators(const char *path)
{
	size_t open = 0;

	for (const char *at = path; *at; at++)
		open += *at == '(' ? 1 : *at == ')' ? -1 : 0;
	while (*path == '*' || *path == '&' || (*path == '(' && open-- > 0))
		path++;
	return path;
}

static bool is_variable(const char *path)
{
	size_t length = 0;
	bool is_plain;
	const char *start = variable_path_name(path, &length, &is_plain);
	_cleanup_(free) char *name = start ? strndup(start, length) : NULL;
	struct error *error;

	if (!name || !known.analysis || !known.reads_symbols)
		return false;
	error = analysis_need(known.analysis, STAGE_DEBUG);
	error_destroy(error);
	return !error && debug_may_have_variable(analysis_debug(known.analysis), name);
}

/* Members of what the path leads to; text is all of the word. */
static void offer_members(const char *word, const char *text, size_t path_length, size_t end)
{
	_cleanup_(free) char *path = strndup(text, path_length);
	size_t left_out = strlen(text) - strlen(word);
	_cleanup_(free) char *before = strndup(word, end - left_out);
	struct member_offer to = { word, before };
	struct variable_context context;

	if (!path || !before || !is_variable(skip_operators(path)) || !have_variables())
		return;
	context = variable_words_context(known.analysis);
	error_destroy(
		variable_path_visit_members(&context, skip_operators(path), offer_member, &to));
	rl_completion_suppress_append = 1;
}

struct path_offer {
	const char *word;
	size_t count;
};

static void offer_path(void *data, const char *path)
{
	struct path_offer *to = data;

	if (is_possible(to->word, path) && to->count++ < MOST_OFFERED)
		offer_name(to->word, path);
}

/* Objects of a language as the program calls them; none if they are too many. */
static void offer_objects(const char *word)
{
	struct path_offer to = { word, 0 };
	struct error *error;

	if (!known.analysis || !known.reads_symbols || !*word)
		return;
	error = analysis_need(known.analysis, STAGE_FIBERS);
	if (!error && runtime_count(analysis_runtimes(known.analysis)) > 0)
		error = analysis_need(known.analysis, STAGE_OBJECT_PATHS);
	if (!error && analysis_cost(known.analysis, STAGE_OBJECT_PATHS).built)
		error = object_paths_complete(analysis_object_paths(known.analysis), word,
					      analysis_progress(known.analysis),
					      (struct path_visitor){ offer_path, &to });
	if (error || to.count > MOST_OFFERED)
		forget_matches();
	error_destroy(error);
	rl_completion_suppress_append = 1;
}

static void offer_variables(const char *word)
{
	_cleanup_(free) char *text = format_text("%s%s", known.before ? known.before : "", word);
	size_t end = 0, length = text ? find_path(text, &end) : 0;

	if (length)
		offer_members(word, text, length, end);
	else if (!known.before)
		offer_names_of_variables(word);
}

/* The words of a set, up to the last one, which is being typed. */
static void offer_set_words(const char *word, const char *const *words, size_t count)
{
	const struct set *set = NULL;
	size_t arguments = 0; /* arguments of the set that are missing */
	bool has_kind = false;

	for (size_t i = 0; i < count; i++) {
		if (arguments > 0) {
			arguments--;
		} else if (query_is_operator(words[i])) {
			set = NULL;
			has_kind = false;
		} else if (set) {
			has_kind = true;
		} else {
			set = set_find(words[i]);
			set = set ? set : &set_named;
			arguments = set_argument_count(set);
		}
	}
	if (!set)
		offer_sets(word);
	else if (arguments == 0 && !set->ranges)
		offer_operators(word);
	if (set && arguments == 0 && !set->ranges && !has_kind)
		offer_kinds(word);
}

/* `let NAME = SET`, whose words may touch the =. */
static void offer_naming_words(const char *word, const char **words, size_t count)
{
	_cleanup_(free) char *before = NULL;
	size_t i = 0;

	while (i < count && !strchr(words[i], '='))
		i++;
	if (i < count) {
		words[i] = strchr(words[i], '=') + 1;
		i += !words[i][0];
		offer_set_words(word, words + i, count - i);
	} else if (strchr(word, '=')) {
		before = strndup(word, strcspn(word, "=") + 1);
		if (before)
			offer_sets_behind(word, before);
	}
}

/* True if word is one of values, which look like "on|off". */
static bool is_value(const char *word, const char *values)
{
	size_t length = strlen(word);

	for (size_t i = 0; values && strcmp(values, "EXPORT") == 0 && export_formats[i]; i++)
		if (strcmp(export_formats[i]->name, word) == 0)
			return true;
	while (values) {
		size_t next = strcspn(values, "|");

		if (next == length && strncmp(values, word, length) == 0)
			return true;
		values = values[next] ? values + next + 1 : NULL;
	}
	return false;
}

/* The words of a set, behind one of the choices of a command or none. */
static void offer_chosen_set(const char *word, const char *choices, const char *const *words,
			     size_t count)
{
	size_t first = count > 0 && is_value(words[0], choices);

	if (count == 0)
		offer_values(word, "", choices);
	offer_set_words(word, words + first, count - first);
}

/* The last word of a command, with those before it that are no switches. */
static void offer_known_words(const char *word, const struct command *command, const char **words,
			      size_t count)
{
	switch (command->word) {
	case WORD_SET:
		offer_chosen_set(word, command->choices, words, count);
		return;
	case WORD_NAMING:
		offer_naming_words(word, words, count);
		return;
	case WORD_COMMAND:
		if (count == 0) {
			offer_commands(word);
			offer_topics(word);
		}
		if (count <= 1)
			offer_sets(word);
		return;
	case WORD_SWITCH:
		if (count == 0)
			offer_values(word, "", "on|off");
		return;
	case WORD_CHOICE:
		if (count == 0)
			offer_values(word, "", command->choices);
		return;
	default:
		return;
	}
}

/* A variable may be an address; what reads no types is offered first. */
static void offer_words(const char *word, const struct command *command, const char **words,
			size_t count)
{
	bool is_address = variable_words_fit(command, words, count);

	offer_known_words(word, command, words, count);
	if (is_address && matches.count == 0)
		offer_variables(word);
	if (is_address && matches.count == 0 && !known.before)
		offer_objects(word);
}

/*
 * Leave the words before the last one that are no switches in ret_words. Returns the switch that
 * takes the last one as its value, or NULL.
 */
static const char *pass_switches(const struct command *command, const struct line *line,
				 const char **ret_words, size_t *ret_count)
{
	size_t last = line->count - 1, i = 1;

	*ret_count = 0;
	while (i < last) {
		size_t places = switch_places(command, line->words[i]);

		if (i + places > last)
			return line->words[i];
		if (places == 0)
			ret_words[(*ret_count)++] = line->words[i++];
		i += places;
	}
	return NULL;
}

/*
 * Offer what the last word of a command may become; the words before it are complete. False if it
 * is a file's name.
 */
static bool offer_last(const char *word, const struct command *command, const struct line *line)
{
	_cleanup_(free) const char **words = calloc(line->count, sizeof(*words));
	const char *name;
	size_t count;

	if (!words)
		return true;
	name = pass_switches(command, line, words, &count);
	if (strchr(word, '%'))
		offer_patterns(word);
	else if (name)
		offer_separate_value(word, name, switch_find(command, name));
	else if (strncmp(word, "--", 2) == 0 && strchr(word, '='))
		offer_joined_value(word, command);
	else if (word[0] == '-' || (word[0] == '/' && command->word != WORD_FILE))
		offer_switches(word, command);
	else if (command->word == WORD_FILE)
		return false;
	else
		offer_words(word, command, words, count);
	return true;
}

/*
 * Take apart the line up to the word, with something in the word's place, so that it is the last
 * one. A quote may be open in front of it.
 */
static bool split_before(const char *all, int start, struct line *ret)
{
	static const char *const places[] = { "x", "x\"", "x'" };

	for (size_t i = 0; i < COUNT_OF(places); i++) {
		_cleanup_(free) char *text = NULL;
		struct error *error;

		text = format_text("%.*s%s", start, all, places[i]);
		if (!text)
			return false;
		error = line_split(text, ret);
		if (!error)
			return true;
		error_destroy(error);
	}
	return false;
}

static char *next_match(const char *word, int state)
{
	if (state == 0)
		matches.next = 0;
	if (matches.next == matches.count)
		return NULL;
	return strdup(matches.list[matches.next++]);
}

/* Offer what the last word of the line may become; false if it is a file's name. */
static bool offer_last_of(const char *word, const struct line *line)
{
	const struct command *command;

	if (line->count == 1) {
		offer_commands(word);
		return true;
	}
	command = command_find(line->words[0]);
	return !command || offer_last(word, command, line);
}

/* A `>` within a word is none to the lexer; "x" stands for what is behind it. */
static char *left_out(const struct line *line)
{
	const char *last = line->words[line->count - 1];

	return strndup(last, strlen(last) - 1);
}

/* Offer what the word that begins at start of the text may become; false: it is a file's name. */
static bool offer_at(const char *text, int start, const char *word)
{
	_cleanup_(line_deinit) struct line line = { 0 };
	_cleanup_(free) char *before = NULL;
	bool is_offered;

	if (!split_before(text, start, &line) || line.count == 0)
		return true;
	known.is_quoted = start > 0 && strchr("\"'", text[start - 1]);
	if (text[start - !!start] == '>' && !line.target)
		before = left_out(&line);
	known.before = before;
	is_offered = !line.target && offer_last_of(word, &line);
	known.before = NULL;
	return is_offered;
}

char **complete_word(const char *word, int start, int end)
{
	char **completed;

	/* Files are what readline offers by itself. */
	rl_attempted_completion_over = offer_at(rl_line_buffer, start, word);
	completed = rl_completion_matches(word, next_match);
	forget_matches();
	return completed;
}

static void write_matches(FILE *out)
{
	for (size_t i = 0; i < matches.count; i++)
		fprintf(out, "%s\n", matches.list[i]);
	forget_matches();
}

void completion_write_line(const char *text, FILE *out)
{
	size_t start = strlen(text);

	while (start > 0 && !strchr(completion_word_breaks, text[start - 1]))
		start--;
	offer_at(text, (int)start, text + start);
	write_matches(out);
}

void completion_write(const struct line *line, FILE *out)
{
	offer_last_of(line->words[line->count - 1], line);
	write_matches(out);
}

void completion_write_options(const char *word, const struct argp_option *options, FILE *out)
{
	offer_options(word, options);
	write_matches(out);
}

void completion_write_values(const char *word, const char *before, const char *values, FILE *out)
{
	offer_values(word, before, values);
	write_matches(out);
}
