#include "cli/watch/look.h"

#include "analyzer/base/text.h"
#include "analyzer/capture/snapshot.h"
#include "cli/live/process_root.h"
#include "cli/live/snap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/* True if what this process uses counts against the limit. */
static bool shares_limit(const struct group_limit *limit)
{
	struct group_limit own;
	struct stat one, other;

	return limit && group_limit_of(getpid(), GROUP_MEMORY, &own) &&
	       stat(own.folder, &one) == 0 && stat(limit->folder, &other) == 0 &&
	       one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

struct error *look_obstacle(const char *folder, const struct group_limit *limit)
{
	struct statfs system;

	if (statfs(folder, &system) < 0)
		return error_system("%s", folder);
	if ((system.f_type != TMPFS_MAGIC && system.f_type != RAMFS_MAGIC) || !shares_limit(limit))
		return NULL;
	return error_create(
		ERROR_NOT_SUPPORTED,
		"%s is in memory (tmpfs) that counts against the limit of the process: the core would bring the kill. Name a folder on a disk",
		folder);
}

/* Prepare a copy or a clone, if there is time. */
static enum clone_choice choose(const struct look *look)
{
	/* Bytes a second, and seconds for the rest. */
	static const double RATE = 500e6, REST = 2;

	return look->seconds >= 0 &&
			       look->seconds < REST + (double)anonymous_memory(look->process) / RATE
		       ? STOP_AT_ONCE
		       : CLONE_BY_NEED;
}

/*
 * The one place that decides how a core is written. It can be read elsewhere, as its process may
 * soon be gone with its files.
 */
static struct error *write_core(const struct look *look, int fd, struct session *session,
				struct snapshot *ret)
{
	struct core_options options = {
		.fd = fd,
		.portable = true,
		.progress = &session->progress.progress,
	};
	struct error *error = snapshot_take(look->process, &options, choose(look), ret), *again;

	if (!error || error_code(error) == ERROR_USAGE || session_interrupted(session) ||
	    anonymous_memory(look->process) == 0)
		return error;
	/* As if its clone was killed, which takes what is in the file. */
	if (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return error;
	again = snapshot_take(look->process, &options, STOP_AT_ONCE, ret);
	if (again) {
		error_destroy(again);
		return error;
	}
	error_destroy(error);
	return NULL;
}

static struct error *write_reason(const struct stored *stored, const struct look *look,
				  const char *name, const struct snapshot *snapshot)
{
	return stored_write_reason(
		stored, json_pack("{s:s, s:i, s:s, s:s, s:I, s:I, s:f, s:b, s:s}", "cause",
				  look->cause, "process", look->process, "name", name, "limited_by",
				  look->meter, "used", (json_int_t)look->used, "limit",
				  (json_int_t)look->most, "stopped_seconds", snapshot->stopped,
				  "cloned", snapshot->cloned, "not_cloned", snapshot->not_cloned));
}

static void tell(struct session *session, const struct stored *stored, const struct look *look,
		 const struct snapshot *snapshot)
{
	char used[NUMBER_SIZE], most[NUMBER_SIZE];

	session_note(session, "%s: %s, %s%s%s in use; the process was stopped for %.3f s",
		     stored->folder, look->cause, in_largest_unit(look->used, used),
		     look->most ? " of " : "", look->most ? in_largest_unit(look->most, most) : "",
		     snapshot->stopped);
	snap_tell_gaps(session, &snapshot->sizes);
}

static struct error *take_core(struct session *session, const struct look *look, const char *name,
			       struct stored *stored)
{
	_cleanup_(free) char *path = stored_path(stored, "core");
	_cleanup_(close) int fd = -1;
	struct snapshot snapshot = { 0 };

	TRY_MEMORY(path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_system("%s", path);
	TRY(write_core(look, fd, session, &snapshot));
	/* Pages that are on disk can be given up at once, should memory be short. */
	sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	TRY(write_reason(stored, look, name, &snapshot));
	TRY(stored_complete(stored));
	tell(session, stored, look, &snapshot);
	return NULL;
}

/* Less than all that is left, where that is the process's as well. */
static size_t memory_to_analyse(const struct look *look)
{
	struct group_limit own;
	size_t most = machine_memory();

	if (shares_limit(look->limit) && group_limit_of(getpid(), GROUP_MEMORY, &own) &&
	    group_left(&own) / 2 < most)
		most = group_left(&own) / 2 + 1;
	return most;
}

struct error *look_into(struct session *session, const struct keeping *keeping,
			const struct look *look)
{
	_cleanup_(stored_deinit) struct stored stored = NOT_STORED;
	const struct shelf *shelf = &keeping->shelf;
	struct answers_options options = keeping->answers;
	char name[TARGET_NAME_SIZE], root[PROCESS_ROOT_SIZE];
	struct stored_process process = { look->process, name, look->cause };
	_cleanup_(close) int root_file = process_root_open(look->process, root);

	if (root_file >= 0 && !options.debug.sysroot)
		options.debug.sysroot = root;
	if (!options.maximum_memory)
		options.maximum_memory = memory_to_analyse(look);
	TRY(look_obstacle(shelf->folder, look->limit));
	/* As much as it has in memory; the rest of the core are holes. */
	TRY(shelf_make_room(shelf, anonymous_memory(look->process)));
	target_name(look->process, name);
	make_printable(name);
	TRY(shelf_begin(shelf, name, look->process, &stored));
	TRY(take_core(session, look, name, &stored));
	return answers_write(session, &options, &stored, &process);
}
