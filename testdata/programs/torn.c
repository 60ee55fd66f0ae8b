/*
 * A program that ends as malloc has written the first of several words that belong together: its
 * parent steps it there.
 *
 *	torn top|bin  kill|fault
 *
 * top: the arena's top is set, and not yet the sizes of the two chunks that the old one becomes.
 * bin: one link of the unsorted bin is set, and not yet the other. It is killed there, or runs into
 * an instruction that is none.
 */

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SMALL = 0x68, LARGE = 3000, MOST_STEPS = 1000000, UD2 = 0x0b0f };

/* Offset of that bin in an arena, in words behind top. */
enum { UNSORTED = 2 };

static void *volatile kept[64];
static void *volatile large;

static void *allocate_some(void)
{
	/* Free, it borders on what is kept. */
	large = malloc(LARGE);
	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		kept[i] = malloc(SMALL);
	return kept[sizeof(kept) / sizeof(*kept) - 1];
}

/* The word in libc that has the address of top, which only its arena has. */
static uintptr_t *find_top(void)
{
	static char line[4096], rights[8], buffer[BUFSIZ];
	FILE *maps = fopen("/proc/self/maps", "r");
	uintptr_t start, end, top;

	if (!maps || setvbuf(maps, buffer, _IOFBF, sizeof(buffer)) != 0)
		abort();
	/* From here on, nothing else allocates. */
	top = (uintptr_t)allocate_some() + SMALL - 8;
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "/libc") &&
		    sscanf(line, "%lx-%lx %4s", &start, &end, rights) == 3 && rights[1] == 'w')
			for (uintptr_t *at = (uintptr_t *)start; at < (uintptr_t *)end; at++)
				if (*at == top)
					return at;
	abort();
}

static uintptr_t peek(pid_t child, const uintptr_t *word)
{
	return (uintptr_t)ptrace(PTRACE_PEEKDATA, child, word, 0);
}

/* Until one of the two words is another. */
static void step_until_changed(pid_t child, const uintptr_t *words)
{
	uintptr_t first = peek(child, words), second = peek(child, words + 1);

	for (int i = 0; i < MOST_STEPS; i++) {
		if (ptrace(PTRACE_SINGLESTEP, child, 0, 0) < 0 || waitpid(child, NULL, 0) < 0)
			abort();
		if (peek(child, words) != first || peek(child, words + 1) != second)
			return;
	}
	abort();
}

static void run_into_fault(pid_t child)
{
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETREGS, child, 0, &registers) < 0 ||
	    ptrace(PTRACE_POKETEXT, child, registers.rip, UD2) < 0)
		abort();
	ptrace(PTRACE_DETACH, child, 0, 0);
}

static void wait_for_parent(void)
{
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
}

int main(int count, char **words)
{
	uintptr_t *top;
	pid_t child;

	if (count != 3)
		return 2;
	top = find_top();
	child = fork();
	if (child == 0) {
		wait_for_parent();
		if (strcmp(words[1], "top") == 0)
			kept[0] = malloc(LARGE);
		else
			free(large);
		abort();
	}
	waitpid(child, NULL, 0);
	step_until_changed(child, strcmp(words[1], "top") == 0 ? top : top + UNSORTED);
	if (strcmp(words[2], "kill") == 0)
		ptrace(PTRACE_DETACH, child, 0, SIGSEGV);
	else
		run_into_fault(child);
	waitpid(child, NULL, 0);
	return 0;
}
