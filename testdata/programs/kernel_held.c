/*
 * Blocks held by nothing that a heap, a stack or a static variable tells of:
 *
 *	file PATH	words of a shared mapping of that file
 *	reads PATH	none: it maps that file to read it only
 *	no-rights	words of memory that was made unreadable since
 *	epoll		the data of what an epoll instance watches
 *	timer		the value of signals that timers will send
 *	signal		the value of signals that are sent, but blocked
 *	ring		requests of an io_uring that wait for their end
 *	full-ring	the same, and of one whose array was used again since
 *	stack		the kernel alone, as a thread's stack for signals
 *	stack thread	the same, of two threads
 *	many-stacks	one like that, beside which others of its size are lost
 *	stack-changes	the same in a child; its parent has given it back
 *
 * Beside them each loses one block.
 */

#include "truth.h"

#include <linux/io_uring.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BLOCKS = 4, PAGE = 4096, RINGS = 8, STACK_SIZE = 8192, SKIPPED = 77 };

/* A block that is kept; of such a size no other is. */
static void *keep(void)
{
	void *block = truth_block(100);

	truth_kept(block);
	return block;
}

static OUT_OF_LINE void lose(size_t size)
{
	truth_lost(truth_block(size));
}

static OUT_OF_LINE void hold_in_file(const char *path)
{
	FILE *file = fopen(path, "w+");
	void **words;

	if (!file || ftruncate(fileno(file), 16 * PAGE))
		truth_fail("make the file");
	words = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
	if (words == MAP_FAILED)
		truth_fail("map the file");
	fclose(file);
	for (int i = 0; i < BLOCKS; i++)
		words[1000 * i] = keep();
}

static OUT_OF_LINE void read_file(const char *path)
{
	FILE *file = fopen(path, "r+");
	void *words = MAP_FAILED;

	if (file)
		words = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fileno(file), 0);
	if (words == MAP_FAILED || *(char *)words)
		truth_fail("read the file");
}

static OUT_OF_LINE void hold_without_rights(void)
{
	void **words =
		mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (words == MAP_FAILED)
		truth_fail("map memory");
	for (int i = 0; i < BLOCKS; i++)
		words[100 * i] = keep();
	mprotect(words, 4 * PAGE, PROT_NONE);
}

static OUT_OF_LINE void hold_by_epoll(void)
{
	int poll = epoll_create1(0);

	for (int i = 0; i < BLOCKS; i++) {
		struct epoll_event event = { .events = EPOLLIN };

		event.data.ptr = keep();
		if (epoll_ctl(poll, EPOLL_CTL_ADD, eventfd(0, 0), &event))
			truth_fail("watch a file");
	}
}

static OUT_OF_LINE void hold_by_timers(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		struct itimerspec hour = { .it_value.tv_sec = 3600 };
		struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
		timer_t timer;

		event.sigev_value.sival_ptr = keep();
		if (timer_create(CLOCK_MONOTONIC, &event, &timer) ||
		    timer_settime(timer, 0, &hour, NULL))
			truth_fail("create a timer");
	}
}

static OUT_OF_LINE void hold_by_signals(void)
{
	sigset_t blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	for (int i = 0; i < BLOCKS; i++)
		sigqueue(getpid(), SIGRTMIN, (union sigval){ .sival_ptr = keep() });
}

/* A ring, and where its parts are. */
struct ring {
	int file;
	char *head;
	struct io_uring_sqe *requests;
	struct io_uring_params layout;
};

static uint32_t *ring_word(struct ring *ring, uint32_t offset)
{
	return (uint32_t *)(ring->head + offset);
}

static void ring_open(struct ring *ring)
{
	*ring = (struct ring){ 0 };
	ring->file = (int)syscall(SYS_io_uring_setup, RINGS, &ring->layout);
	if (ring->file < 0)
		exit(SKIPPED);
	ring->head = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ring->file,
			  IORING_OFF_SQ_RING);
	ring->requests =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ring->file, IORING_OFF_SQES);
	if (ring->head == MAP_FAILED || ring->requests == MAP_FAILED)
		exit(SKIPPED);
}

static void ring_submit(struct ring *ring, struct io_uring_sqe request)
{
	uint32_t tail = *ring_word(ring, ring->layout.sq_off.tail);
	uint32_t slot = tail % RINGS;

	ring->requests[slot] = request;
	ring_word(ring, ring->layout.sq_off.array)[slot] = slot;
	__atomic_store_n(ring_word(ring, ring->layout.sq_off.tail), tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring->file, 1, 0, 0, NULL, 0) != 1)
		truth_fail("submit a request");
}

