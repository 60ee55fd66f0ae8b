/*
 * Every way in which a program can end. The first argument says which.
 *
 * Whatever the way, three blocks of 100 bytes are lost. Other threads hold one block each in
 * nothing but a register, so who has not their registers takes these for lost, too.
 */
#include "settle.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOST = 3, LOST_SIZE = 100, HOLDERS = 3, HELD_SIZE = 777 };

static sem_t holding;
static volatile sig_atomic_t caught;

static __attribute__((noinline)) void lose_below(size_t size)
{
	char *volatile block = malloc(size);

	memset(block, 1, size);
	block = NULL;
}

/* Far enough below the caller for wipe() to reach all that is left. */
static __attribute__((noinline)) void lose(size_t size)
{
	volatile char room[256];

	room[0] = 0;
	lose_below(size);
	room[1] = room[0];
}

/* Overwrite what earlier calls left on the stack. */
static __attribute__((noinline)) void wipe(void)
{
	volatile char room[4096];

	for (size_t i = 0; i < sizeof(room); i++)
		room[i] = 0;
}

/* Wait for ever, the block known to register r12 alone. */
static void *hold(void *nothing)
{
	void *block = malloc(HELD_SIZE);

	sem_post(&holding);
	__asm__ volatile("mov %0, %%r12\n\txor %0, %0\n"
			 "1:\tmov %1, %%eax\n\tsyscall\n\t"
			 "jmp 1b"
			 : "+r"(block)
			 : "i"(SYS_pause)
			 : "rax", "rcx", "r11", "r12", "memory");
	return NULL;
}

static void start_holders(void)
{
	sem_init(&holding, 0, 0);
	for (int i = 0; i < HOLDERS; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, hold, NULL);
		pthread_detach(thread);
	}
	for (int i = 0; i < HOLDERS; i++)
		sem_wait(&holding);
	/* They have posted, but may not be in their loop yet. */
	settle();
}

static void *end_process(void *nothing)
{
	settle();
	exit(6);
}

static void *run_briefly(void *nothing)
{
	usleep(200000);
	return NULL;
}

static void *execute(void *nothing)
{
	execlp("true", "true", NULL);
	return NULL;
}

static void catch (int number)
{
	caught = 1;
}

static void start(void *(*function)(void *))
{
	pthread_t thread;

	pthread_create(&thread, NULL, function, NULL);
}

/* A child that loses one block more, and ends with status 1. */
static int fork_child(void)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		lose(LOST_SIZE);
		wipe();
		exit(1);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

/* A process left behind writes to the file, once the other one is there. */
static void leave_daemon(const char *path)
{
	char told[4096];

	snprintf(told, sizeof(told), "%s.go", path);
	if (fork() != 0)
		return;
	setsid();
	if (fork() != 0)
		exit(0);
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	for (int i = 0; i < 6000 && access(told, F_OK) < 0; i++)
		usleep(10000);
	FILE *file = fopen(path, "w");
	fputs("done\n", file);
	fclose(file);
	if (fork() == 0)
		exit(3);
	int status = 0;
	wait(&status);
	file = fopen(path, "a");
	fprintf(file, "child %d\n", WEXITSTATUS(status));
	fclose(file);
	exit(0);
}

static int spawn(const char *program)
{
	char *arguments[] = { (char *)program, NULL };
	pid_t child;
	int status = 0;

	if (posix_spawnp(&child, program, NULL, NULL, arguments, NULL) != 0)
		return 50;
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}

static int fail_to_execute(void)
{
	pid_t child = vfork();
	int status = 0;

	if (child == 0) {
		execl("/nonexistent", "nonexistent", NULL);
		_exit(51);
	}
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}

static int wait_for_signal(int number, int what)
{
	struct sigaction action = { .sa_handler = catch };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	if (what == 'b')
		sigprocmask(SIG_BLOCK, &set, NULL);
	if (what == 'h')
		sigaction(number, &action, NULL);
	if (what == 'i')
		signal(number, SIG_IGN);
	puts("ready");
	fflush(stdout);
	/* The signal must find it, however late. */
	for (int i = 0; i < (what == 'h' || what == 'd' ? 60000 : 1000) && !caught; i++)
		usleep(1000);
	return caught ? 20 : 21;
}

static int many_threads(void)
{
	for (int i = 0; i < 2000; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, (void *(*)(void *))wipe, NULL) != 0)
			return 60;
		pthread_join(thread, NULL);
	}
	return 22;
}

static int copy_input(void)
{
	int letter, count = 0;

	while ((letter = getchar()) != EOF) {
		putchar(letter);
		count++;
	}
	return count;
}

/* Private memory that is kept out of cores, and holds a block. */
static int hide(void)
{
	void **page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(page, 4096, MADV_DONTDUMP);
	*page = malloc(LOST_SIZE);
	return 0;
}

static int end(const char *way, const char *argument)
{
	if (!strcmp(way, "exit"))
		exit(5);
	if (!strcmp(way, "_exit"))
		_exit(4);
	if (!strcmp(way, "thread"))
		start(end_process), pause();
	if (!strcmp(way, "abort"))
		abort();
	if (!strcmp(way, "segv"))
		*(volatile int *)0 = 1;
	if (!strcmp(way, "kill"))
		raise(SIGKILL);
	if (!strcmp(way, "leader"))
		start(run_briefly), pthread_exit(NULL);
	if (!strcmp(way, "syscall"))
		syscall(SYS_exit, 9);
	if (!strcmp(way, "fork"))
		return fork_child() + 10;
	if (!strcmp(way, "daemon"))
		leave_daemon(argument);
	if (!strcmp(way, "exec"))
		execlp("sh", "sh", "-c", "exec sh -c 'exit 12'", NULL);
	if (!strcmp(way, "thread-exec"))
		start(execute), pause();
	if (!strcmp(way, "spawn"))
		return spawn("true") + 30;
	if (!strcmp(way, "no-spawn"))
		return spawn("/nonexistent");
	if (!strcmp(way, "vfork"))
		return fail_to_execute();
	if (!strcmp(way, "many-threads"))
		return many_threads();
	if (!strcmp(way, "copy"))
		return copy_input();
	if (!strcmp(way, "hide"))
		return hide();
	if (!strcmp(way, "signal"))
		return wait_for_signal(SIGTERM, argument[0]);
	if (!strcmp(way, "continue"))
		return wait_for_signal(SIGCONT, 'h');
	if (!strcmp(way, "interrupt"))
		return wait_for_signal(SIGINT, argument[0]);
	if (!strcmp(way, "sleep"))
		puts("ready"), fflush(stdout), sleep(60);
	return atoi(way);
}

int main(int count, char **arguments)
{
	const char *way = count > 1 ? arguments[1] : "0";

	for (int i = 0; i < LOST; i++)
		lose(LOST_SIZE);
	wipe();
	if (count > 2 && !strcmp(arguments[2], "threads"))
		start_holders();
	return end(way, count > 2 ? arguments[2] : "");
}
