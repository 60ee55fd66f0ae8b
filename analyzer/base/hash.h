/*
 * Hashes that are the same in each run, for fingerprints. What a dump may choose goes into tables
 * by secret.h.
 */
#ifndef ANALYZER_BASE_HASH_H
#define ANALYZER_BASE_HASH_H

#include <stdint.h>

/* A further word for a hash that began with any number, such as 0; the order counts. */
uint64_t hash_add(uint64_t hash, uint64_t word);

/* The same of each byte of a text. */
uint64_t hash_text(uint64_t hash, const char *text);

#endif
