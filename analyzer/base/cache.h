/*
 * A folder that keeps what is the same for every core of one build, such as what its machine code
 * says, so that the next core need not work it out again.
 *
 * An entry is a side file (side_file.h) that is named by its key: a hash of all that it was made
 * from. So an entry is never updated, and another build, or another heapcore, has other entries.
 * Several processes may find and keep at once: a file appears as a whole or not at all. When the
 * folder becomes too large, the entries that were used least recently go.
 *
 * It never matters whether there is one: whatever goes wrong, there is no entry.
 *
 *	struct cache_key key = cache_key_begin("casts");
 *
 *	cache_key_add(&key, build_id, size);
 *	file = cache_find(folder, &key);
 *	if (file)
 *		load and check its arrays
 *	else
 *		cache_keep(folder, &key, save, casts);
 */
#pragma once

#include "analyzer/base/side_file.h"

struct cache_key {
	uint64_t words[2];
};

/* Begin the key of an entry of that kind; it depends on this build of heapcore. */
struct cache_key cache_key_begin(const char *kind);
void cache_key_add(struct cache_key *key, const void *bytes, size_t size);

/*
 * The entry of that key, or NULL. A folder that is another user's, or that others may write to, is
 * not used. It may be NULL: then there is none.
 */
struct side_file *cache_find(const char *folder, const struct cache_key *key);

/*
 * Keep an entry, whose arrays save() adds. An error of save() means that there is to be none. The
 * folder is made if it is missing, and the one around it, but only in a folder of the user: who
 * became root leaves nothing in another's.
 */
void cache_keep(const char *folder, const struct cache_key *key,
		struct error *(*save)(const void *data, struct side_writer *writer),
		const void *data);

/*
 * Entries that are files as they are, for who must hand a file on: behind the content stands a
 * seal, which tells damage. Their keys need not depend on this build of heapcore.
 *
 * Returns the file, to be read only, or -1.
 */
int cache_find_file(const char *folder, const struct cache_key *key);

/* An entry that is being written. */
struct cache_draft {
	char *path, *unfinished; /* NULL: there is no entry */
};

/* Begin one: an empty file to be read and written, or -1. cache_end_file() must follow. */
int cache_begin_file(const char *folder, const struct cache_key *key, struct cache_draft *ret);

/* Keep what was written, if it is whole; fd can be read in either case, and is the caller's. */
void cache_end_file(struct cache_draft *draft, const struct cache_key *key, int fd, bool whole);

/* More than this is not kept. */
uint64_t cache_largest_file(void);
