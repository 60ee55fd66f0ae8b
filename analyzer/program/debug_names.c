#include "analyzer/program/debug_names.h"

#include <libiberty/demangle.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

/* A name may be as long as its file wants; nobody reads that. */
enum { LONGEST_NAME = 1 << 14 };

void name_pool_deinit(struct name_pool *pool)
{
	for (size_t i = 0; i < pool->capacity; i++)
		free(pool->slots[i]);
	free(pool->slots);
	*pool = (struct name_pool){ 0 };
}

/* FNV-1a */
static uint64_t hash_of(const char *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	return hash;
}

static char **find_slot(char **slots, size_t capacity, const char *text)
{
	size_t slot = hash_of(text) & (capacity - 1);

	while (slots[slot] && strcmp(slots[slot], text) != 0)
		slot = (slot + 1) & (capacity - 1);
	return &slots[slot];
}

static bool grow(struct name_pool *pool)
{
	size_t capacity = pool->capacity ? 2 * pool->capacity : 64;
	char **slots;

	if (2 * (pool->count + 1) <= pool->capacity)
		return true;
	slots = calloc(capacity, sizeof(*slots));
	if (!slots)
		return false;
	for (size_t i = 0; i < pool->capacity; i++)
		if (pool->slots[i])
			*find_slot(slots, capacity, pool->slots[i]) =
				pool->slots[i];
	free(pool->slots);
	pool->slots = slots;
	pool->capacity = capacity;
	return true;
}

const char *name_pool_keep(struct name_pool *pool, char *text)
{
	_cleanup_(free) char *owned = text;
	char **slot;

	if (!owned || !grow(pool))
		return NULL;
	slot = find_slot(pool->slots, pool->capacity, owned);
	if (!*slot) {
		*slot = take(owned);
		pool->count++;
	}
	return *slot;
}

const char *name_pool_print(struct name_pool *pool, const char *format, ...)
{
	va_list arguments;
	char *text;
	int length;

	va_start(arguments, format);
	length = vasprintf(&text, format, arguments);
	va_end(arguments);
	return length < 0 ? NULL : name_pool_keep(pool, text);
}

const char *name_demangle(struct name_pool *pool, const char *name)
{
	char *text = NULL;
	const char *kept;

	if (name[0] != '_' || strnlen(name, LONGEST_NAME) == LONGEST_NAME)
		return name;
	if (name[1] == 'D')
		text = dlang_demangle(name, DMGL_PARAMS);
	if (!text)
		text = cplus_demangle(name,
				      DMGL_AUTO | DMGL_PARAMS | DMGL_ANSI);
	kept = text ? name_pool_keep(pool, text) : NULL;
	return kept ? kept : name;
}
