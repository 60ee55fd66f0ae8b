/*
 * Shared by programs whose allocations are known by their sizes. They use nothing of libc that
 * would allocate.
 */
#pragma once

#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#define OUT_OF_LINE __attribute__((noinline, noclone))

/* A zeroed block of that size, to its last byte; its first word is kind. */
static OUT_OF_LINE void **block(size_t size, const char *const *kind)
{
	void **memory = calloc(1, size);

	if (!memory || malloc_usable_size(memory) != size)
		abort();
	memory[0] = (void *)kind;
	return memory;
}

/* Overwrite what dead frames left behind, and registers. */
static OUT_OF_LINE void scrub(void)
{
	volatile char dead[1 << 16];

	for (size_t i = 0; i < sizeof(dead); i++)
		dead[i] = 0;
	__asm__ volatile(""
			 :
			 :
			 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",
			   "r13", "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
			   "xmm6", "xmm7");
}
