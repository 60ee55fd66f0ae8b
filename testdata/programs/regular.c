/*
 * Regular expressions of the C library, of whose parts the program has no types: for each a line
 * with the address of its automaton. Then some are lost, and notes of a size that none of their
 * parts has: for each of these a line with its address. Built with -DMANY, more functions call
 * regcomp() than are named.
 */
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 20, LOST = 4 };

struct rule {
	const char *source;
	regex_t pattern;
};

static struct rule rules[COUNT];

static void compile_rules(void)
{
	static char sources[COUNT][32];

	for (int i = 0; i < COUNT; i++) {
		snprintf(sources[i], sizeof(sources[i]), "^(a|b%d)*[x-z]+(c|d)$", i);
		rules[i].source = sources[i];
		if (regcomp(&rules[i].pattern, sources[i], REG_EXTENDED))
			abort();
		regexec(&rules[i].pattern, "aaxyzc", 0, NULL, 0);
		printf("%lx\n", (unsigned long)rules[i].pattern.__buffer);
	}
}

/* Other values of these sizes are held. */
struct pair {
	struct pair *next;
	long number;
};

struct note {
	struct note *next;
	long numbers[124];
};

static struct pair *pairs;
static struct note *notes;

static __attribute__((noinline)) void keep_pair(void)
{
	struct pair *pair = malloc(sizeof(*pair));

	*pair = (struct pair){ pairs, 7 };
	pairs = pair;
}

static __attribute__((noinline)) void make_note(int is_lost)
{
	struct note *note = malloc(sizeof(*note));

	*note = (struct note){ is_lost ? NULL : notes, { 7 } };
	if (is_lost)
		printf("note %lx\n", (unsigned long)note);
	else
		notes = note;
}

static __attribute__((noinline)) void lose_rules(void)
{
	for (int i = 0; i < LOST; i++) {
		regex_t pattern;

		if (regcomp(&pattern, "^(a|b)*[x-z]+(c|d)$", REG_EXTENDED))
			abort();
		printf("lost %lx\n", (unsigned long)pattern.__buffer);
		memset(&pattern, 0, sizeof(pattern));
	}
}

#ifdef MANY
#define CHECK(name, flags)                                             \
	static __attribute__((noinline)) void name(const char *source) \
	{                                                              \
		regex_t pattern;                                       \
		if (regcomp(&pattern, source, flags))                  \
			abort();                                       \
		regfree(&pattern);                                     \
	}
CHECK(check_host, REG_NOSUB)
CHECK(check_path, REG_EXTENDED)
#endif

/* Lost pointers may stand in old frames. */
static __attribute__((noinline)) void clear_stack(void)
{
	volatile char stack[1 << 16];

	for (size_t i = 0; i < sizeof(stack); i++)
		stack[i] = 0;
}

int main(void)
{
	compile_rules();
	for (int i = 0; i < COUNT; i++) {
		keep_pair();
		make_note(0);
	}
	for (int i = 0; i < LOST; i++)
		make_note(1);
	lose_rules();
#ifdef MANY
	check_host("[a-z]*");
	check_path("/.*");
#endif
	clear_stack();
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
