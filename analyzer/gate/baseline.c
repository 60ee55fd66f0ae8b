#include "analyzer/gate/baseline.h"

#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/base/text.h"
#include "analyzer/gate/small_file.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

static void entry_deinit(struct baseline_entry *entry)
{
	free(entry->kind);
	free(entry->reason);
}

void baseline_deinit(struct baseline *baseline)
{
	for (size_t i = 0; i < baseline->count; i++)
		entry_deinit(&baseline->list[i]);
	free(baseline->list);
}

DEFINE_COMPARE(compare, struct baseline_entry, ASCENDING(fingerprint))

static void sort(struct baseline *baseline)
{
	if (baseline->count > 1)
		SORT(baseline->list, baseline->count, compare);
}

struct baseline_entry *baseline_find(const struct baseline *baseline, uint64_t fingerprint)
{
	struct baseline_entry key = { .fingerprint = fingerprint };

	if (baseline->count == 0)
		return NULL;
	return bsearch(&key, baseline->list, baseline->count, sizeof(*baseline->list), compare);
}

/* If a fingerprint occurred twice, it would be open which one counts. */
static struct error *check_unique(const struct baseline *baseline, const char *name)
{
	for (size_t i = 1; i < baseline->count; i++)
		if (baseline->list[i].fingerprint == baseline->list[i - 1].fingerprint)
			return error_create(ERROR_USAGE,
					    "%s: the fingerprint %016" PRIx64 " is there twice",
					    name, baseline->list[i].fingerprint);
	return NULL;
}

#define VERSION_KEY "heapcore-baseline"
enum { THIS_VERSION = 1 };

static void release_json(json_t *json)
{
	json_decref(json);
}
DEFINE_CLEANUP(release_json, json_t *)

/* The end of the string that begins with a quote at text. */
static const char *skip_string(const char *text, const char *end)
{
	for (text++; text < end && *text != '"'; text++)
		if (*text == '\\' && text + 1 < end)
			text++;
	return text < end ? text + 1 : end;
}

/*
 * The line that the number-th leak of a file begins in. The parser says it of what is no JSON only,
 * so the file is JSON: { "leaks": [ leak, leak ] }.
 */
static size_t line_of_leak(const char *text, size_t size, size_t number)
{
	const char *end = text + size;
	size_t line = 1, depth = 0;
	bool begins = false;

	while (text < end) {
		if (depth == 2 && begins && !strchr(" \t\r\n", *text)) {
			begins = false;
			if (number-- == 0)
				return line;
		}
		if (*text == '"') {
			text = skip_string(text, end);
			continue;
		}
		if (*text == '{' || *text == '[')
			begins = ++depth == 2;
		else if (*text == '}' || *text == ']')
			depth--;
		else if (*text == ',' && depth == 2)
			begins = true;
		line += *text++ == '\n';
	}
	return line;
}

/* NULL: there is no such text. */
static char *copy_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? strdup(text) : NULL;
}

static const char *take_number(const json_t *object, const char *key, uint64_t *ret)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return "its numbers are \"size\", \"roots\" and \"bytes\"";
	*ret = (uint64_t)json_integer_value(value);
	return NULL;
}

static const char *take_fingerprint(const json_t *object, uint64_t *ret)
{
	static const char wrong[] = "its \"fingerprint\" is text of 16 hexadecimal digits";
	const char *text = json_string_value(json_object_get(object, "fingerprint"));
	char *end;

	if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdefABCDEF") != 16)
		return wrong;
	*ret = strtoull(text, &end, 16);
	return NULL;
}

static const char *check_keys(json_t *object)
{
	static const char *const known[] = { "fingerprint", "kind",  "size",
					     "roots",	    "bytes", "reason" };
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		bool found = false;

		for (size_t i = 0; i < COUNT_OF(known); i++)
			found |= strcmp(key, known[i]) == 0;
		if (!found)
			return "it has a key that is not known";
	}
	return NULL;
}

