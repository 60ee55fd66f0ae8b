#include "analyzer/base/cache.h"

#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <xxhash.h>

DEFINE_CLEANUP(closedir, DIR *)

/* Changes whenever an entry of before would be misread. */
enum { FORMAT = 1 };

enum {
	MOST_BYTES = 256 << 20, /* of all entries */
	MOST_ENTRY = 64 << 20,	/* of one */
	MOST_FILES = 1 << 14,
	USED_AGAIN = 3600, /* seconds, after which a use is noted again */
};

static const char ENDING[] = ".hcc";

/* "0123456789abcdef0123456789abcdef.hcc"; while it is written, six letters follow. */
enum { NAME_SIZE = 32, UNFINISHED = sizeof(".XXXXXX") - 1 };

struct cache_key cache_key_begin(const char *kind)
{
	struct cache_key key = { { FORMAT, side_maker() } };

	cache_key_add(&key, kind, strlen(kind));
	return key;
}

void cache_key_add(struct cache_key *key, const void *bytes, size_t size)
{
	XXH128_hash_t hash = XXH3_128bits_withSeed(bytes, size, key->words[0]);

	key->words[0] = hash.low64;
	key->words[1] = XXH3_64bits_withSeed(&hash, sizeof(hash), key->words[1]);
}

/* True if the folder belongs to the user alone. */
static bool is_own(const char *folder)
{
	struct stat status;

	return lstat(folder, &status) == 0 && S_ISDIR(status.st_mode) &&
	       status.st_uid == geteuid() && !(status.st_mode & (S_IWGRP | S_IWOTH));
}

/* Make a folder, and the one around it, of which both may be missing. */
static void make_folder(const char *folder, unsigned int depth)
{
	const char *slash = strrchr(folder, '/');
	_cleanup_(free) char *around = slash ? strndup(folder, (size_t)(slash - folder)) : NULL;
	struct stat status;

	if (!around || stat(folder, &status) == 0)
		return;
	if (depth > 1)
		make_folder(around, depth - 1);
	if (stat(around, &status) == 0 && status.st_uid == geteuid())
		mkdir(folder, 0700);
}

static char *path_of(const char *folder, const struct cache_key *key)
{
	char *path;

	return asprintf(&path, "%s/%016" PRIx64 "%016" PRIx64 "%s", folder, key->words[0],
			key->words[1], ENDING) < 0
		       ? NULL
		       : path;
}

static struct side_identity identity_of(const struct cache_key *key)
{
	return (struct side_identity){ .dump_size = key->words[0],
				       .dump_hash = key->words[1],
				       .maker = side_maker() };
}

/* Note the use of an entry: the least recently used are removed first. */
static void note_use(const char *path)
{
	struct stat status;

	if (stat(path, &status) == 0 && time(NULL) - status.st_mtime > USED_AGAIN)
		utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
}

struct side_file *cache_find(const char *folder, const struct cache_key *key)
{
	const struct side_identity identity = identity_of(key);
	_cleanup_(free) char *path = folder && is_own(folder) ? path_of(folder, key) : NULL;
	struct side_file *file = NULL;

	if (!path)
		return NULL;
	error_destroy(side_file_open(path, &identity, &file));
	if (file)
		note_use(path);
	return file;
}

struct kept {
	char name[NAME_SIZE + sizeof(ENDING) + UNFINISHED];
	time_t used;
	uint64_t size;
};

struct kept_list {
	struct kept *items;
	size_t count;
};

static void kept_list_deinit(struct kept_list *list)
{
	free(list->items);
}
DEFINE_DEINIT(kept_list_deinit, struct kept_list)

DEFINE_COMPARE(compare_kept, struct kept, ASCENDING(used), ASCENDING(size))

/* True if the file is an entry of a cache. */
static bool is_entry(const char *name)
{
	size_t length = strlen(name);

	return strspn(name, "0123456789abcdef") == NAME_SIZE &&
	       strncmp(name + NAME_SIZE, ENDING, strlen(ENDING)) == 0 &&
	       (length == NAME_SIZE + strlen(ENDING) ||
		length == NAME_SIZE + strlen(ENDING) + UNFINISHED);
}

static bool describe(int folder, const char *name, struct kept *ret)
{
	struct stat status;

	if (!is_entry(name) || fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	memcpy(ret->name, name, strlen(name) + 1);
	ret->used = status.st_mtime;
	ret->size = (uint64_t)status.st_size;
	return true;
}

/* The entries of the folder; returns their bytes. */
static uint64_t list_entries(DIR *list, struct kept_list *ret)
{
	const struct dirent *entry;
	uint64_t total = 0;
	struct kept kept;

	while (ret->count < MOST_FILES && (entry = readdir(list))) {
		if (!describe(dirfd(list), entry->d_name, &kept))
			continue;
		if (LIST_APPEND(ret->items, ret->count, kept))
			break;
		total += kept.size;
	}
	return total;
}

/* If there is too much, remove what was used least recently, until a quarter is free. */
static void make_room(const char *folder)
{
	_cleanup_(closedir) DIR *list = opendir(folder);
	_cleanup_(kept_list_deinit) struct kept_list all = { NULL, 0 };
	uint64_t total = list ? list_entries(list, &all) : 0;
	size_t left = all.count;

	if (total <= MOST_BYTES && left < MOST_FILES)
		return;
	SORT(all.items, all.count, compare_kept);
	list_for_each(kept, all.items, all.count) {
		if (total <= MOST_BYTES / 4 * 3 && left <= MOST_FILES / 4 * 3)
			break;
		unlinkat(dirfd(list), kept->name, 0);
		total -= kept->size;
		left--;
	}
}

void cache_keep(const char *folder, const struct cache_key *key,
		struct error *(*save)(const void *data, struct side_writer *writer),
		const void *data)
{
	const struct side_identity identity = identity_of(key);
	_cleanup_(free) char *path = folder ? path_of(folder, key) : NULL;
	_cleanup_(side_writer_destroy) struct side_writer *writer = NULL;
	struct error *error;

	if (!path)
		return;
	make_folder(folder, 2);
	if (!is_own(folder))
		return;
	error = side_writer_create(path, &writer);
	if (!error)
		error = save(data, writer);
	if (!error && side_writer_size(writer) <= MOST_ENTRY)
		error = side_writer_finish(writer, &identity);
	error_destroy(error);
	make_room(folder);
}
