/*
 * Messages of an assistant: lines of JSON-RPC, and the arguments of tools. No core is open, and
 * none may be opened.
 */
#include "tests/fuzz/target.h"

#include "cli/assistants/server.h"

#include <assert.h>
#include <fcntl.h>
#include <sys/mman.h>

static void serve(int in, int out)
{
	struct server server = { .initialized = true };
	struct error *error;

	session_init(&server.session, true);
	atomic_flag_clear(&server.telling);
	error = channel_open(in, out, &server.session.progress.progress.interrupted,
			     &server.channel);
	assert(!error);
	server_serve(&server);
	channel_close(server.channel);
	session_deinit(&server.session);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	_cleanup_(close) int in = memfd_create("messages", MFD_CLOEXEC);
	_cleanup_(close) int out = open("/dev/null", O_WRONLY | O_CLOEXEC);

	assert(in >= 0 && out >= 0);
	if (write(in, bytes, size) != (ssize_t)size || lseek(in, 0, SEEK_SET) != 0)
		abort();
	serve(in, out);
	return 0;
}
