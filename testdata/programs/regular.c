/*
 * Regular expressions of the C library, of whose parts the program has no types: for each a line
 * with the address of its automaton.
 */
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { COUNT = 20 };

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

int main(void)
{
	compile_rules();
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
