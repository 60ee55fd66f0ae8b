#include "cli/prompt/interrupt.h"

#include <signal.h>
#include <stddef.h>

/* A signal handler gets no argument. */
static struct progress *caught;

static void interrupt(int number)
{
	atomic_store(&caught->interrupted, true);
}

void interrupt_catch(struct progress *progress, bool once)
{
	struct sigaction action = {
		.sa_handler = interrupt,
		.sa_flags = once ? (int)SA_RESETHAND : 0,
	};

	caught = progress;
	sigaction(SIGINT, &action, NULL);
}
