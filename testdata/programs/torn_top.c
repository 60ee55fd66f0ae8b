/*
 * A program that is killed as malloc has set the arena's top, and not yet the
 * sizes of the two chunks that the old one becomes: its parent steps it there.
 */

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SMALL = 0x68, LARGE = 3000, MOST_STEPS = 1000000 };

static void *volatile kept[64];

static void *allocate_some(void)
{
	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		kept[i] = malloc(SMALL);
	return kept[sizeof(kept) / sizeof(*kept) - 1];
}

/* Where libc keeps the address of top, which only its arena has. */
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
		    sscanf(line, "%lx-%lx %4s", &start, &end, rights) == 3 &&
		    rights[1] == 'w')
			for (uintptr_t *at = (uintptr_t *)start;
			     at < (uintptr_t *)end; at++)
				if (*at == top)
					return at;
	abort();
}

static void step_until_changed(pid_t child, uintptr_t *word)
{
	long before = ptrace(PTRACE_PEEKDATA, child, word, 0);

	for (int i = 0; i < MOST_STEPS; i++) {
		if (ptrace(PTRACE_SINGLESTEP, child, 0, 0) < 0 ||
		    waitpid(child, NULL, 0) < 0)
			abort();
		if (ptrace(PTRACE_PEEKDATA, child, word, 0) != before)
			return;
	}
	abort();
}

int main(void)
{
	uintptr_t *top;
	pid_t child;

	top = find_top();
	child = fork();
	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		kept[0] = malloc(LARGE);
		abort();
	}
	waitpid(child, NULL, 0);
	step_until_changed(child, top);
	ptrace(PTRACE_DETACH, child, 0, SIGSEGV);
	waitpid(child, NULL, 0);
	return 0;
}
