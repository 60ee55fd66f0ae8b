/*
 * Runs of bytes: whether they are zero, and what they hash to.
 *
 * Hashes are the same in each run, for fingerprints. For tables of what a dump chooses, the hash
 * begins with secret_factor() (table.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* True if all bytes are zero: the first is, and each equals the one before it. */
static inline bool bytes_are_zero(const uint8_t *bytes, size_t size)
{
	return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

/* The finalizer of splitmix64. */
static inline uint64_t hash_mix(uint64_t word)
{
	word = (word ^ word >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	word = (word ^ word >> 27) * UINT64_C(0x94d049bb133111eb);
	return word ^ word >> 31;
}

/* Add a word to a hash that began with any number, such as 0; the order counts. */
static inline uint64_t hash_add(uint64_t hash, uint64_t word)
{
	return hash_mix(hash + UINT64_C(0x9e3779b97f4a7c15) + hash_mix(word));
}

/* Add each byte of the text. */
static inline uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = hash_add(hash, (unsigned char)*text);
	return hash;
}
