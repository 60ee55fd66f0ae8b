/*
 * To be preloaded: has each allocation of a program fail, one at a time.
 *
 * Where the program allocates, it forks: in the child the allocation fails, and the child runs to
 * its end; then the parent goes on. Of allocations made by the same chain of calls only the first
 * is tried. For the n-th, the folder SHORTAGE_FOLDER has n.out and n.err, all that the child and
 * its parents wrote to their standard output and error, which must be files; n.status, as of
 * waitpid(); and n.chain, the calls. With SHORTAGE_LASTS in the environment all later allocations
 * fail, too.
 *
 * The program runs on one processor, so that it makes no threads: only one of them would live on in
 * the child.
 */

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEPTH = 64, CHAINS = 1 << 16, SECONDS = 60 };

static const char *folder;
static bool lasts, is_child, is_busy = true;
static unsigned int number;
static uint64_t chains[CHAINS]; /* chains seen, by their hashes */

/* The function of that name which these here stand in front of. */
#define NEXT(name)                                                  \
	({                                                          \
		static __typeof__(&name) next_;                     \
		if (!next_)                                         \
			*(void **)&next_ = dlsym(RTLD_NEXT, #name); \
		next_;                                              \
	})

static void name_file(const char *kind, char *ret, size_t size)
{
	snprintf(ret, size, "%s/%u.%s", folder, number, kind);
}

/* Let fd be a file of the child's own, which holds what was written so far. */
static void part(int fd, const char *kind)
{
	char path[4096], old_path[64];
	off_t start = 0, end;
	int old, new;

	name_file(kind, path, sizeof(path));
	snprintf(old_path, sizeof(old_path), "/proc/self/fd/%d", fd);
	old = open(old_path, O_RDONLY);
	new = open(path, O_RDWR | O_CREAT | O_APPEND, 0600);
	if (old < 0 || new < 0)
		_exit(99);
	end = lseek(old, 0, SEEK_END);
	for (; start < end; start = lseek(new, 0, SEEK_END)) {
		char buffer[4096];
		ssize_t size = pread(old, buffer, sizeof(buffer), start);

		if (size <= 0 || write(new, buffer, (size_t)size) != size)
			_exit(99);
	}
	dup2(new, fd);
	close(old);
	close(new);
}

/* By which calls it came to this. */
static void write_chain(void)
{
	void *frames[DEPTH];
	char path[4096];
	int fd;

	name_file("chain", path, sizeof(path));
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	backtrace_symbols_fd(frames, backtrace(frames, DEPTH), fd);
	close(fd);
}

static void wait_for(pid_t child)
{
	char path[4096], text[16];
	int status = 0, fd;
	ssize_t length;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	name_file("status", path, sizeof(path));
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	length = snprintf(text, sizeof(text), "%d", status);
	if (fd < 0 || write(fd, text, (size_t)length) != length)
		_exit(99);
	close(fd);
}

/* True if this is the first one with this chain of calls. */
static bool is_new(void)
{
	void *frames[DEPTH];
	int count = backtrace(frames, DEPTH);
	uint64_t hash = UINT64_C(14695981039346656037);

	for (int i = 2; i < count; i++)
		hash = (hash ^ (uintptr_t)frames[i]) * UINT64_C(1099511628211);
	for (size_t i = hash % CHAINS; chains[i] != hash; i = (i + 1) % CHAINS)
		if (chains[i] == 0) {
			chains[i] = hash;
			return true;
		}
	return false;
}

static bool forks(void)
{
	pid_t child;

	if (!is_new())
		return false;
	number++;
	child = fork();
	if (child < 0)
		_exit(99);
	if (child > 0) {
		wait_for(child);
		return false;
	}
	is_child = true;
	alarm(SECONDS);
	write_chain();
	part(STDOUT_FILENO, "out");
	part(STDERR_FILENO, "err");
	return true;
}

static bool is_short(void)
{
	int before = errno;
	bool fails;

	if (is_busy)
		return false;
	is_busy = true;
	fails = is_child ? lasts : forks();
	is_busy = false;
	errno = fails ? ENOMEM : before;
	return fails;
}

__attribute__((constructor)) static void begin(void)
{
	void *frames[2];
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
	/* It allocates when first called. */
	backtrace(frames, 2);
	folder = getenv("SHORTAGE_FOLDER");
	lasts = getenv("SHORTAGE_LASTS") != NULL;
	is_busy = !folder;
}

void *malloc(size_t size)
{
	return is_short() ? NULL : NEXT(malloc)(size);
}

void *calloc(size_t count, size_t size)
{
	return is_short() ? NULL : NEXT(calloc)(count, size);
}

void *realloc(void *old, size_t size)
{
	return is_short() ? NULL : NEXT(realloc)(old, size);
}

void *reallocarray(void *old, size_t count, size_t size)
{
	return is_short() ? NULL : NEXT(reallocarray)(old, count, size);
}

void *mmap(void *address, size_t size, int rights, int flags, int fd, off_t offset)
{
	return is_short() ? MAP_FAILED : NEXT(mmap)(address, size, rights, flags, fd, offset);
}

void *mremap(void *old, size_t old_size, size_t size, int flags, ...)
{
	return is_short() ? MAP_FAILED : NEXT(mremap)(old, old_size, size, flags);
}
