/*
 * A process of which two cores are taken: with "older" for the first, after which it waits for a
 * line, and "ready" for the second.
 *
 *	kept	of 40 bytes: 6 before, 6 after
 *	more	of 100 bytes: 3 before, 10 after
 *	less	of 200 bytes: 8 before, 2 after
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *kept[6], *more[10], *less[8];

static void say(const char *what)
{
	if (write(STDOUT_FILENO, what, strlen(what)) < 0)
		_exit(1);
}

int main(void)
{
	char line[16];

	for (int i = 0; i < 6; i++)
		kept[i] = malloc(40);
	for (int i = 0; i < 3; i++)
		more[i] = malloc(100);
	for (int i = 0; i < 8; i++)
		less[i] = malloc(200);
	say("older\n");
	if (read(STDIN_FILENO, line, sizeof(line)) < 0)
		return 1;
	for (int i = 3; i < 10; i++)
		more[i] = malloc(100);
	for (int i = 2; i < 8; i++) {
		free(less[i]);
		less[i] = NULL;
	}
	say("ready\n");
	pause();
	return !kept[0] || !more[0] || !less[0];
}
