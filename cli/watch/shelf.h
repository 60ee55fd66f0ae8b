/*
 * The folder in which `heapcore watch` and `receive` leave what they find:
 *
 *	DIR/20261128T213410.123Z-shop-4711/
 *		core	      the memory; or core.zst, without its contents
 *		reason.json   when, why, of which process
 *		screen.txt    the first screen; screen.json has its numbers
 *		leaks.txt     what leaked, by kind
 *		growth.txt    since the one before of that process; growth.json has its numbers
 *		messages.txt  what heapcore has to say about these answers
 *	DIR/latest	      leads to the newest
 *	DIR/metrics.prom      numbers of the newest, for scrapers
 *
 * A folder has its name once its core is complete. The oldest make room for new ones; nothing else
 * in DIR is touched.
 */
#pragma once

#include "analyzer/base/cleanup.h"
#include "analyzer/base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct shelf {
	const char *folder;
	uint64_t room;	 /* bytes of all; 0: no limit */
	uint64_t keep;	 /* ns, after which one goes; 0: no limit */
	uint64_t hourly; /* at most so many in an hour; 0: no limit */
};

struct stored {
	const struct shelf *shelf;
	char *name;   /* below the shelf's folder; owned */
	char *folder; /* where it is now; owned */
	int lock; /* held until it is released: no other heapcore takes it for a rest, nor its room
		   */
	bool has_name;
};

/* Make the folder if there is none, and remove what others that ended left incomplete. */
struct error *shelf_open(const struct shelf *shelf);

/* True if as many as may be were stored within the last hour. */
bool shelf_is_full(const struct shelf *shelf);

/*
 * Remove what is too old, and then the oldest until there is room for size bytes more, on the disk
 * as well; but what another heapcore still analyses stays. Fails, with nothing removed for it, if
 * there cannot be.
 */
struct error *shelf_make_room(const struct shelf *shelf, uint64_t size);

/* Bytes of the disk that may still be used. */
uint64_t shelf_free_space(const struct shelf *shelf);

/* Replace all but printable ASCII: a process chooses its name. */
void make_printable(char *text);

/* Begin a folder for a process of that name. */
struct error *shelf_begin(const struct shelf *shelf, const char *name, pid_t process,
			  struct stored *ret);

/* Write reason.json; reason is taken over, and may be NULL: memory was short. */
struct error *stored_write_reason(const struct stored *stored, json_t *reason);

/* Give it its name. */
struct error *stored_complete(struct stored *stored);

/* All answers are in it: `latest` leads to it. */
struct error *stored_publish(const struct stored *stored);

/* Remove it if it was not completed. */
void stored_deinit(struct stored *stored);
DEFINE_DEINIT(stored_deinit, struct stored)

#define NOT_STORED ((struct stored){ .lock = -1 })

/* The path of a file in it, to be freed. */
char *stored_path(const struct stored *stored, const char *file);

/* The newest core of the same process that was stored before it, to be freed; NULL: none. */
char *stored_previous(const struct stored *stored, pid_t process);
