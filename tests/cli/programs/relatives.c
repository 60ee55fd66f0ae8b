/*
 * A program with children of unusual kinds: one that shares its memory and ends by itself (clone3
 * with CLONE_VM), one that borrows it (vfork), and one that it tries to trace. Says what each gave.
 */
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK_SIZE = 1 << 16 };

static volatile int shared;

/* The child has no stack of ours to return on: it must not leave this. */
static pid_t clone_with_memory(char *stack)
{
	struct clone_args arguments = {
		.flags = CLONE_VM,
		.exit_signal = SIGCHLD,
		.stack = (uintptr_t)stack,
		.stack_size = STACK_SIZE,
	};
	long result = SYS_clone3;

	__asm__ volatile(
		"syscall\n\ttest %%rax, %%rax\n\tjnz 1f\n\tmovl $7, %[shared]\n\tmov %[exit], %%eax\n\tmov $3, %%edi\n\tsyscall\n"
		"1:"
		: "+a"(result), [shared] "+m"(shared)
		: "D"(&arguments), "S"(sizeof(arguments)), [exit] "i"(SYS_exit_group)
		: "rcx", "r11", "memory");
	return (pid_t)result;
}

static int status_of(pid_t child)
{
	int status = 0;

	if (waitpid(child, &status, 0) != child)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void trace_child(void)
{
	pid_t child = fork();

	if (child == 0) {
		pause();
		_exit(1);
	}
	if (ptrace(PTRACE_SEIZE, child, NULL, NULL) < 0)
		printf("trace: %s\n", strerror(errno));
	else
		printf("trace: done\n");
	kill(child, SIGKILL);
	printf("traced: %d\n", status_of(child));
}

int main(void)
{
	char *stack = malloc(STACK_SIZE);
	pid_t child;

	setvbuf(stdout, NULL, _IONBF, 0);
	printf("clone3: %d", status_of(clone_with_memory(stack)));
	printf(", wrote %d\n", shared);
	child = vfork();
	if (child == 0)
		_exit(5);
	printf("vfork: %d\n", status_of(child));
	trace_child();
	free(stack);
	return 6;
}
