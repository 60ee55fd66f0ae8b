#include "analyzer/capture/tasks.h"

#include "analyzer/base/list.h"
#include "analyzer/capture/process.h"

#include <string.h>

void tasks_deinit(struct tasks *tasks)
{
	free(tasks->tasks);
	free(tasks->processes);
}

/* From the back: what is asked for is mostly young. */
struct task *tasks_find(struct tasks *tasks, pid_t id)
{
	for (size_t i = tasks->count; i-- > 0;)
		if (tasks->tasks[i].id == id)
			return &tasks->tasks[i];
	return NULL;
}

struct traced_process *tasks_find_process(struct tasks *tasks, pid_t id)
{
	for (size_t i = tasks->process_count; i-- > 0;)
		if (tasks->processes[i].id == id)
			return &tasks->processes[i];
	return NULL;
}

static bool add_process(struct tasks *tasks, pid_t id)
{
	if (tasks_find_process(tasks, id))
		return true;
	if (!LIST_GROW(tasks->processes, tasks->process_count))
		return false;
	tasks->processes[tasks->process_count++] = (struct traced_process){ .id = id };
	return true;
}

static struct task *add(struct tasks *tasks, pid_t id, pid_t process)
{
	if (process == 0 || !add_process(tasks, process) || !LIST_GROW(tasks->tasks, tasks->count))
		return NULL;
	tasks->tasks[tasks->count] = (struct task){ .id = id, .process = process };
	return &tasks->tasks[tasks->count++];
}

struct task *tasks_add(struct tasks *tasks, pid_t id)
{
	struct task *known = tasks_find(tasks, id);

	return known ? known : add(tasks, id, (pid_t)process_status(id, "Tgid", 10, 0));
}

struct task *tasks_add_process(struct tasks *tasks, pid_t id)
{
	struct task *known = tasks_find(tasks, id);

	return known ? known : add(tasks, id, id);
}

static void remove_process(struct tasks *tasks, pid_t id)
{
	struct traced_process *process = tasks_find_process(tasks, id);
	size_t kept = 0;

	for (size_t i = 0; i < tasks->count; i++)
		if (tasks->tasks[i].process != id)
			tasks->tasks[kept++] = tasks->tasks[i];
	tasks->count = kept;
	if (process)
		*process = tasks->processes[--tasks->process_count];
}

void tasks_remove(struct tasks *tasks, pid_t id)
{
	struct task *task = tasks_find(tasks, id);

	if (!task)
		return;
	if (task->process == id)
		remove_process(tasks, id);
	else
		*task = tasks->tasks[--tasks->count];
}

static size_t count(const struct tasks *tasks, pid_t process, bool also_stopped)
{
	size_t found = 0;

	for (size_t i = 0; i < tasks->count; i++) {
		const struct task *task = &tasks->tasks[i];

		found += task->process == process && !task->exiting &&
			 (also_stopped || !task->stopped);
	}
	return found;
}

size_t tasks_alive(const struct tasks *tasks, pid_t process)
{
	return count(tasks, process, true);
}

size_t tasks_on_the_run(const struct tasks *tasks, pid_t process)
{
	return count(tasks, process, false);
}
