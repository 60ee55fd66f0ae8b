/*
 * Memory that accumulates in a few places: a map, a list whose first node a variable has, a table
 * below a table, and a word on the stack that refers into the map. Says of each how many bytes it
 * holds. With an argument, it also loses jobs, and with "abort" it ends so.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <map>
#include <string>
#include <unistd.h>

static size_t held;

static void *hold(size_t size)
{
	void *block = calloc(1, size);

	held += malloc_usable_size(block);
	return block;
}

void *operator new(size_t size)
{
	return hold(size);
}

void operator delete(void *block) noexcept
{
	held -= malloc_usable_size(block);
	free(block);
}

void operator delete(void *block, size_t) noexcept
{
	operator delete(block);
}

struct session {
	session *next;
	char *name;
};

struct table {
	void **rows[2];
};

struct registry {
	std::map<int, std::string> people;
};

std::map<int, std::string> orders;
registry *members;
session *sessions;
table *tables;

static void say(const char *owner)
{
	printf("%s %zu\n", owner, held);
	held = 0;
}

static void __attribute__((noinline)) fill()
{
	for (int i = 0; i < 20000; i++)
		orders[i] = std::string(50, 'x');
	say("orders");
	for (int i = 0; i < 10000; i++) {
		session *first = (session *)hold(sizeof(*first));

		first->name = (char *)hold(100);
		first->next = sessions;
		sessions = first;
	}
	say("sessions");
	members = new registry;
	for (int i = 0; i < 15000; i++)
		members->people[i] = std::string(50, 'x');
	say("members");
	tables = (table *)hold(sizeof(*tables));
	held = 0;
	for (int i = 0; i < 2; i++) {
		tables->rows[i] = (void **)hold(2000 * sizeof(void *));
		for (int row = 0; row < 2000; row++)
			tables->rows[i][row] = hold(300 + 100 * i);
		say(i ? "second" : "first");
	}
}

struct job {
	virtual ~job() = default;
	char text[184] = "";
};

static void __attribute__((noinline)) lose()
{
	for (int i = 0; i < 1000; i++) {
		job *volatile lost = new job;

		lost = nullptr;
		(void)lost;
	}
	say("job");
}

static void __attribute__((noinline)) clear()
{
	volatile char stack[65536];

	for (char volatile &byte : stack)
		byte = 0;
}

int main(int count, char **arguments)
{
	std::string *volatile local;

	fill();
	if (count > 1) {
		lose();
		clear();
	}
	if (count > 1 && strcmp(arguments[1], "abort") == 0)
		abort();
	local = &orders[1000];
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
	return local->size();
}
