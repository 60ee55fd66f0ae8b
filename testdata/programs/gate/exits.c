/*
 * Ways to end a program while words that nobody uses lead to what it lost: they were left where the
 * frames of exit() are now. And the other way round: what is in use by those that are still there.
 *
 *	exits CASE leak|clean
 */
#define KEEP_STALE
#include "testdata/programs/gate/cases.h"

#include <assert.h>
#include <error.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

/* The frames of those that lose something are gone before the program ends. */
__attribute__((noinline)) static void lose(bool leak, int count)
{
	for (int i = 0; i < count; i++) {
		char *block = malloc(72);

		memset(block, 1, 72);
		leave_stale(block);
		if (!leak)
			free(block);
	}
}

static void by_return(bool leak)
{
	lose(leak, 1);
}

__attribute__((noinline)) static void exit_deep(bool leak, int depth)
{
	char *volatile room[4] = { NULL };

	if (depth == 0) {
		lose(leak, 1);
		exit(0);
	}
	exit_deep(leak, depth - 1);
	(void)room[0];
}

static void by_deep_exit(bool leak)
{
	exit_deep(leak, 6);
}

static void by_exit(bool leak)
{
	lose(leak, 1);
	exit(0);
}

static void by_immediate_exit(bool leak)
{
	lose(leak, 1);
	_exit(0);
}

static void lose_one(void)
{
	lose(true, 1);
}

static void by_quick_exit(bool leak)
{
	if (leak)
		at_quick_exit(lose_one);
	lose(leak, 1);
	quick_exit(0);
}

/* By number: it has no frame of a function that is called exit. */
static void by_system_call(bool leak)
{
	lose(leak, 1);
	syscall(231 /* exit_group */, 0);
}

static void *sleep_and_lose(void *leak)
{
	usleep(1000);
	lose(leak != NULL, 1);
	return NULL;
}

/* The last thread's end is the program's. */
static void by_last_thread(bool leak)
{
	pthread_t thread;

	pthread_create(&thread, NULL, sleep_and_lose, leak ? &thread : NULL);
	pthread_detach(thread);
	lose(leak, 1);
	pthread_exit(NULL);
}

static void *exit_in_thread(void *leak)
{
	lose(leak != NULL, 1);
	exit(0);
}

static void by_thread(bool leak)
{
	pthread_t thread;

	pthread_create(&thread, NULL, exit_in_thread, leak ? &thread : NULL);
	pthread_join(thread, NULL);
}

static void in_handler(bool leak)
{
	if (leak)
		atexit(lose_one);
	lose(leak, 1);
}

/* A handler that ends the program still uses its blocks. */
static void keep_in_handler(void)
{
	char *volatile block = malloc(72);

	leave_stale(NULL);
	_exit(block == NULL);
}

static void by_handler(bool leak)
{
	atexit(keep_in_handler);
	lose(leak, 2);
	forget();
	exit(0);
}

static void keep_and_leave(int status, void *unused)
{
	char *volatile block = malloc(72);

	leave_stale(NULL);
	exit(status + (block == NULL));
}

/* Once more, from within. */
static void by_exit_in_handler(bool leak)
{
	on_exit(keep_and_leave, NULL);
	lose(leak, 2);
}

static bool ends_in_destructor;

__attribute__((destructor)) static void end_in_destructor(void)
{
	if (ends_in_destructor)
		keep_in_handler();
}

static void by_destructor(bool leak)
{
	ends_in_destructor = true;
	lose(leak, 1);
}

static void by_abort(bool leak)
{
	lose(leak, 1);
	abort();
}

/* Its frame is where kill() has none, and the kernel leaves room below the stack pointer. */
__attribute__((noinline)) static void lose_near(bool leak)
{
	char *volatile words[12];

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		words[i] = i ? words[0] : malloc(72);
	memset(words[0], 1, 72);
	if (!leak)
		free(words[0]);
}

static void by_kill(bool leak)
{
	lose_near(leak);
	kill(getpid(), SIGTERM);
}

static void by_assert(bool leak)
{
	lose(leak, 1);
	assert(!"true");
}

static jmp_buf way_out;

__attribute__((noinline)) static void jump(bool leak)
{
	lose(leak, 2);
	longjmp(way_out, 1);
}

static void by_jump(bool leak)
{
	if (setjmp(way_out) == 0)
		jump(leak);
	exit(0);
}

static bool handler_leaks;

static void exit_in_signal(int number)
{
	lose(handler_leaks, 1);
	exit(0);
}

static void raise_in(void (*handler)(int), int flags)
{
	char *volatile kept = malloc(88);
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	memset(kept, 1, 88);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	free(kept);
}

/* The interrupted function still uses its blocks. */
static void in_signal(bool leak)
{
	handler_leaks = leak;
	raise_in(exit_in_signal, 0);
}

static void on_signal_stack(bool leak)
{
	const size_t size = 1 << 16;
	stack_t stack = { .ss_size = size };

	stack.ss_sp = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	sigaltstack(&stack, NULL);
	lose(leak, 1);
	forget();
	raise_in(exit_in_signal, SA_ONSTACK);
}

/* glibc's own function as the handler; 10 is the signal. */
static void handled_by_exit(bool leak)
{
	lose(leak, 1);
	forget();
	raise_in(exit, 0);
}

/* Only a register that calls preserve has it, in the function that exits. */
static void in_register(bool leak)
{
	register char *block __asm__("rbx") = malloc(72);

	leave_stale(NULL);
	if (leak)
		block = NULL;
	__asm__ volatile("" : "+r"(block));
	exit(block && block[0] == 'x');
}

static void in_register_at_once(bool leak)
{
	register char *block __asm__("r13") = malloc(72);

	leave_stale(NULL);
	if (leak)
		block = NULL;
	__asm__ volatile("" : "+r"(block));
	_exit(block && block[0] == 'x');
}

/* glibc's error() has its arguments, as many as registers, and calls exit(). */
static void by_error(bool leak)
{
	char *text = strdup("the last words of the program");

	lose(leak, 1);
	forget();
	error(3, 0, "%s%s%s", text, "", "");
}

const struct leak_case cases[] = {
	{ "return", by_return },
	{ "deep", by_deep_exit },
	{ "exit", by_exit },
	{ "immediate", by_immediate_exit },
	{ "quick", by_quick_exit },
	{ "system-call", by_system_call },
	{ "last-thread", by_last_thread },
	{ "thread", by_thread },
	{ "in-handler", in_handler },
	{ "by-handler", by_handler },
	{ "exit-in-handler", by_exit_in_handler },
	{ "destructor", by_destructor },
	{ "abort", by_abort },
	{ "kill", by_kill },
	{ "assert", by_assert },
	{ "jump", by_jump },
	{ "signal", in_signal },
	{ "signal-stack", on_signal_stack },
	{ "handled-by-exit", handled_by_exit },
	{ "register", in_register },
	{ "register-at-once", in_register_at_once },
	{ "error", by_error },
	{ NULL, NULL },
};
