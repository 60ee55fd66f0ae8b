/*
 * Calls of a thread that is held and let go: they wait on, unless a signal came.
 */
#include "analyzer/capture/threads.h"
#include "tests/assertions.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* A process that waits in epoll_wait(), and then tells what it gave. */
struct child {
	pid_t id;
	int end_wait[2]; /* a byte ends the wait */
	int results[2];
};

static void do_nothing(int number)
{
}

static void wait_and_tell(const struct child *child)
{
	struct sigaction action = { .sa_handler = do_nothing };
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(0), result;

	sigaction(SIGUSR1, &action, NULL);
	epoll_ctl(epoll, EPOLL_CTL_ADD, child->end_wait[0], &event);
	result = syscall(SYS_epoll_wait, epoll, &event, 1, -1) < 0 ? errno : 0;
	if (write(child->results[1], &result, sizeof(result)) < 0)
		_exit(1);
	_exit(0);
}

static bool is_in_call(pid_t process)
{
	long number = -1;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/syscall", process);
	file = fopen(path, "r");
	assert_non_null(file);
	if (fscanf(file, "%ld", &number) != 1)
		number = -1;
	fclose(file);
	return number == SYS_epoll_wait;
}

static void child_start(struct child *child)
{
	assert_int_equal(pipe(child->end_wait), 0);
	assert_int_equal(pipe(child->results), 0);
	child->id = fork();
	assert_true(child->id >= 0);
	if (child->id == 0)
		wait_and_tell(child);
	while (!is_in_call(child->id))
		usleep(1000);
}

/* The result of the child's call, an errno or 0. */
static int child_end(struct child *child)
{
	int result = -1;

	assert_true(write(child->end_wait[1], "x", 1) == 1);
	assert_int_equal(read(child->results[0], &result, sizeof(result)), sizeof(result));
	assert_int_equal(waitpid(child->id, NULL, 0), child->id);
	for (size_t i = 0; i < 2; i++) {
		close(child->end_wait[i]);
		close(child->results[i]);
	}
	return result;
}

static void hold(const struct child *child, struct held_process *ret)
{
	static const struct progress progress = { 0 };
	struct error *error = process_hold(child->id, &progress, ret);

	if (error && error_code(error) == ERROR_NOT_SUPPORTED) {
		error_destroy(error);
		kill(child->id, SIGKILL);
		skip();
	}
	assert_no_error(error);
}

TEST(a_call_waits_on_after_the_hold)
{
	struct held_process held;
	struct child child;

	child_start(&child);
	for (size_t i = 0; i < 3; i++) {
		hold(&child, &held);
		process_release(&held);
	}
	assert_int_equal(child_end(&child), 0);
}

TEST(a_signal_during_the_hold_ends_the_call)
{
	struct held_process held;
	struct child child;

	child_start(&child);
	hold(&child, &held);
	kill(child.id, SIGUSR1);
	process_release(&held);
	assert_int_equal(child_end(&child), EINTR);
}

TEST(a_signal_before_the_hold_ends_the_call)
{
	struct held_process held;
	struct child child;

	child_start(&child);
	kill(child.id, SIGSTOP);
	assert_int_equal(waitpid(child.id, NULL, WUNTRACED), child.id);
	kill(child.id, SIGUSR1);
	hold(&child, &held);
	process_release(&held);
	kill(child.id, SIGCONT);
	assert_int_equal(child_end(&child), EINTR);
}
