/*
 * Loaded into a backend of PostgreSQL: has a memory context of its own, and loses 200 blocks of
 * malloc's. What it needs of the server is declared here, as few have its headers.
 */
#include <stdlib.h>
#include <string.h>

enum { LOST = 200, LOST_SIZE = 5000, CHUNKS = 3000, CHUNK = 1500, MOST = 8 << 20 };

typedef struct MemoryContextData *MemoryContext;

struct magic {
	int length, version, most_arguments, most_keys, name_length, by_value;
	char build[32];
};

extern MemoryContext TopMemoryContext;

MemoryContext AllocSetContextCreateInternal(MemoryContext parent, const char *name, size_t least,
					    size_t first, size_t most);
void *MemoryContextAlloc(MemoryContext context, size_t size);

/* MAJOR is the version of the server. */
const struct magic *Pg_magic_func(void)
{
	static const struct magic magic = {
		sizeof(magic), MAJOR * 100, 100, 32, 64, 1, "PostgreSQL"
	};

	return &magic;
}

static __attribute__((noinline)) void lose(void)
{
	volatile char *volatile lost = malloc(LOST_SIZE);

	memset((void *)lost, 1, LOST_SIZE);
	lost = NULL;
}

void _PG_init(void)
{
	MemoryContext plans =
		AllocSetContextCreateInternal(TopMemoryContext, "planned routes", 0, 8192, MOST);

	for (int i = 0; i < LOST; i++)
		lose();
	for (int i = 0; i < CHUNKS; i++)
		memset(MemoryContextAlloc(plans, CHUNK), 1, CHUNK);
}
