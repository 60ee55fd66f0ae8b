#include "analyzer/base/hash.h"

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

uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = hash_add(hash, (unsigned char)*text);
	return hash;
}