/* Returns what is wrong with it, or NULL. */
static const char *parse_leak(json_t *json, struct baseline_entry *ret)
{
	const json_t *reason = json_object_get(json, "reason");
	const char *wrong = json_is_object(json) ? check_keys(json) : "it is not an object";

	if (!wrong)
		wrong = take_fingerprint(json, &ret->fingerprint);
	if (!wrong)
		wrong = take_number(json, "size", &ret->size);
	if (!wrong)
		wrong = take_number(json, "roots", &ret->roots);
	if (!wrong)
		wrong = take_number(json, "bytes", &ret->bytes);
	if (!wrong && !json_is_string(json_object_get(json, "kind")))
		wrong = "its \"kind\" is text";
	if (!wrong && reason && !json_is_string(reason))
		wrong = "its \"reason\" is text";
	return wrong;
}

static struct error *add_leak(json_t *json, struct baseline *baseline)
{
	struct baseline_entry *entry = &baseline->list[baseline->count];
	bool has_reason = json_object_get(json, "reason") != NULL;

	entry->kind = copy_text(json, "kind");
	entry->reason = copy_text(json, "reason");
	baseline->count++;
	if (!entry->kind || (has_reason && !entry->reason))
		return &error_no_memory;
	return NULL;
}

static struct error *parse_leaks(json_t *leaks, const char *text, size_t size, const char *name,
				 struct baseline *ret)
{
	const char *wrong;

	for (size_t i = 0; i < json_array_size(leaks); i++) {
		json_t *leak = json_array_get(leaks, i);

		TRY_MEMORY(LIST_GROW(ret->list, ret->count));
		ret->list[ret->count] = (struct baseline_entry){ 0 };
		wrong = parse_leak(leak, &ret->list[ret->count]);
		if (wrong)
			return error_create(ERROR_USAGE,
					    "%s:%zu: this is no leak of a baseline: %s", name,
					    line_of_leak(text, size, i), wrong);
		TRY(add_leak(leak, ret));
	}
	return NULL;
}

/* Check the file's other requirements. */
static const char *check_file(const json_t *root)
{
	const json_t *version = json_object_get(root, VERSION_KEY);

	if (!json_is_object(root) || !json_is_integer(version))
		return "this is not a baseline of heapcore";
	if (json_integer_value(version) != THIS_VERSION)
		return "this baseline is of another version of heapcore";
	if (!json_is_array(json_object_get(root, "leaks")))
		return "there is no list of \"leaks\"";
	if (json_object_size(root) != 2)
		return "there are keys other than \"" VERSION_KEY "\" and \"leaks\"";
	return NULL;
}

/* Entries in the order of the file. */
static struct error *parse_json(const char *text, size_t size, const char *name,
				struct baseline *ret)
{
	json_error_t problem;
	_cleanup_(release_json) json_t *root =
		json_loadb(text, size, JSON_REJECT_DUPLICATES, &problem);
	const char *wrong;

	if (!root)
		return error_create(ERROR_USAGE, "%s:%d: %s", name,
				    problem.line > 0 ? problem.line : 1, problem.text);
	wrong = check_file(root);
	if (wrong)
		return error_create(ERROR_USAGE, "%s:1: %s", name, wrong);
	return parse_leaks(json_object_get(root, "leaks"), text, size, name, ret);
}

static void put_text(json_t *object, const char *key, const char *text)
{
	_cleanup_(free) char *escaped = escape_text(text);

	json_object_set_new(object, key, json_string(escaped ? escaped : ""));
}

static void put_number(json_t *object, const char *key, uint64_t number)
{
	json_object_set_new(object, key,
			    json_integer(number > INT64_MAX ? INT64_MAX : (json_int_t)number));
}

static struct error *print_leak(const struct baseline_entry *entry, FILE *file, bool last)
{
	_cleanup_(release_json) json_t *object = json_object();
	_cleanup_(free) char *line = NULL;
	char fingerprint[FINGERPRINT_SIZE];

	put_text(object, "fingerprint", fingerprint_text(entry->fingerprint, fingerprint));
	put_text(object, "kind", entry->kind);
	put_number(object, "size", entry->size);
	put_number(object, "roots", entry->roots);
	put_number(object, "bytes", entry->bytes);
	if (entry->reason)
		json_object_set_new(object, "reason", json_string(entry->reason));
	line = json_dumps(object, 0);
	TRY_MEMORY(line);
	fprintf(file, "\n    %s%s", line, last ? "\n  " : ",");
	return NULL;
}

