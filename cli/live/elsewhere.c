/*
 * In place of analyzer/capture and watch.c where heapcore is built without them: it reads cores,
 * but cannot hold processes.
 */
#include "analyzer/capture/snapshot.h"
#include "cli/live/preload.h"
#include "cli/live/watch.h"

static struct error *refuse(void)
{
	return error_create(ERROR_NOT_SUPPORTED,
			    "this heapcore only reads cores: it was built without capture");
}

struct error *snapshot_take(pid_t process, const struct core_options *options,
			    enum clone_choice choice, struct snapshot *ret)
{
	return refuse();
}

bool watch_is_built(void)
{
	return false;
}

struct error *watch_start(const struct watch_options *options, int *ret)
{
	return refuse();
}

bool watch_receive(int socket, struct watch_message *ret)
{
	return false;
}

char *watch_core_path(const char *core_path, pid_t process, bool is_program)
{
	return NULL;
}

struct error *preload_unpack(char **ret)
{
	return refuse();
}

void preload_set(const char *path, const char *sizes)
{
}
