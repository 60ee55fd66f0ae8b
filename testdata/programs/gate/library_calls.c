/*
 * Allocations by functions of the C library that their callers must free, and do not with "leak".
 *
 *	library_calls CASE leak|clean
 */
#include "testdata/programs/gate/cases.h"

#include <dirent.h>
#include <locale.h>
#include <malloc.h>
#include <obstack.h>
#include <pthread.h>
#include <regex.h>
#include <search.h>
#include <stdlib.h>

#define obstack_chunk_alloc malloc
#define obstack_chunk_free  free

static void nothing(bool leak)
{
	void *volatile block = malloc(0);

	if (!leak)
		free(block);
}

static void aligned(bool leak)
{
	void *volatile blocks[] = { aligned_alloc(64, 192), memalign(32, 104), valloc(120) };

	for (int i = 0; i < 3; i++)
		if (!leak)
			free(blocks[i]);
	memset((void *)blocks, 0, sizeof(blocks));
}

static void resized(bool leak)
{
	char *volatile block = reallocarray(NULL, 50, 40);

	block = realloc(block, 120);
	if (!leak)
		free(block);
}

/* From here on, blocks have mappings of their own. */
static void mapped(bool leak)
{
	char *volatile block;

	mallopt(M_MMAP_THRESHOLD, 65536);
	block = malloc(17 * 4096 - 24);
	if (!leak)
		free(block);
}

static void copied(bool leak)
{
	char *volatile text[3] = { strdup("a copy"), strndup("another", 4) };

	if (asprintf((char **)&text[2], "%d blocks of text", 3) < 0)
		abort();
	for (int i = 0; i < 3; i++)
		if (!leak)
			free(text[i]);
	memset((void *)text, 0, sizeof(text));
}

static void line(bool leak)
{
	char text[] = "first\nsecond\n", *buffer = NULL;
	FILE *file = fmemopen(text, sizeof(text), "r");
	size_t size = 0;

	while (getline(&buffer, &size, file) > 0)
		;
	if (!leak)
		free(buffer);
	fclose(file);
}

static void stream(bool leak)
{
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);

	fprintf(file, "what is written ends up in a block");
	fclose(file);
	if (!leak)
		free(text);
	text = NULL;
	__asm__ volatile("" : : "r"(&text) : "memory");
}

static void directory(bool leak)
{
	DIR *volatile opened = opendir("/");

	if (!leak)
		closedir(opened);
}

static void expression(bool leak)
{
	regex_t compiled;

	if (regcomp(&compiled, "a(b|c)*d", REG_EXTENDED))
		abort();
	if (!leak)
		regfree(&compiled);
	memset(&compiled, 0, sizeof(compiled));
	__asm__ volatile("" : : "r"(&compiled) : "memory");
}

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void tree(bool leak)
{
	static const char *const words[] = { "one", "two", "three", "four" };
	void *root = NULL;

	for (int i = 0; i < 4; i++)
		tsearch(words[i], &root, compare);
	if (!leak)
		tdestroy(root, (void (*)(void *))forget);
	root = NULL;
	__asm__ volatile("" : : "r"(&root) : "memory");
}

static void pool(bool leak)
{
	struct obstack stack;

	obstack_init(&stack);
	for (int i = 0; i < 300; i++)
		obstack_copy(&stack, "thirty bytes or so of text....", 31);
	if (!leak)
		obstack_free(&stack, NULL);
	memset(&stack, 0, sizeof(stack));
	__asm__ volatile("" : : "r"(&stack) : "memory");
}

/* The environment has a copy of the name and the value. */
static void environment(bool leak)
{
	char *text = strdup("NAME=value");

	putenv(text);
	setenv("OTHER", "value", 1);
	if (leak)
		unsetenv("NAME");
}

/* The buffer is the program's own. */
static void file(bool leak)
{
	FILE *volatile opened = fopen("/dev/null", "w");
	char *volatile buffer = malloc(1000);

	setvbuf(opened, buffer, _IOFBF, 1000);
	fprintf(opened, "text");
	fclose(opened);
	if (!leak)
		free(buffer);
}

/* glibc knows all open ones, and so nobody has to close them. */
static void open_file(bool leak)
{
	FILE *volatile opened = fopen("/dev/null", "w");

	fprintf(opened, "text");
	opened = NULL;
	if (leak)
		opened = (FILE *)strdup("no file at all");
	opened = NULL;
}

/* Data of a thread, for which no destructor was named. */
static pthread_key_t key;

static void *set_data(void *unused)
{
	char *block = malloc(120);

	pthread_setspecific(key, block);
	forget();
	return NULL;
}

static void thread_data(bool leak)
{
	pthread_t thread;

	pthread_key_create(&key, leak ? NULL : free);
	pthread_create(&thread, NULL, set_data, NULL);
	pthread_join(thread, NULL);
}

static void *give_back(void *leak)
{
	char *block = malloc(120);

	memset(block, 1, 120);
	return block;
}

static void thread_result(bool leak)
{
	pthread_t thread;
	void *result;

	pthread_create(&thread, NULL, give_back, NULL);
	pthread_join(thread, &result);
	if (!leak)
		free(result);
	result = NULL;
	__asm__ volatile("" : : "r"(&result) : "memory");
}

const struct leak_case cases[] = {
	{ "nothing", nothing },
	{ "aligned", aligned },
	{ "resized", resized },
	{ "mapped", mapped },
	{ "copied", copied },
	{ "line", line },
	{ "stream", stream },
	{ "directory", directory },
	{ "expression", expression },
	{ "tree", tree },
	{ "pool", pool },
	{ "environment", environment },
	{ "file", file },
	{ "open-file", open_file },
	{ "thread-data", thread_data },
	{ "thread-result", thread_result },
	{ NULL, NULL },
};