/* Take what is done from the ring. */
static void ring_drain(struct ring *ring)
{
	*ring_word(ring, ring->layout.cq_off.head) = *ring_word(ring, ring->layout.cq_off.tail);
}

/* Requests that end at once, of a block that is then lost. */
static void ring_end(struct ring *ring, int count)
{
	void *block = truth_block(200);

	truth_lost(block);
	for (int i = 0; i < count; i++)
		ring_submit(ring, (struct io_uring_sqe){ .opcode = IORING_OP_NOP,
							 .user_data = (uint64_t)block });
	ring_drain(ring);
}

static OUT_OF_LINE void hold_by_ring(void)
{
	struct ring idle, busy;
	int ends[2];

	ring_open(&idle);
	ring_end(&idle, RINGS / 2);
	ring_open(&busy);
	if (pipe(ends))
		truth_fail("make a pipe");
	for (int i = 0; i < BLOCKS; i++) {
		uint64_t block = (uint64_t)keep();

		/* It reads into a part of the block that it stands for. */
		ring_submit(&busy, (struct io_uring_sqe){ .opcode = IORING_OP_READ,
							  .fd = ends[0],
							  .addr = i % 2 ? block + 16 : 0,
							  .len = i % 2 ? 16 : 0,
							  .user_data = i % 2 ? 1 : block });
	}
}

/* More requests than the ring has room for, of which the first go on. */
static OUT_OF_LINE void hold_by_full_ring(void)
{
	struct ring ring;

	ring_open(&ring);
	hold_by_ring();
	for (int i = 0; i < 3; i++) {
		struct io_uring_sqe request = { .opcode = IORING_OP_POLL_ADD,
						.fd = eventfd(0, 0),
						.poll32_events = EPOLLIN };

		request.user_data = (uint64_t)keep();
		ring_submit(&ring, request);
	}
	for (int i = 0; i < 2 * RINGS; i++)
		ring_submit(&ring, (struct io_uring_sqe){ .opcode = IORING_OP_NOP });
	ring_drain(&ring);
}

static OUT_OF_LINE void take_stack(void)
{
	stack_t stack = { .ss_size = STACK_SIZE };

	stack.ss_sp = truth_block(STACK_SIZE);
	truth_kept(stack.ss_sp);
	if (sigaltstack(&stack, NULL))
		truth_fail("set a stack for signals");
}

/* Each new one takes the place of the one before. */
static OUT_OF_LINE void take_many_stacks(void)
{
	stack_t stack;

	for (int i = 0; i < BLOCKS; i++) {
		take_stack();
		if (i < BLOCKS - 1 && sigaltstack(NULL, &stack) == 0)
			truth_lost(stack.ss_sp);
	}
}

static void *run_thread(void *argument)
{
	take_stack();
	truth_rest();
	return argument;
}

static OUT_OF_LINE void start_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_thread, NULL))
		truth_fail("start a thread");
	truth_await(1);
}

/*
 * The child has the first stack, as the kernel copies it; the parent has taken a second one, which
 * is refused for its size, and then none.
 */
static OUT_OF_LINE void change_stacks(void)
{
	stack_t stack = { .ss_size = 16 };
	int status;
	pid_t child;

	take_stack();
	child = fork();
	if (child == 0)
		return;
	if (child < 0 || waitpid(child, &status, 0) != child)
		truth_fail("have a child");
	stack.ss_sp = truth_block(STACK_SIZE);
	sigaltstack(&stack, NULL);
	stack = (stack_t){ .ss_flags = SS_DISABLE };
	sigaltstack(&stack, NULL);
}

static OUT_OF_LINE void hold(const char *how, const char *path)
{
	if (strcmp(how, "file") == 0)
		hold_in_file(path);
	else if (strcmp(how, "reads") == 0)
		read_file(path);
	else if (strcmp(how, "no-rights") == 0)
		hold_without_rights();
	else if (strcmp(how, "epoll") == 0)
		hold_by_epoll();
	else if (strcmp(how, "timer") == 0)
		hold_by_timers();
	else if (strcmp(how, "signal") == 0)
		hold_by_signals();
	else if (strcmp(how, "ring") == 0)
		hold_by_ring();
	else if (strcmp(how, "full-ring") == 0)
		hold_by_full_ring();
	else if (strcmp(how, "stack") == 0)
		take_stack();
	else if (strcmp(how, "many-stacks") == 0)
		take_many_stacks();
	else if (strcmp(how, "stack-changes") == 0)
		change_stacks();
	else
		truth_fail("hold blocks like that");
}

int main(int count, char **arguments)
{
	truth_open();
	if (count > 1)
		hold(arguments[1], arguments[2]);
	if (count > 2 && strcmp(arguments[1], "stack") == 0)
		start_thread();
	lose(100);
	truth_ready();
}
