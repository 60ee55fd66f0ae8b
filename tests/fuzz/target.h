/*
 * The contract of a fuzz target: libFuzzer's interface.
 *
 * Each file of targets/ is a program. With -DFUZZ=ON libFuzzer drives it, which looks for inputs
 * that reach new code; else driver.c does, which runs what is in the corpus, and mutations of it
 * that are the same each time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Called once; returns 0. */
int LLVMFuzzerInitialize(int *count, char ***arguments);

/* Returns 0; whatever is wrong ends the program. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Change the input in place; returns its new size, at most most. */
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned int seed);

/* The driver's mutation of plain bytes, of the same kind. */
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t most);
