#include "analyzer/gate/label.h"

#include <stdio.h>

/* The finalizer of splitmix64. */
static uint64_t mix(uint64_t word)
{
	word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
	return word ^ word >> 31;
}

uint64_t hash_add(uint64_t hash, uint64_t word)
{
	return mix(hash + UINT64_C(0x9e3779b97f4a7c15) + mix(word));
}

uint64_t label_hash(struct label label)
{
	uint64_t hash = label.is_pattern;

	for (const char *text = label.text; *text; text++)
		hash = hash_add(hash, (unsigned char)*text);
	return hash;
}

char *label_name(struct label label)
{
	char *name;

	if (asprintf(&name, "%s%s", label.is_pattern ? "%" : "", label.text) < 0)
		return NULL;
	return name;
}
