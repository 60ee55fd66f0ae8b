#include "cli/fleet/cores.h"

#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/base/text.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

/* The attribute in which systemd-coredump stores the host that a core was taken on. */
static const char HOST_ATTRIBUTE[] = "user.coredump.hostname";

void fleet_cores_deinit(struct fleet_cores *cores)
{
	list_for_each(core, cores->list, cores->count)
		fleet_core_deinit(core);
	free(cores->list);
	for (size_t i = 0; i < cores->name_count; i++)
		free(cores->names[i]);
	if (cores->has_pattern)
		regfree(&cores->pattern);
}

static size_t name_size(const char *text)
{
	size_t size = 0;

	while (isalnum((unsigned char)text[size]) || (text[size] && strchr("-_", text[size])))
		size++;
	return size;
}

struct error *tag_check(const char *text)
{
	size_t size = name_size(text);

	return size > 0 && text[size] == '=' ? NULL : error_not(text, "NAME=VALUE");
}

/* Add the tag "NAME=VALUE", which ends with the text or at a tab. */
static struct error *add_tag(struct fleet_core *core, const char *text, size_t size)
{
	_cleanup_(free) char *name = NULL;
	size_t length;

	TRY(tag_check(text));
	length = name_size(text);
	name = strndup(text, length);
	TRY_MEMORY(name);
	return fleet_core_tag(core, name, text + length + 1, size - length - 1);
}

struct expression {
	char *text;
	size_t size;
};

static void put(struct expression *expression, const char *text)
{
	size_t size = strlen(text);

	memcpy(expression->text + expression->size, text, size + 1);
	expression->size += size;
}

/* "{NAME}" at the text; returns what follows it. */
static const char *take_name(struct fleet_cores *cores, const char *text)
{
	size_t size = name_size(text + 1);

	if (*text != '{' || size == 0 || text[size + 1] != '}' ||
	    cores->name_count == MOST_PATH_TAGS)
		return NULL;
	cores->names[cores->name_count] = strndup(text + 1, size);
	cores->name_count += cores->names[cores->name_count] != NULL;
	return text + size + 2;
}

struct error *fleet_cores_use_pattern(struct fleet_cores *cores, const char *pattern)
{
	/* A character becomes no more than this. */
	_cleanup_(free) char *text = malloc(8 * strlen(pattern) + 16);
	struct expression expression = { text, 0 };

	TRY_MEMORY(text);
	put(&expression, "(^|/)");
	for (const char *next, *at = pattern; *at; at = next) {
		next = take_name(cores, at);
		if (next) {
			put(&expression, "([^/]*)");
			continue;
		}
		next = at + 1;
		if (*at == '{')
			return error_create(ERROR_USAGE,
					    "a pattern has up to %d names such as {host}",
					    MOST_PATH_TAGS);
		if (*at == '*')
			put(&expression, "[^/]*");
		else
			put(&expression, (char[]){ '[', *at, ']', '\0' });
	}
	put(&expression, "$");
	if (regcomp(&cores->pattern, text, REG_EXTENDED) != 0)
		return error_not(pattern, "a pattern of paths");
	cores->has_pattern = true;
	return NULL;
}

static struct error *add_path_tags(struct fleet_cores *cores, struct fleet_core *core)
{
	regmatch_t matches[MOST_PATH_TAGS + 2];

	if (!cores->has_pattern ||
	    regexec(&cores->pattern, core->path, COUNT_OF(matches), matches, 0) != 0)
		return NULL;
	cores->pattern_fits = true;
	for (size_t i = 0; i < cores->name_count; i++) {
		regmatch_t match = matches[i + 2];

		TRY(fleet_core_tag(core, cores->names[i], core->path + match.rm_so,
				   (size_t)(match.rm_eo - match.rm_so)));
	}
	return NULL;
}

static struct error *add_host(struct fleet_core *core)
{
	char host[256];
	ssize_t size = getxattr(core->path, HOST_ATTRIBUTE, host, sizeof(host));

	return size > 0 ? fleet_core_tag(core, "host", host, (size_t)size) : NULL;
}

/* From what is least special: what the file says, its path, the command line, the list. */
static struct error *describe(struct fleet_cores *cores, struct fleet_core *core,
			      const char *listed)
{
	if (!cores->are_fetched)
		TRY(add_host(core));
	TRY(add_path_tags(cores, core));
	for (size_t i = 0; i < cores->tags.count; i++)
		TRY(add_tag(core, cores->tags.list[i], strlen(cores->tags.list[i])));
	for (const char *tag = listed; tag && *tag; tag += *tag == '\t') {
		size_t size = strcspn(tag, "\t");

		if (size > 0)
			TRY(add_tag(core, tag, size));
		tag += size;
	}
	return NULL;
}

/* Links stay what they are called: many names of one core are as many cores. */
static char *absolute(const char *path)
{
	char folder[PATH_MAX];

	if (*path == '/')
		return strdup(path);
	while (strncmp(path, "./", 2) == 0)
		path += 2;
	return getcwd(folder, sizeof(folder)) ? format_text("%s/%s", folder, path) : NULL;
}