struct error *baseline_print(const struct baseline *baseline, char **ret, size_t *ret_size)
{
	_cleanup_(free) char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);
	struct error *error = NULL;

	TRY_MEMORY(file);
	fprintf(file, "{\n  \"" VERSION_KEY "\": %d,\n  \"leaks\": [", THIS_VERSION);
	for (size_t i = 0; !error && i < baseline->count; i++)
		error = print_leak(&baseline->list[i], file, i + 1 == baseline->count);
	fputs("]\n}\n", file);
	if (fclose(file) != 0 && !error)
		error = &error_no_memory;
	if (error)
		return error;
	*ret = take(text);
	*ret_size = size;
	return NULL;
}

struct error *baseline_parse(const char *text, size_t size, const char *name, struct baseline *ret)
{
	TRY(parse_json(text, size, name, ret));
	sort(ret);
	return check_unique(ret, name);
}

struct error *baseline_read(const char *path, struct baseline *ret)
{
	_cleanup_(free) char *text = NULL;
	size_t size;

	TRY(read_small_file(path, &text, &size));
	return baseline_parse(text, size, path, ret);
}

static struct error *accept_kind(const struct baseline *old, const struct leak_kind *kind,
				 struct baseline *ret)
{
	const struct baseline_entry *former = baseline_find(old, kind->fingerprint);
	struct baseline_entry entry = {
		.fingerprint = kind->fingerprint,
		.kind = strdup(kind->name),
		.size = kind->size,
		.roots = kind->roots,
		.bytes = kind->bytes,
		.matched = true,
	};

	if (former && former->reason)
		entry.reason = strdup(former->reason);
	if (!entry.kind || (former && former->reason && !entry.reason) ||
	    !LIST_GROW(ret->list, ret->count)) {
		entry_deinit(&entry);
		return &error_no_memory;
	}
	ret->list[ret->count++] = entry;
	return NULL;
}

struct error *baseline_accept(const struct baseline *old, const struct leak_kinds *kinds,
			      struct baseline *ret)
{
	struct error *error = NULL;

	for (size_t i = 0; !error && i < kinds->count; i++)
		if (kinds->list[i].state != LEAK_SUPPRESSED)
			error = accept_kind(old, &kinds->list[i], ret);
	sort(ret);
	return error;
}

static bool lower(struct baseline *baseline, const struct leak_kind *kind)
{
	struct baseline_entry *entry = baseline_find(baseline, kind->fingerprint);

	if (!entry || kind->state == LEAK_SUPPRESSED || kind->roots >= entry->roots)
		return false;
	entry->roots = kind->roots;
	entry->bytes = kind->bytes;
	return true;
}

bool baseline_ratchet(struct baseline *baseline, const struct leak_kinds *kinds)
{
	bool lowered = false;
	size_t kept = 0;

	for (size_t i = 0; i < kinds->count; i++)
		lowered |= lower(baseline, &kinds->list[i]);
	for (size_t i = 0; i < baseline->count; i++) {
		if (baseline->list[i].matched)
			baseline->list[kept++] = baseline->list[i];
		else
			entry_deinit(&baseline->list[i]);
	}
	lowered |= kept != baseline->count;
	baseline->count = kept;
	return lowered;
}

struct error *baseline_write(const struct baseline *baseline, const char *path)
{
	_cleanup_(free) char *text = NULL;
	size_t size;

	TRY(baseline_print(baseline, &text, &size));
	return replace_file(path, text, size);
}

static enum leak_state compare_roots(const struct leak_kind *kind,
				     const struct baseline_entry *entry)
{
	if (kind->rule)
		return LEAK_SUPPRESSED;
	if (!entry)
		return LEAK_NEW;
	return kind->roots > entry->roots ? LEAK_MORE : LEAK_KNOWN;
}

void baseline_compare(struct baseline *baseline, struct leak_kinds *kinds)
{
	list_for_each(kind, kinds->list, kinds->count) {
		struct baseline_entry *entry = baseline_find(baseline, kind->fingerprint);

		kind->state = compare_roots(kind, entry);
		kind->is_allowed = entry != NULL;
		kind->allowed = entry ? entry->roots : 0;
		if (entry)
			entry->matched = true;
	}
}
