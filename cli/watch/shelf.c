#include "cli/watch/shelf.h"

#include "analyzer/base/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

/* "20261128T213410.123Z-" is in front of each name. */
static const char STAMP[] = "%Y%m%dT%H%M%S";
enum { STAMP_SIZE = 32, HOUR = 3600 };

#define INCOMPLETE ".incomplete-"

/* Part of a disk that is left to others. */
enum { LEFT_TO_OTHERS = 50 };

static int is_stored(const struct dirent *entry)
{
	static const char shape[] = "ddddddddTdddddd.dddZ-";

	for (size_t i = 0; shape[i]; i++) {
		char letter = entry->d_name[i];

		if (shape[i] == 'd' ? letter < '0' || letter > '9' : letter != shape[i])
			return 0;
	}
	return 1;
}

static int is_incomplete(const struct dirent *entry)
{
	return strncmp(entry->d_name, INCOMPLETE, strlen(INCOMPLETE)) == 0;
}

static int is_file(const struct dirent *entry)
{
	return entry->d_type == DT_REG || entry->d_type == DT_UNKNOWN;
}

struct names {
	struct dirent **list; /* sorted, so the oldest first */
	int count;
};

static void names_deinit(struct names *names)
{
	for (int i = 0; i < names->count; i++)
		free(names->list[i]);
	free(names->list);
}
DEFINE_DEINIT(names_deinit, struct names)

static struct names list_names(const char *folder, int (*filter)(const struct dirent *entry))
{
	struct names names = { 0 };

	names.count = scandir(folder, &names.list, filter, alphasort);
	if (names.count < 0)
		names = (struct names){ 0 };
	return names;
}