/* Add a file. If it cannot be read, it becomes a core with an error when it is analysed. */
static struct error *add_file(struct fleet_cores *cores, const char *path, const char *listed)
{
	_cleanup_(fleet_core_deinit) struct fleet_core core = { 0 };
	struct stat status;

	core.path = cores->are_fetched ? strdup(path) : absolute(path);
	TRY_MEMORY(core.path);
	if (!cores->are_fetched && stat(path, &status) == 0) {
		core.size = (uint64_t)status.st_size;
		core.modified =
			(int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
	}
	TRY(describe(cores, &core, listed));
	TRY_MEMORY(LIST_GROW(cores->list, cores->count));
	cores->list[cores->count++] = take_struct(core);
	return NULL;
}

/* Read the beginning of a file; fill the rest with zeros. */
static void read_beginning(const char *path, uint8_t *ret, size_t size)
{
	_cleanup_(close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	memset(ret, 0, size);
	if (fd >= 0 && read(fd, ret, size) < 0)
		memset(ret, 0, size);
}

bool file_has_rows(const char *path)
{
	static const char FIRST[] = "{\"row\":";
	uint8_t beginning[sizeof(FIRST) - 1];

	read_beginning(path, beginning, sizeof(beginning));
	return memcmp(beginning, FIRST, sizeof(beginning)) == 0;
}

/* True if a file begins like a core, or like something packed that may be one. */
static bool looks_like_core(const char *path)
{
	static const struct {
		const char *bytes;
		size_t size;
	} packings[] = { { "\x28\xb5\x2f\xfd", 4 },
			 { "\x1f\x8b", 2 },
			 { "\xfd"
			   "7zXZ",
			   5 },
			 { "BZh", 3 },
			 { "\x04\x22\x4d\x18", 4 } };
	union {
		uint8_t bytes[sizeof(Elf64_Ehdr)];
		Elf64_Ehdr header;
	} file;

	read_beginning(path, file.bytes, sizeof(file.bytes));
	if (memcmp(file.bytes, ELFMAG, SELFMAG) == 0)
		return file.header.e_type == ET_CORE;
	for (size_t i = 0; i < COUNT_OF(packings); i++)
		if (memcmp(file.bytes, packings[i].bytes, packings[i].size) == 0)
			return true;
	return false;
}

/* A broken core may be known by nothing but its name. */
bool file_may_be_core(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strncmp(slash ? slash + 1 : path, "core.", 5) == 0 || looks_like_core(path);
}

/* A core, or rows of one, that nobody could write: known by nothing but its name. */
static bool is_lost(const FTSENT *entry)
{
	const char *dot = strrchr(entry->fts_name, '.');

	return entry->fts_statp->st_size == 0 &&
	       (strstr(entry->fts_name, "core") || (dot && strcmp(dot, ".ndjson") == 0));
}

static bool is_wanted(const FTSENT *entry)
{
	return is_lost(entry) || file_may_be_core(entry->fts_accpath) ||
	       file_has_rows(entry->fts_accpath);
}

static void close_folder(FTS *folder)
{
	fts_close(folder);
}
DEFINE_CLEANUP(close_folder, FTS *)

static struct error *add_folder(struct fleet_cores *cores, const char *path)
{
	char *const paths[] = { (char *)path, NULL };
	_cleanup_(close_folder) FTS *folder = fts_open(paths, FTS_LOGICAL | FTS_NOCHDIR, NULL);
	const FTSENT *entry;

	if (!folder)
		return error_system("%s", path);
	while ((entry = fts_read(folder)) != NULL)
		if (entry->fts_info == FTS_F && S_ISREG(entry->fts_statp->st_mode) &&
		    is_wanted(entry))
			TRY(add_file(cores, entry->fts_path, NULL));
	return NULL;
}

struct error *fleet_cores_add(struct fleet_cores *cores, const char *path)
{
	struct stat status;

	if (cores->are_fetched)
		return add_file(cores, path, NULL);
	if (stat(path, &status) < 0)
		return error_create(ERROR_USAGE, "%s: %s", path, strerror(errno));
	return S_ISDIR(status.st_mode) ? add_folder(cores, path) : add_file(cores, path, NULL);
}

struct error *fleet_cores_add_listed(struct fleet_cores *cores, FILE *list)
{
	_cleanup_(free) char *line = NULL;
	size_t size = 0;
	ssize_t length;

	while ((length = getline(&line, &size, list)) >= 0) {
		char *tags;

		while (length > 0 && strchr("\r\n", line[length - 1]))
			line[--length] = '\0';
		tags = strchr(line, '\t');
		if (tags)
			*tags++ = '\0';
		if (*line)
			TRY(add_file(cores, line, tags));
	}
	return NULL;
}

static int compare_paths(const void *a, const void *b)
{
	const struct fleet_core *core = a, *other = b;

	return strcmp(core->path, other->path);
}

void fleet_cores_order(struct fleet_cores *cores)
{
	size_t kept = 0;

	SORT(cores->list, cores->count, compare_paths);
	for (size_t i = 0; i < cores->count; i++) {
		if (kept > 0 && strcmp(cores->list[kept - 1].path, cores->list[i].path) == 0)
			fleet_core_deinit(&cores->list[i]);
		else
			cores->list[kept++] = cores->list[i];
	}
	cores->count = kept;
}
