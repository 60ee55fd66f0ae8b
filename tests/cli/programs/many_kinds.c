/*
 * Many kinds: 24 by their first word, which is the address of a constant. Beside them, of nothing
 * known: 253 sizes of numbers, and bodies of text behind two bytes that are none. All are lost but
 * the last ones. Says so and waits to be cored.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KINDS = 24, SIZES = 253, BODIES = 3, BODY = 5000 };

static const uint64_t constants[KINDS][2] = { { 1 } };
static void *volatile kept;

/* The later, the more. */
static void lose_kind(size_t kind)
{
	for (size_t i = 0; i <= kind; i++) {
		uint64_t *object = malloc(24);

		object[0] = (uint64_t)(uintptr_t)constants[kind];
		object[1] = object[2] = 1;
		kept = object;
	}
}

static void lose_numbers(size_t size)
{
	kept = memset(malloc(size), 3, size);
}

static void lose_body(void)
{
	char *body = calloc(1, BODY);

	memcpy(body, "\x85\x05\0\0\0\0\0\0", 8);
	memset(body + 8, 'x', BODY - 16);
	memcpy(body + 8, "<html>", 6);
	kept = body;
}

int main(void)
{
	for (size_t i = 0; i < KINDS; i++)
		lose_kind(i);
	for (size_t i = 0; i < SIZES; i++)
		lose_numbers(40 + 16 * i);
	for (size_t i = 0; i < BODIES; i++)
		lose_body();
	kept = malloc(24);
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