/* Visit the files of a folder by name; what they take on the disk, in bytes. */
static uint64_t visit_files(const char *folder, bool removes)
{
	_cleanup_(names_deinit) struct names files = list_names(folder, is_file);
	_cleanup_(close) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	uint64_t size = 0;

	for (int i = 0; i < files.count && fd >= 0; i++) {
		struct stat status;

		if (fstatat(fd, files.list[i]->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0)
			size += (uint64_t)status.st_blocks * 512;
		if (removes)
			unlinkat(fd, files.list[i]->d_name, 0);
	}
	if (removes)
		rmdir(folder);
	return size;
}

static uint64_t size_of(const struct shelf *shelf, const char *name)
{
	_cleanup_(free) char *path = format_text("%s/%s", shelf->folder, name);

	return path ? visit_files(path, false) : 0;
}

/* Remove a folder but if another heapcore fills or analyses it: then it is locked. Returns its
 * size.
 */
static uint64_t remove_idle(const struct shelf *shelf, const char *name)
{
	_cleanup_(free) char *path = format_text("%s/%s", shelf->folder, name);
	_cleanup_(close) int fd =
		path ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 ? visit_files(path, true) : 0;
}

/* Seconds since 1970 at which it was stored. */
static time_t time_of(const char *name)
{
	struct tm time = { 0 };

	return strptime(name, STAMP, &time) ? timegm(&time) : 0;
}

struct error *shelf_open(const struct shelf *shelf)
{
	struct stat status;

	if (mkdir(shelf->folder, 0700) < 0 && errno != EEXIST)
		return error_system("%s", shelf->folder);
	if (stat(shelf->folder, &status) < 0)
		return error_system("%s", shelf->folder);
	if (!S_ISDIR(status.st_mode))
		return error_create(ERROR_USAGE, "%s is not a folder", shelf->folder);
	if (access(shelf->folder, W_OK | X_OK) < 0)
		return error_system("%s", shelf->folder);
	_cleanup_(names_deinit) struct names left = list_names(shelf->folder, is_incomplete);
	for (int i = 0; i < left.count; i++)
		remove_idle(shelf, left.list[i]->d_name);
	return NULL;
}

bool shelf_is_full(const struct shelf *shelf)
{
	_cleanup_(names_deinit) struct names names = list_names(shelf->folder, is_stored);
	time_t now = time(NULL);
	uint64_t count = 0;

	for (int i = 0; i < names.count; i++)
		count += now - time_of(names.list[i]->d_name) < HOUR;
	return shelf->hourly && count >= shelf->hourly;
}

uint64_t shelf_free_space(const struct shelf *shelf)
{
	struct statvfs disk;
	uint64_t left, most;

	if (statvfs(shelf->folder, &disk) < 0)
		return UINT64_MAX;
	left = (uint64_t)disk.f_bavail * disk.f_frsize;
	most = (uint64_t)disk.f_blocks * disk.f_frsize / LEFT_TO_OTHERS;
	return left > most ? left - most : 0;
}

static struct error *check_room(const struct shelf *shelf, uint64_t size, uint64_t stored)
{
	char wanted[NUMBER_SIZE], room[NUMBER_SIZE];
	uint64_t space = shelf_free_space(shelf);

	if (shelf->room && size > shelf->room)
		return error_create(ERROR_SYSTEM, "a core of %s has no room in %s of --room",
				    in_largest_unit(size, wanted),
				    in_largest_unit(shelf->room, room));
	if (space != UINT64_MAX && size > space + stored)
		return error_create(ERROR_SYSTEM, "a core of %s has no room on the disk of %s",
				    in_largest_unit(size, wanted), shelf->folder);
	return NULL;
}

struct error *shelf_make_room(const struct shelf *shelf, uint64_t size)
{
	_cleanup_(names_deinit) struct names names = list_names(shelf->folder, is_stored);
	time_t oldest = shelf->keep ? time(NULL) - (time_t)(shelf->keep / 1000000000) : 0;
	uint64_t stored = 0;

	for (int i = 0; i < names.count; i++)
		stored += size_of(shelf, names.list[i]->d_name);
	TRY(check_room(shelf, size, stored));
	for (int i = 0; i < names.count; i++) {
		const char *name = names.list[i]->d_name;

		if (time_of(name) >= oldest && shelf_free_space(shelf) >= size &&
		    (!shelf->room || stored + size <= shelf->room))
			break;
		stored -= remove_idle(shelf, name);
	}
	return NULL;
}

void make_printable(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '_';
}

/* Make it one part of a path. */
static void make_harmless(char *name)
{
	for (; *name; name++)
		if (!strchr("-_+.", *name) && !(*name >= '0' && *name <= '9') &&
		    !(*name >= 'a' && *name <= 'z') && !(*name >= 'A' && *name <= 'Z'))
			*name = '_';
}

struct error *shelf_begin(const struct shelf *shelf, const char *name, pid_t process,
			  struct stored *ret)
{
	char stamp[STAMP_SIZE];
	struct timespec now;
	struct tm parts;

	clock_gettime(CLOCK_REALTIME, &now);
	*ret = NOT_STORED;
	ret->shelf = shelf;
	strftime(stamp, sizeof(stamp), STAMP, gmtime_r(&now.tv_sec, &parts));
	ret->name = format_text("%s.%03ldZ-%s-%d", stamp, now.tv_nsec / 1000000, name, process);
	ret->folder = format_text("%s/" INCOMPLETE "XXXXXX", shelf->folder);
	TRY_MEMORY(ret->name && ret->folder);
	make_harmless(ret->name);
	if (!mkdtemp(ret->folder)) {
		free(take(ret->folder));
		return error_system("%s", shelf->folder);
	}
	ret->lock = open(ret->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ret->lock < 0 || flock(ret->lock, LOCK_EX | LOCK_NB) < 0)
		return error_system("%s", ret->folder);
	return NULL;
}

struct error *stored_write_reason(const struct stored *stored, json_t *reason)
{
	_cleanup_(free) char *path = stored_path(stored, "reason.json");
	int failed;

	TRY_MEMORY(path && reason);
	failed = json_dump_file(reason, path, JSON_INDENT(1));
	json_decref(reason);
	return failed < 0 ? error_system("%s", path) : NULL;
}

struct error *stored_complete(struct stored *stored)
{
	char *path = format_text("%s/%s", stored->shelf->folder, stored->name);

	TRY_MEMORY(path);
	if (rename(stored->folder, path) < 0) {
		free(path);
		return error_system("%s", stored->folder);
	}
	free(stored->folder);
	stored->folder = path;
	stored->has_name = true;
	return NULL;
}

struct error *stored_publish(const struct stored *stored)
{
	const char *folder = stored->shelf->folder;
	_cleanup_(free) char *link = format_text("%s/latest", folder);
	_cleanup_(free) char *made = format_text("%s/" INCOMPLETE "latest", folder);
	struct stat status;

	TRY_MEMORY(link && made);
	/* Somebody's own is left alone. */
	if (lstat(link, &status) == 0 && !S_ISLNK(status.st_mode))
		return NULL;
	unlink(made);
	if (symlink(strrchr(stored->folder, '/') + 1, made) < 0 || rename(made, link) < 0)
		return error_system("%s", link);
	return NULL;
}

void stored_deinit(struct stored *stored)
{
	if (stored->folder && !stored->has_name)
		visit_files(stored->folder, true);
	if (stored->lock >= 0)
		close(stored->lock);
	free(stored->folder);
	free(stored->name);
}

char *stored_path(const struct stored *stored, const char *file)
{
	return format_text("%s/%s", stored->folder, file);
}

char *stored_previous(const struct stored *stored, pid_t process)
{
	static const char *const cores[] = { "core", "core.zst" };
	const char *own = strrchr(stored->folder, '/') + 1;
	_cleanup_(names_deinit) struct names names = list_names(stored->shelf->folder, is_stored);
	_cleanup_(free) char *ending = format_text("-%d", process);

	for (int i = names.count - 1; i >= 0 && ending; i--) {
		const char *name = names.list[i]->d_name;
		size_t length = strlen(name);

		if (strcmp(name, own) >= 0 || length < strlen(ending) ||
		    strncmp(name + length - strlen(ending), ending, strlen(ending)) != 0)
			continue;
		for (size_t k = 0; k < COUNT_OF(cores); k++) {
			char *path = format_text("%s/%s/%s", stored->shelf->folder, name, cores[k]);

			if (path && access(path, R_OK) == 0)
				return path;
			free(path);
		}
	}
	return NULL;
}
