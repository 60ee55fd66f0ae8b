#include "cli/vanished.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

/* A signal handler gets no argument. */
static atomic_bool happened;

/* Called on any thread, at any instruction that reads memory. */
static void map_zeros(int number, siginfo_t *information, void *context)
{
	uintptr_t page =
		(uintptr_t)information->si_addr & ~(uintptr_t)(PAGE - 1);

	/* A page that lies behind the end of its file, and nothing else. */
	if (information->si_code == BUS_ADRERR &&
	    mmap((void *)page, PAGE, PROT_READ | PROT_WRITE,
		 MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1,
		 0) != MAP_FAILED) {
		atomic_store(&happened, true);
		return;
	}
	/* It comes again at once, and ends the program. */
	signal(number, SIG_DFL);
}

void vanished_catch(void)
{
	struct sigaction action = {
		.sa_sigaction = map_zeros,
		.sa_flags = SA_SIGINFO,
	};

	sigaction(SIGBUS, &action, NULL);
}

bool vanished_any(void)
{
	return atomic_load(&happened);
}
