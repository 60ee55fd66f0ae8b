/*
 * A FILE and its buffer, held by static memory, two lines read from it, held by a struct of two
 * pointers each with its size, and an obstack of two chunks.
 */
#include <obstack.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct lines {
	char *first;
	size_t first_size;
	char *second;
	size_t second_size;
};

#define obstack_chunk_alloc malloc
#define obstack_chunk_free  free

static struct obstack objects;
static FILE *stream;
static struct lines *lines;

int main(void)
{
	stream = fopen("/proc/self/status", "r");
	lines = calloc(1, sizeof(*lines));
	if (!stream || !lines || getline(&lines->first, &lines->first_size, stream) < 0 ||
	    getline(&lines->second, &lines->second_size, stream) < 0)
		return 1;
	obstack_init(&objects);
	if (!obstack_alloc(&objects, 3000) || !obstack_alloc(&objects, 3000))
		return 1;
	if (write(STDOUT_FILENO, "ready\n", 6) < 0)
		return 1;
	for (;;)
		pause();
}
