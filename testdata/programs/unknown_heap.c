/*
 * A program with much memory that malloc() does not know:
 *
 *	objects	mappings full of objects that refer to each other, as a runtime of its own has
 *	few	the same, but little
 *	numbers	a mapping full of numbers, which has the only address of a block
 *	blocks	the objects are in large blocks of malloc(), as of a runtime that uses it
 *	pool	one block of malloc() full of objects
 *
 * One block of malloc() is in use, none is lost.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CHUNK = 1 << 20, CHUNKS = 16 };

struct object {
	struct object *next, *other;
	uintptr_t number, hash;
};

static void *chunks[CHUNKS];
static size_t chunk_count = CHUNKS, chunk_size = CHUNK;

static void *get_chunk(int in_heap)
{
	void *place = in_heap ? malloc(chunk_size)
			      : mmap(NULL, chunk_size, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!place || place == MAP_FAILED)
		exit(1);
	return place;
}

static void fill_with_objects(int in_heap)
{
	size_t count = chunk_size / sizeof(struct object);

	for (size_t i = 0; i < chunk_count; i++)
		chunks[i] = get_chunk(in_heap);
	for (size_t i = 0; i < chunk_count; i++) {
		struct object *objects = chunks[i], *others = chunks[(i + 1) % chunk_count];

		for (size_t j = 0; j < count; j++)
			objects[j] = (struct object){ &others[(j * 7 + 1) % count],
						      &others[(j * 5 + 3) % count], j, j * 77 };
	}
}

static void fill_with_numbers(void)
{
	uint64_t *numbers;

	chunk_size = (size_t)CHUNKS * CHUNK;
	numbers = chunks[0] = get_chunk(0);
	for (size_t i = 0; i < chunk_size / sizeof(*numbers); i++)
		numbers[i] = i * 1103515245 + 12345;
	numbers[4711] = (uintptr_t)strcpy(malloc(100), "held by the numbers");
}

int main(int count, char *arguments[])
{
	const char *mode = count > 1 ? arguments[1] : "objects";

	if (strcmp(mode, "few") == 0)
		chunk_count = 1;
	if (strcmp(mode, "pool") == 0) {
		chunk_size *= chunk_count;
		chunk_count = 1;
	}
	if (strcmp(mode, "numbers") == 0)
		fill_with_numbers();
	else
		fill_with_objects(strcmp(mode, "blocks") == 0 || strcmp(mode, "pool") == 0);
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
