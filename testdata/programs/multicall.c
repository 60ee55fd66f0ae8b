/*
 * One of many programs in a file, as busybox has them: each defines a struct globals of its own,
 * and one pointer leads to whichever runs; before that stands another structure in the same block.
 * For each item of the program that runs a line "item NUMBER", its address; for a block that looks
 * like one of its structures, and to which a pointer of a type of one meaning leads, "not NUMBER".
 */
#include "truth.h"

#include <stdlib.h>

struct globals;

struct lone {
	long numbers[64];
};

struct globals *volatile globals;
struct lone *volatile lone;

void *multicall_begin(void);
void *multicall_lone(void);
int multicall_other(void);

int main(int argc, char **argv)
{
	(void)argv;
	truth_open();
	if (argc > 1)
		return multicall_other();
	globals = multicall_begin();
	lone = multicall_lone();
	truth_number("not", (uintptr_t)lone);
	truth_ready();
}
