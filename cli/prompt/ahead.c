#include "cli/prompt/ahead.h"

#include <signal.h>

/* Drop errors: the command that needs the stage reports them. */
static void *run(void *data)
{
	error_destroy(analysis_build_ahead(data));
	return NULL;
}

/* Signals from outside are the terminal's business, and that is the main thread's. */
static void block_signals(sigset_t *ret_before)
{
	static const int faults[] = { SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGABRT };
	sigset_t blocked;

	sigfillset(&blocked);
	for (size_t i = 0; i < COUNT_OF(faults); i++)
		sigdelset(&blocked, faults[i]);
	pthread_sigmask(SIG_BLOCK, &blocked, ret_before);
}

void ahead_start(struct ahead *ahead, struct session *session)
{
	sigset_t before;

	ahead->session = session;
	if (!session->analysis || !analysis_has_ahead(session->analysis))
		return;
	block_signals(&before);
	ahead->is_running = pthread_create(&ahead->thread, NULL, run, session->analysis) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void ahead_stop(struct ahead *ahead)
{
	atomic_bool *interrupted = &ahead->session->progress.progress.interrupted;

	if (!ahead->is_running)
		return;
	atomic_store(interrupted, true);
	pthread_join(ahead->thread, NULL);
	atomic_store(interrupted, false);
	ahead->is_running = false;
}
