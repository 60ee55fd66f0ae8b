#include "cli/assistants/folders.h"

#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/base/text.h"
#include "cli/fleet/cores.h"
#include "cli/fleet/store.h"

#include <errno.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { MOST_FILES = 100000 }; /* that are looked at */

void folders_deinit(struct folders *folders)
{
	for (size_t i = 0; i < folders->count; i++)
		free(folders->list[i]);
	free(folders->list);
	free(folders->core);
}

struct error *folders_add(struct folders *folders, const char *path)
{
	_cleanup_(free) char *resolved = realpath(path, NULL);
	struct stat status;

	if (!resolved || stat(resolved, &status) < 0)
		return error_create(ERROR_USAGE, "%s: %s", path, strerror(errno));
	if (S_ISDIR(status.st_mode)) {
		TRY(LIST_APPEND(folders->list, folders->count, resolved));
		resolved = NULL;
		return NULL;
	}
	if (!S_ISREG(status.st_mode))
		return error_not(path, "a core or a folder");
	if (folders->core)
		return error_create(ERROR_USAGE, "give at most one core; give its folder for more");
	folders->core = take(resolved);
	return NULL;
}

static bool is_below(const char *path, const char *folder)
{
	size_t length = strlen(folder);

	if (strcmp(folder, "/") == 0)
		return true;
	return strncmp(path, folder, length) == 0 && path[length] == '/';
}

static bool is_allowed(const struct folders *folders, const char *path)
{
	struct stat status;
	bool is_below_one = folders->core && strcmp(path, folders->core) == 0;

	for (size_t i = 0; i < folders->count; i++)
		is_below_one |= is_below(path, folders->list[i]);
	return is_below_one && stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* Takes the path over, which may be NULL. */
static char *resolve(const struct folders *folders, char *path)
{
	_cleanup_(free) char *owned = path;
	_cleanup_(free) char *resolved = owned ? realpath(owned, NULL) : NULL;

	return resolved && is_allowed(folders, resolved) ? take(resolved) : NULL;
}

struct error *folders_find(const struct folders *folders, const char *what, const char *name,
			   char **ret)
{
	char *path = name[0] == '/' ? resolve(folders, strdup(name)) : NULL;

	for (size_t i = 0; name[0] != '/' && !path && i < folders->count; i++)
		path = resolve(folders, format_text("%s/%s", folders->list[i], name));
	if (!path && folders->core && name[0] != '/') {
		const char *slash = strrchr(folders->core, '/');

		path = strcmp(slash + 1, name) == 0 ? strdup(folders->core) : NULL;
	}
	if (!path)
		return error_create(ERROR_USAGE,
				    "there is no %s '%s' that may be opened; 'open' lists them",
				    what, name);
	*ret = path;
	return NULL;
}

struct core_file {
	char *path; /* owned */
	uint64_t size;
	int64_t modified; /* seconds since 1970 */
	bool is_fleet;
};

struct core_files {
	struct core_file *list;
	size_t count;
	size_t looked_at;
};

static void core_files_deinit(struct core_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		free(files->list[i].path);
	free(files->list);
}
DEFINE_DEINIT(core_files_deinit, struct core_files)

static struct error *add_file(struct core_files *files, const char *path, const struct stat *status,
			      bool is_fleet)
{
	struct core_file file = {
		.path = strdup(path),
		.size = (uint64_t)status->st_size,
		.modified = status->st_mtim.tv_sec,
		.is_fleet = is_fleet,
	};
	struct error *error =
		file.path ? LIST_APPEND(files->list, files->count, file) : &error_no_memory;

	if (error)
		free(file.path);
	return error;
}

static void close_folder(FTS *folder)
{
	fts_close(folder);
}
DEFINE_CLEANUP(close_folder, FTS *)

/* Links are not followed. */
static struct error *add_folder(struct core_files *files, const char *path)
{
	char *const paths[] = { (char *)path, NULL };
	_cleanup_(close_folder) FTS *folder = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	const FTSENT *entry;

	if (!folder)
		return error_system("%s", path);
	while (files->looked_at < MOST_FILES && (entry = fts_read(folder)) != NULL) {
		bool is_core, is_fleet;

		files->looked_at++;
		if (entry->fts_info != FTS_F)
			continue;
		is_core = file_may_be_core(entry->fts_accpath);
		is_fleet = !is_core && store_is_at(entry->fts_accpath);
		if (is_core || is_fleet)
			TRY(add_file(files, entry->fts_path, entry->fts_statp, is_fleet));
	}
	return NULL;
}

DEFINE_COMPARE(compare_files, struct core_file, DESCENDING(modified), ALPHABETICAL(path))

static struct error *find_files(const struct folders *folders, struct core_files *files)
{
	struct stat status;

	if (folders->core && stat(folders->core, &status) == 0)
		TRY(add_file(files, folders->core, &status, false));
	for (size_t i = 0; i < folders->count; i++)
		TRY(add_folder(files, folders->list[i]));
	SORT(files->list, files->count, compare_files);
	return NULL;
}

static void write_files(const struct core_files *files, bool are_fleets, const struct table *table,
			struct report *report)
{
	char modified[32];

	report_begin_table(report, table);
	list_for_each(file, files->list, files->count) {
		time_t seconds = file->modified;
		struct tm when;

		if (file->is_fleet != are_fleets)
			continue;
		*modified = '\0';
		if (gmtime_r(&seconds, &when))
			strftime(modified, sizeof(modified), "%FT%TZ", &when);
		report_row(report, file->size, modified, file->path);
	}
	report_end_table(report);
}

struct error *folders_write(const struct folders *folders, struct report *report)
{
	static const struct table cores = TABLE("core", NULL, { "size", VALUE_BYTES },
						{ "modified", VALUE_TEXT }, { "core", VALUE_TEXT });
	static const struct table fleets =
		TABLE("fleet file", NULL, { "size", VALUE_BYTES }, { "modified", VALUE_TEXT },
		      { "fleet", VALUE_TEXT });
	_cleanup_(core_files_deinit) struct core_files files = { 0 };
	bool has_fleet = false;

	TRY(find_files(folders, &files));
	list_for_each(file, files.list, files.count)
		has_fleet |= file->is_fleet;
	write_files(&files, false, &cores, report);
	if (has_fleet)
		write_files(&files, true, &fleets, report);
	return NULL;
}
