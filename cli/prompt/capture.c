#include "cli/prompt/capture.h"

#include <string.h>

/* Room for size more bytes and a NUL. */
static bool grow(struct capture *capture, size_t size)
{
	size_t room = capture->room ? capture->room : 4096;
	char *bytes;

	while (room - capture->used <= size)
		room *= 2;
	if (room == capture->room)
		return true;
	bytes = realloc(capture->bytes, room);
	if (!bytes)
		return false;
	capture->bytes = bytes;
	capture->room = room;
	return true;
}

/* It never fails: a command that writes too much goes on, as it does for others. */
static ssize_t write_stream(void *cookie, const char *bytes, size_t size)
{
	struct capture *capture = cookie;
	size_t left = capture->most - capture->used;
	size_t kept = capture->left_out ? 0 : MIN(size, left);

	if (!grow(capture, kept)) {
		capture->failed = true;
		kept = 0;
	}
	if (kept > 0)
		memcpy(capture->bytes + capture->used, bytes, kept);
	capture->used += kept;
	capture->left_out += size - kept;
	return (ssize_t)size;
}

struct error *capture_init(struct capture *capture, size_t most)
{
	static const cookie_io_functions_t functions = { .write = write_stream };

	*capture = (struct capture){ .most = most };
	capture->stream = fopencookie(capture, "w", functions);
	return capture->stream ? NULL : &error_no_memory;
}

void capture_deinit(struct capture *capture)
{
	if (capture->stream)
		fclose(capture->stream);
	free(capture->bytes);
}

const char *capture_text(struct capture *capture)
{
	fflush(capture->stream);
	if (!capture->bytes)
		return "";
	capture->bytes[capture->used] = '\0';
	return capture->bytes;
}

void capture_cut_to_lines(struct capture *capture)
{
	const char *end;

	fflush(capture->stream);
	if (!capture->left_out)
		return;
	end = memrchr(capture->bytes, '\n', capture->used);
	capture->left_out += capture->used;
	capture->used = end ? (size_t)(end + 1 - capture->bytes) : 0;
	capture->left_out -= capture->used;
}
