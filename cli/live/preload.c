#include "cli/live/preload.h"

#include "analyzer/base/text.h"
#include "analyzer/capture/recorder.h"
#include "cli/live/copies.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* heapcore has it within itself: as one file, it can be copied to where it is needed. */
__asm__(".section .rodata\n"
	".balign 16\n"
	"recorder_begin:\n"
	".incbin \"" RECORDER_PATH "\"\n"
	"recorder_end:\n"
	".previous\n");
extern const char recorder_begin[] __attribute__((visibility("hidden")));
extern const char recorder_end[] __attribute__((visibility("hidden")));

struct error *preload_unpack(char **ret)
{
	static const char ending[] = ".so";
	_cleanup_(free) char *path =
		format_text("%s/" RECORDER_FILE ".XXXXXX%s", copies_folder(), ending);
	size_t size = (size_t)(recorder_end - recorder_begin), done = 0;
	_cleanup_(close) int fd = -1;

	TRY_MEMORY(path);
	fd = mkstemps(path, (int)strlen(ending));
	if (fd < 0)
		return error_system("%s", path);
	/* The program may become another user. */
	fchmod(fd, 0644);
	while (done < size) {
		ssize_t count = write(fd, recorder_begin + done, size - done);

		if (count <= 0) {
			struct error *error = error_system("%s", path);

			unlink(path);
			return error;
		}
		done += (size_t)count;
	}
	*ret = take(path);
	return NULL;
}

void preload_set(const char *path, const char *sizes)
{
	const char *others = getenv("LD_PRELOAD");
	_cleanup_(free) char *all =
		format_text("%s%s%s", path, others ? ":" : "", others ? others : "");

	if (all)
		setenv("LD_PRELOAD", all, true);
	setenv(RECORDER_SIZES, sizes ? sizes : "", true);
}
