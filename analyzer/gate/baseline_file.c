#include "analyzer/gate/baseline_file.h"

#include "analyzer/base/list.h"
#include "analyzer/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>

#define VERSION_KEY "heapcore-baseline"
enum { THIS_VERSION = 1 };

static void release_json(json_t *json)
{
	json_decref(json);
}
DEFINE_CLEANUP(release_json, json_t *)

/* Behind the string that begins with a quote at text. */
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

		for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
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
	struct error *error = NULL;
	const char *wrong;

	for (size_t i = 0; !error && i < json_array_size(leaks); i++) {
		json_t *leak = json_array_get(leaks, i);

		if (!LIST_GROW(ret->list, ret->count))
			return &error_no_memory;
		ret->list[ret->count] = (struct baseline_entry){ 0 };
		wrong = parse_leak(leak, &ret->list[ret->count]);
		if (wrong)
			return error_create(ERROR_USAGE,
					    "%s:%zu: this is no leak of a baseline: %s", name,
					    line_of_leak(text, size, i), wrong);
		error = add_leak(leak, ret);
	}
	return error;
}

/* What else the file has to be. */
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

struct error *baseline_parse_json(const char *text, size_t size, const char *name,
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
	char fingerprint[17];

	snprintf(fingerprint, sizeof(fingerprint), "%016" PRIx64, entry->fingerprint);
	put_text(object, "fingerprint", fingerprint);
	put_text(object, "kind", entry->kind);
	put_number(object, "size", entry->size);
	put_number(object, "roots", entry->roots);
	put_number(object, "bytes", entry->bytes);
	if (entry->reason)
		json_object_set_new(object, "reason", json_string(entry->reason));
	line = json_dumps(object, 0);
	if (!line)
		return &error_no_memory;
	fprintf(file, "\n    %s%s", line, last ? "\n  " : ",");
	return NULL;
}

struct error *baseline_print_json(const struct baseline *baseline, char **ret, size_t *ret_size)
{
	_cleanup_(free) char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);
	struct error *error = NULL;

	if (!file)
		return &error_no_memory;
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

static struct error *wrong_file(const char *path, const char *what)
{
	return error_create(ERROR_USAGE, "%s: %s", path, what);
}

struct error *read_small_file(const char *path, char **ret, size_t *ret_size)
{
	/* Not to wait for who writes to a pipe. */
	_cleanup_(close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_(free) char *text = NULL;
	struct stat status;
	size_t size = 0;
	ssize_t got = 1;

	if (fd < 0 || fstat(fd, &status) < 0)
		return wrong_file(path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		return wrong_file(path, "this is not a regular file");
	if (status.st_size > MOST_FILE_BYTES)
		return wrong_file(path, "this file is too large");
	text = malloc((size_t)status.st_size + 1);
	if (!text)
		return &error_no_memory;
	while (size < (size_t)status.st_size && got > 0) {
		got = read(fd, text + size, (size_t)status.st_size - size);
		if (got < 0 && errno != EINTR)
			return wrong_file(path, strerror(errno));
		size += got > 0 ? (size_t)got : 0;
		got = got < 0 ? 1 : got;
	}
	text[size] = '\0';
	*ret = take(text);
	*ret_size = size;
	return NULL;
}

static bool write_all(int fd, const char *text, size_t size)
{
	while (size > 0) {
		ssize_t put = write(fd, text, size);

		if (put < 0 && errno != EINTR)
			return false;
		if (put > 0) {
			text += put;
			size -= (size_t)put;
		}
	}
	return fsync(fd) == 0 || errno == EINVAL;
}

struct error *replace_file(const char *path, const char *text, size_t size)
{
	_cleanup_(free) char *new_path = NULL;
	_cleanup_(close) int fd = -1;
	struct error *error = NULL;
	struct stat former;

	if (asprintf(&new_path, "%s.%jd.new", path, (intmax_t)getpid()) < 0) {
		new_path = NULL;
		return &error_no_memory;
	}
	fd = open(new_path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return error_create(ERROR_USAGE, "%s: %s", new_path, strerror(errno));
	if (lstat(path, &former) == 0 && S_ISREG(former.st_mode) &&
	    fchmod(fd, former.st_mode & 0777) < 0)
		error = error_system("%s", new_path);
	if (!error && !write_all(fd, text, size))
		error = error_system("%s", new_path);
	if (!error && rename(new_path, path) < 0)
		error = error_system("%s", path);
	if (error)
		unlink(new_path);
	return error;
}
