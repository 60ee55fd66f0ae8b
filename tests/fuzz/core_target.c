#include "tests/fuzz/core_target.h"

#include "analyzer/base/list.h"
#include "cli/prompt/execute.h"

#include <sched.h>
#include <string.h>

void core_target_settle(void)
{
	cpu_set_t set;
	int processor = sched_getcpu();

	CPU_ZERO(&set);
	CPU_SET(processor < 0 ? 0 : processor, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

void core_target_init(struct core_target *target, const char *const *names)
{
	core_target_settle();
	for (size_t i = 0; names[i]; i++) {
		if (!LIST_GROW(target->files, target->count))
			abort();
		edited_core_open(&target->files[target->count++], names[i]);
	}
}

void core_target_run(struct core_target *target, const uint8_t *bytes, size_t size,
		     void (*look)(const char *path, unsigned int choice))
{
	struct edited_file *file;

	if (size < CORE_TARGET_HEAD)
		return;
	file = &target->files[bytes[0] % target->count];
	edits_make(file, bytes + CORE_TARGET_HEAD, size - CORE_TARGET_HEAD);
	look(file->path, bytes[1] | (unsigned int)bytes[2] << 8 | (unsigned int)bytes[3] << 16);
	edits_undo(file);
}

void core_target_need(const char *path, enum stage stage)
{
	const struct debug_options options = { .sysroot = "/nonexistent" };
	struct progress progress = { .task = NULL };
	_cleanup_(analysis_destroy) struct analysis *analysis = NULL;
	struct error *error = analysis_create(path, &options, &progress, &analysis);

	if (!error)
		error = analysis_need(analysis, stage);
	if (error)
		error_destroy(error);
}

void core_target_ask(const char *path, const char *const *lines)
{
	core_target_ask_in(path, "/nonexistent", lines);
}

void core_target_ask_in(const char *path, const char *root, const char *const *lines)
{
	const struct debug_options options = { .sysroot = root };
	_cleanup_(session_deinit) struct session session;
	struct error *error;

	session_init(&session, true);
	session.debug = &options;
	error = session_open(&session, path);
	if (error) {
		session_complain(&session, error);
		return;
	}
	session_show_findings(&session);
	for (size_t i = 0; lines[i]; i++)
		execute_line(&session, lines[i]);
	fflush(stdout);
}
