/*
 * Memory of every kind, to be found in a core. For each, a line says where it is and what must be
 * there: a text, "zeros", or "nothing" if a core is not to have it. Then the program waits.
 */
#include "settle.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096 };

static char written_data[] = "data of the program";
static char bss[PAGE];

static void tell(const char *name, const void *place, const char *what)
{
	printf("%s %p %s\n", name, place, what);
}

static char *map(size_t size, int rights, int flags, int file)
{
	char *place = mmap(NULL, size, rights, flags, file, 0);

	if (place == MAP_FAILED)
		exit(77);
	return place;
}

static char *map_private(size_t size)
{
	return map(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

static void anonymous(void)
{
	char *place = map_private(64 * PAGE);

	strcpy(place + 3 * PAGE, "one page of many");
	strcpy(place + 60 * PAGE, "another one");
	/* Read only: the kernel lends the page of zeros. */
	if (place[5 * PAGE])
		exit(1);
	tell("touched", place + 3 * PAGE, "one page of many");
	tell("touched-later", place + 60 * PAGE, "another one");
	tell("read-only-once", place + 5 * PAGE, "zeros");
	tell("untouched", place + 7 * PAGE, "zeros");

	place = map_private(PAGE);
	strcpy(place, "without rights");
	mprotect(place, PAGE, PROT_NONE);
	tell("no-rights", place, "without rights");

	place = map_private(2 * PAGE);
	strcpy(place, "for nobody");
	madvise(place, 2 * PAGE, MADV_DONTDUMP);
	tell("excluded", place, "nothing");
}

/* Far more than the machine has. */
static void reserved(void)
{
	size_t size = (size_t)1 << 38;
	char *place =
		map(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);

	strcpy(place + size / 2, "in the middle of nowhere");
	tell("reserved", place + size / 2, "in the middle of nowhere");
	tell("reserved-end", place + size - PAGE, "zeros");
}

static void shared(void)
{
	char *place = map(8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);

	/* Not in the page table of this process. */
	if (fork() == 0) {
		strcpy(place + PAGE, "by the child");
		_exit(0);
	}
	wait(NULL);
	tell("shared", place + PAGE, "by the child");
	tell("shared-untouched", place + 5 * PAGE, "zeros");
}

static void files(const char *path)
{
	FILE *file = fopen(path, "w+");
	char *place;

	for (int i = 0; i < 4; i++)
		fprintf(file, "%-4095s\n", "of the file");
	fflush(file);
	place = map(4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file));
	strcpy(place + PAGE, "changed in memory");
	tell("file-unchanged", place, "of the file");
	tell("file-changed", place + PAGE, "changed in memory");
	tell("file-clean", map(4 * PAGE, PROT_READ, MAP_PRIVATE, fileno(file)), "nothing");
	tell("file-shared", map(4 * PAGE, PROT_READ, MAP_SHARED, fileno(file)), "nothing");
}

/* As debuggers and linkers read programs: what is mapped so is not loaded. */
static void program_as_data(void)
{
	int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char *place = map(4 * PAGE, PROT_READ, MAP_PRIVATE, file);

	tell("program-as-data", place + PAGE, "nothing");
}

static void deleted(void)
{
	int file = memfd_create("deleted", 0);

	if (ftruncate(file, PAGE) < 0 || pwrite(file, "of no file", 10, 0) != 10)
		exit(1);
	tell("nameless", map(PAGE, PROT_READ, MAP_PRIVATE, file), "of no file");
	tell("nameless-shared", map(PAGE, PROT_READ, MAP_SHARED, file), "of no file");
}

static void *wait_here(void *text)
{
	char own[32];

	strcpy(own, text);
	tell("stack", own, text);
	fflush(stdout);
	pause();
	return own[0] ? NULL : text;
}

int main(int count, char **arguments)
{
	static char texts[3][32];
	char *block = malloc(100);

	strcpy(block, "on the heap");
	strcpy(bss, "once zero");
	written_data[0] = 'D';
	tell("heap", block, "on the heap");
	tell("bss", bss, "once zero");
	tell("data", written_data, "Data of the program");
	anonymous();
	reserved();
	shared();
	files(arguments[1]);
	program_as_data();
	deleted();
	fflush(stdout);
	for (int i = 0; i < 3; i++) {
		pthread_t thread;

		snprintf(texts[i], sizeof(texts[i]), "thread number %d", i);
		pthread_create(&thread, NULL, wait_here, texts[i]);
	}
	settle();
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
