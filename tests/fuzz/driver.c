/*
 * Runs a fuzz target without libFuzzer, with any compiler:
 *
 *	fuzz_TARGET [-runs=N] [-seed=N] [-slow=N] PATH...
 *
 * first with each file that is named or is in a folder that is named, then with N mutations of
 * these, which depend on nothing but the seed. An input that crashes, or takes ten seconds, is left
 * in crash-TARGET in the current folder. Files that take N milliseconds of processor time are
 * named, if told.
 */
#include "tests/fuzz/target.h"

#include "analyzer/base/cleanup.h"
#include "analyzer/base/list.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 16, SECONDS = 10 };

struct input {
	char *name;
	uint8_t *bytes;
	size_t size;
};

struct inputs {
	struct input *list;
	size_t count;
};

/* Needed by the crash handlers. */
static uint8_t current[MOST_BYTES];
static size_t current_size;
static char crash_path[PATH_MAX];
static int messages; /* where standard error was */
static uint64_t state;

__attribute__((weak)) int LLVMFuzzerInitialize(int *count, char ***arguments)
{
	return 0;
}

__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most,
						     unsigned int seed)
{
	return LLVMFuzzerMutate(bytes, size, most);
}

/* The sanitizers', if they are there. */
__attribute__((weak)) void __sanitizer_set_death_callback(void (*call)(void));
__attribute__((weak)) void __sanitizer_set_report_fd(void *fd);

static uint64_t draw(uint64_t below)
{
	state = state * 6364136223846793005 + 1442695040888963407;
	return (state >> 33) % below;
}

static size_t insert(uint8_t *bytes, size_t size, size_t most)
{
	size_t place = draw(size + 1), length = draw(16) + 1;

	if (length > most - size)
		return size;
	memmove(bytes + place + length, bytes + place, size - place);
	for (size_t i = 0; i < length; i++)
		bytes[place + i] = (uint8_t)draw(256);
	return size + length;
}

static size_t erase(uint8_t *bytes, size_t size)
{
	size_t place = draw(size), length = draw(16) + 1;

	if (length > size - place)
		length = size - place;
	memmove(bytes + place, bytes + place + length, size - place - length);
	return size - length;
}

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t most)
{
	if (size > 0 && size <= most) {
		uint8_t *byte = &bytes[draw(size)];

		switch (draw(5)) {
		case 0:
			return erase(bytes, size);
		case 1:
			break;
		case 2:
			*byte ^= (uint8_t)(1 << draw(8));
			return size;
		case 3:
			*byte = (uint8_t)draw(256);
			return size;
		default:
			*byte = (uint8_t) "\0\1\x7f\x80\xff"[draw(5)];
			return size;
		}
	}
	return insert(bytes, size, most);
}

/* Only what may be called from a handler of signals. */
static void keep_input(void)
{
	int fd = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, current, current_size) < 0)
		return;
	close(fd);
	dprintf(messages, "the input is in %s\n", crash_path);
}

static void handle(int number)
{
	dprintf(messages, "%s\n", number == SIGPROF ? "this takes too long" : "this crashes");
	keep_input();
	signal(number, SIG_DFL);
	raise(number);
}

static void watch_for_crashes(const char *name)
{
	static const int deadly[] = { SIGPROF, SIGABRT, SIGSEGV, SIGBUS, SIGFPE };
	char folder[PATH_MAX - 256];

	if (!getcwd(folder, sizeof(folder)))
		strcpy(folder, ".");
	snprintf(crash_path, sizeof(crash_path), "%s/crash-%.200s", folder,
		 strrchr(name, '/') ? strrchr(name, '/') + 1 : name);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(keep_input);
	for (size_t i = 0; i < sizeof(deadly) / sizeof(*deadly); i++)
		if (deadly[i] == SIGPROF || deadly[i] == SIGABRT || !__sanitizer_set_death_callback)
			signal(deadly[i], handle);
}

