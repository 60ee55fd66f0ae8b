#include "analyzer/base/cache.h"

#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/base/temporary.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
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

/* It stands behind the content of an entry that is a file. */
struct seal {
	char magic[16];
	struct cache_key key;
	uint64_t size, hash; /* of the content */
};

static bool make_seal(int fd, const struct cache_key *key, uint64_t size, struct seal *ret)
{
	void *bytes = size > 0 ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;

	if (bytes == MAP_FAILED)
		return false;
	*ret = (struct seal){ "heapcore file", *key, size, XXH3_64bits(bytes, size) };
	munmap(bytes, size);
	return true;
}

static bool is_sealed(int fd, const struct cache_key *key)
{
	struct seal found, right;
	struct stat status;
	uint64_t size;

	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
	    (status.st_mode & (S_IWGRP | S_IWOTH)) || status.st_size < (off_t)sizeof(found) ||
	    (uint64_t)status.st_size > MOST_ENTRY + sizeof(found))
		return false;
	size = (uint64_t)status.st_size - sizeof(found);
	return pread(fd, &found, sizeof(found), (off_t)size) == sizeof(found) &&
	       found.size == size && make_seal(fd, key, size, &right) &&
	       memcmp(&found, &right, sizeof(found)) == 0;
}

int cache_find_file(const char *folder, const struct cache_key *key)
{
	_cleanup_(free) char *path = folder && is_own(folder) ? path_of(folder, key) : NULL;
	_cleanup_(close) int fd =
		path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
	int found = fd;

	if (fd < 0 || !is_sealed(fd, key))
		return -1;
	note_use(path);
	fd = -1;
	return found;
}

int cache_begin_file(const char *folder, const struct cache_key *key, struct cache_draft *ret)
{
	int fd = -1;

	*ret = (struct cache_draft){ NULL };
	if (!folder)
		return -1;
	make_folder(folder, 2);
	ret->path = is_own(folder) ? path_of(folder, key) : NULL;
	if (ret->path && asprintf(&ret->unfinished, "%s.XXXXXX", ret->path) < 0)
		ret->unfinished = NULL;
	if (ret->unfinished)
		fd = mkostemp(ret->unfinished, O_CLOEXEC);
	if (fd < 0) {
		free(ret->path);
		free(ret->unfinished);
		*ret = (struct cache_draft){ NULL };
	}
	return fd;
}

static bool put_seal(int fd, const struct cache_key *key)
{
	struct stat status;
	struct seal seal;

	return fstat(fd, &status) == 0 && (uint64_t)status.st_size <= cache_largest_file() &&
	       make_seal(fd, key, (uint64_t)status.st_size, &seal) &&
	       write_fully(fd, &seal, sizeof(seal), seal.size);
}

void cache_end_file(struct cache_draft *draft, const struct cache_key *key, int fd, bool whole)
{
	char *slash = draft->path ? strrchr(draft->path, '/') : NULL;

	if (!slash)
		return;
	if (!whole || !put_seal(fd, key) || rename(draft->unfinished, draft->path) < 0)
		unlink(draft->unfinished);
	*slash = '\0';
	make_room(draft->path);
	free(draft->path);
	free(draft->unfinished);
	*draft = (struct cache_draft){ NULL };
}

uint64_t cache_largest_file(void)
{
	return MOST_ENTRY;
}
