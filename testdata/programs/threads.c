/*
 * Threads that live, each holding blocks by its stack, its thread-local storage and static
 * variables, with its thread cache full of freed blocks; and threads that have finished, joined and
 * detached, whose blocks stay behind in their arenas.
 *
 * All threads are started before any block is freed, as pthread_create() allocates too, and take
 * turns, as blocks move between them. None finishes before all blocks are handed out: what libc
 * frees then leaves traces in the thread's stack, which stays mapped. The stacks are small, as libc
 * unmaps the oldest when they are too many.
 *
 * With an argument, the process forks, and the child tells what became of all this: it has the
 * memory of all threads, and one thread.
 */

#include "truth.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIVING = 5, JOINED = 3, DETACHED = 3, ALL = LIVING + JOINED + DETACHED };
enum { BLOCKS = 600, ON_STACK = 8, CACHED = 7, HANDED_OVER = 50 };
enum { STACK_SIZE = 256 << 10 };

/* The last row is the main thread's. */
static void *volatile held[ALL + 1][BLOCKS];
static void *volatile handed_over[ALL][HANDED_OVER];
static __thread void *volatile thread_local_blocks[4];

static atomic_int started;
static atomic_int turn;
static atomic_bool may_finish;
static atomic_int system_ids[ALL];

static OUT_OF_LINE void populate(size_t thread)
{
	uint32_t random = (uint32_t)thread;
	void *blocks_to_free[BLOCKS] = { NULL };
	void *lost = NULL;

	for (size_t i = 0; i < BLOCKS; i++) {
		void *block = truth_block(truth_random(&random, 3000));

		switch (truth_random(&random, 3)) {
		case 0:
			truth_lost(block);
			*truth_last_word(block) = lost;
			lost = block;
			break;
		case 1:
			truth_kept(block);
			held[thread][i] = block;
			break;
		default:
			blocks_to_free[i] = block;
		}
	}
	for (size_t i = 0; i < BLOCKS; i++)
		if (blocks_to_free[i])
			truth_free(blocks_to_free[i]);
}

/* Free what the thread before allocated, in another arena, and leave some. */
static OUT_OF_LINE void trade(size_t thread)
{
	for (size_t i = 0; i < HANDED_OVER; i++) {
		handed_over[thread][i] = truth_block(24 + 8 * i);
		if (thread > 0) {
			truth_free(handed_over[thread - 1][i]);
			handed_over[thread - 1][i] = NULL;
		}
		if (thread == ALL - 1)
			truth_kept(handed_over[thread][i]);
	}
}

static OUT_OF_LINE void fill_cache(void)
{
	void *blocks[64][CACHED];

	for (size_t i = 0; i < 64; i++)
		for (size_t j = 0; j < CACHED; j++)
			blocks[i][j] = truth_block(16 * i + 8);
	for (size_t i = 0; i < 64; i++)
		for (size_t j = 0; j < CACHED; j++)
			truth_free(blocks[i][j]);
}

static OUT_OF_LINE void populate_thread(void *volatile *frame)
{
	for (size_t i = 0; i < ON_STACK; i++) {
		frame[i] = truth_block(100 * i);
		truth_kept(frame[i]);
	}
	for (size_t i = 0; i < 4; i++) {
		thread_local_blocks[i] = truth_block(30 + i);
		truth_kept(thread_local_blocks[i]);
	}
}

/* The thread's arena, too, is to be there before anything is freed. */
static OUT_OF_LINE void warm_up(size_t thread)
{
	truth_warm_up();
	system_ids[thread] = (int)syscall(SYS_gettid);
	atomic_fetch_add(&started, 1);
	while (atomic_load(&turn) != (int)thread)
		sched_yield();
}

static OUT_OF_LINE void live(size_t thread, void *volatile *frame)
{
	warm_up(thread);
	populate_thread(frame);
	populate(thread);
	trade(thread);
	fill_cache();
	atomic_fetch_add(&turn, 1);
}

static void *living_thread(void *argument)
{
	void *volatile frame[ON_STACK];

	live((size_t)argument, frame);
	truth_rest();
}

static OUT_OF_LINE void live_and_die(size_t thread)
{
	warm_up(thread);
	populate(thread);
	trade(thread);
}

static void *finishing_thread(void *argument)
{
	live_and_die((size_t)argument);
	truth_scrub();
	atomic_fetch_add(&turn, 1);
	while (!atomic_load(&may_finish))
		sched_yield();
	return NULL;
}

/* For a detached thread there is no other way to wait. */
static OUT_OF_LINE void await_end(size_t thread)
{
	while (syscall(SYS_tgkill, getpid(), system_ids[thread], 0) == 0 || errno != ESRCH)
		sched_yield();
}

static OUT_OF_LINE void run_threads(void)
{
	pthread_attr_t attributes;
	pthread_t threads[ALL];

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_SIZE);
	for (size_t i = 0; i < ALL; i++)
		if (pthread_create(&threads[i], &attributes,
				   i < LIVING ? living_thread : finishing_thread, (void *)i))
			truth_fail("create a thread");
	for (size_t i = LIVING + JOINED; i < ALL; i++)
		pthread_detach(threads[i]);
	while (atomic_load(&started) < ALL)
		sched_yield();

	atomic_store(&turn, 0);
	while (atomic_load(&turn) < ALL)
		sched_yield();
	populate(ALL);
	atomic_store(&may_finish, true);
	for (size_t i = LIVING; i < LIVING + JOINED; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = LIVING; i < ALL; i++)
		await_end(i);
	truth_await(LIVING);
}

/* Goes on in the child. */
static OUT_OF_LINE void go_on_in_child(void)
{
	pid_t parent = getpid(), child = fork();

	if (child < 0)
		truth_fail("fork");
	if (child > 0) {
		waitpid(child, NULL, 0);
		_exit(0);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
}

int main(int argc, char **argv)
{
	truth_open();
	truth_warm_up();
	atomic_store(&turn, -1);
	run_threads();
	if (argc > 1 && argv[1])
		go_on_in_child();
	truth_ready();
}