/* Drop the target's messages about its input. */
static void silence(void)
{
	int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);

	messages = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (__sanitizer_set_report_fd)
		__sanitizer_set_report_fd((void *)(intptr_t)messages);
	dup2(nothing, STDOUT_FILENO);
	dup2(nothing, STDERR_FILENO);
	close(nothing);
}

/* Returns the milliseconds of processor time it took. */
static unsigned long run(void)
{
	/* In processor time, which does not depend on other load. */
	static const struct itimerval limit = { .it_value.tv_sec = SECONDS };
	static const struct itimerval none;
	clock_t start = clock();

	/* A copy of its own, so that reads behind its end are noticed. */
	_cleanup_(free) uint8_t *copy = malloc(current_size + !current_size);

	memcpy(copy, current, current_size);
	setitimer(ITIMER_PROF, &limit, NULL);
	LLVMFuzzerTestOneInput(copy, current_size);
	setitimer(ITIMER_PROF, &none, NULL);
	return (unsigned long)((clock() - start) / (CLOCKS_PER_SEC / 1000));
}

static void add_file(struct inputs *inputs, const char *path)
{
	_cleanup_(close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : read(fd, current, sizeof(current));
	struct input input = { strdup(path), NULL, (size_t)size };

	if (size < 0 || !LIST_GROW(inputs->list, inputs->count)) {
		dprintf(messages, "%s cannot be read\n", path);
		exit(2);
	}
	input.bytes = malloc(input.size + 1);
	memcpy(input.bytes, current, input.size);
	inputs->list[inputs->count++] = input;
}

static void add_path(struct inputs *inputs, const char *path)
{
	struct dirent **entries;
	int count = scandir(path, &entries, NULL, alphasort);

	if (count < 0) {
		add_file(inputs, path);
		return;
	}
	for (int i = 0; i < count; i++) {
		char name[PATH_MAX];

		snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
		if (entries[i]->d_name[0] != '.')
			add_file(inputs, name);
		free(entries[i]);
	}
	free(entries);
}

static void load(const struct input *input)
{
	current_size = input->size;
	memcpy(current, input->bytes, input->size);
}

/* One to eight changes, so that both near and far ones are tried. */
static void mutate(const struct inputs *inputs)
{
	if (inputs->count > 0)
		load(&inputs->list[draw(inputs->count)]);
	else
		current_size = 0;
	for (uint64_t i = draw(8) + 1; i > 0; i--)
		current_size = LLVMFuzzerCustomMutator(current, current_size, sizeof(current),
						       (unsigned int)draw(UINT32_MAX));
}

static void run_each(const struct inputs *inputs, unsigned long slow)
{
	for (size_t i = 0; i < inputs->count; i++) {
		unsigned long took;

		load(&inputs->list[i]);
		took = run();
		if (slow > 0 && took >= slow)
			dprintf(messages, "%lu ms: %s\n", took, inputs->list[i].name);
	}
}

static void inputs_deinit(struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->count; i++) {
		free(inputs->list[i].name);
		free(inputs->list[i].bytes);
	}
	free(inputs->list);
}

int main(int count, char **arguments)
{
	struct inputs inputs = { NULL, 0 };
	unsigned long runs = 0, slow = 0;

	silence();
	watch_for_crashes(arguments[0]);
	for (int i = 1; i < count; i++)
		if (strncmp(arguments[i], "-runs=", 6) == 0)
			runs = strtoul(arguments[i] + 6, NULL, 10);
		else if (strncmp(arguments[i], "-seed=", 6) == 0)
			state = strtoul(arguments[i] + 6, NULL, 10);
		else if (strncmp(arguments[i], "-slow=", 6) == 0)
			slow = strtoul(arguments[i] + 6, NULL, 10);
		else
			add_path(&inputs, arguments[i]);
	LLVMFuzzerInitialize(&count, &arguments);
	run_each(&inputs, slow);
	for (unsigned long i = 0; i < runs; i++) {
		mutate(&inputs);
		run();
	}
	dprintf(messages, "%zu inputs and %lu mutations passed\n", inputs.count, runs);
	inputs_deinit(&inputs);
	return 0;
}
