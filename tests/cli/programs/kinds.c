/*
 * Allocations that are known by what they refer to:
 *
 *	5 of 0x28	with a table of operations at offset 8
 *	3 of 0x38	which begin with the address of a function
 *	2 of 0x48	which begin with that of a constant's second half
 *	4 of 0x58	nodes of a list, whose head is a variable
 *	2 of 0x68	with an empty value that many share
 *
 * Nothing of libc that would allocate is used.
 */

#include <stdlib.h>
#include <unistd.h>

struct operations {
	int (*open)(void);
	int (*close)(void);
	const char *name;
	long flags;
};

static int no_operation(void)
{
	return 0;
}

static const struct operations file_operations = { no_operation, no_operation, "file", 1 };
static const long table[4] = { 1, 2, 3, 4 };
static const long empty_value[2] = { 0, -1 };

static struct list {
	void **first, **last;
} list;

void *volatile kept[16];
static size_t kept_count;

static void **make(size_t size)
{
	void **memory = calloc(1, size);

	if (!memory)
		abort();
	kept[kept_count++] = memory;
	return memory;
}

static void link_node(void **node)
{
	node[0] = list.first ? (void *)list.first : (void *)&list;
	node[1] = &list;
	list.first = node;
}

int main(void)
{
	for (int i = 0; i < 5; i++)
		make(0x28)[1] = (void *)&file_operations;
	for (int i = 0; i < 3; i++)
		make(0x38)[0] = (void *)no_operation;
	for (int i = 0; i < 2; i++)
		make(0x48)[0] = (void *)&table[2];
	for (int i = 0; i < 4; i++)
		link_node(make(0x58));
	for (int i = 0; i < 2; i++)
		make(0x68)[3] = (void *)empty_value;
	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		return 1;
	for (;;)
		pause();
}
