#include "analyzer/program/debug/package.h"

#include "analyzer/base/cleanup.h"
#include "analyzer/base/text.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char SUFFIX[] = ".list";

static void close_folder(DIR *folder)
{
	closedir(folder);
}
DEFINE_CLEANUP(close_folder, DIR *)

static bool ends_with(const char *text, const char *end)
{
	size_t size = strlen(text), length = strlen(end);

	return size > length && strcmp(text + size - length, end) == 0;
}

/* True if the file has one of the lines. */
static bool has_line(int folder, const char *name, const char *const lines[2])
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	_cleanup_(fclose) FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	_cleanup_(free) char *text = NULL;
	size_t room = 0;

	return file && getdelim(&text, &room, '\0', file) > 0 &&
	       (strstr(text, lines[0]) || strstr(text, lines[1]));
}

/* The package of a list with that file name: "libfoo1:amd64.list", "redis.list". */
static char *name_package(const char *list)
{
	size_t length = strlen(list) - strlen(SUFFIX), bare = strcspn(list, ":");

	return format_text("%.*s-dbgsym", (int)MIN(bare, length), list);
}

char *debug_package_of(const char *sysroot, const char *path)
{
	static const char usr[] = "/usr";
	_cleanup_(free) char *lists = format_text("%s/var/lib/dpkg/info", sysroot ? sysroot : "");
	_cleanup_(free) char *line = format_text("\n%s\n", path);
	/* If /bin is a link to /usr/bin, a list may have the old path. */
	_cleanup_(free) char *old = format_text(
		"\n%s\n", path + (strncmp(path, usr, strlen(usr)) == 0 ? strlen(usr) : 0));
	_cleanup_(close_folder) DIR *folder = lists ? opendir(lists) : NULL;
	const struct dirent *entry;

	if (!folder || !line || !old)
		return NULL;
	while ((entry = readdir(folder)))
		if (ends_with(entry->d_name, SUFFIX) &&
		    has_line(dirfd(folder), entry->d_name, (const char *const[]){ line, old }))
			return name_package(entry->d_name);
	return NULL;
}
