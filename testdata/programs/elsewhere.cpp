/*
 * A program whose core is to be read where little of it is known: strings that
 * are all long, objects of classes, thread-local ones, some that are lost. It
 * waits in the end, or with an argument, ends.
 */
#include "settle.h"

#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

static const int STRINGS = 500, SESSIONS = 100, LOST = 10;

struct Session {
	std::string name = std::string(50, 'n');

	virtual ~Session() = default;
};

struct Admin : Session {
	std::string rights = std::string(60, 'r');
};

std::vector<std::string> names;
std::vector<std::unique_ptr<Session>> sessions;
/* Nothing but the block of a thread refers to it. */
thread_local std::unique_ptr<std::string> local;
static std::unique_ptr<std::string> (*volatile make)();

static std::unique_ptr<std::string> make_string()
{
	return std::make_unique<std::string>(80, 'l');
}

static void wait_for_ever()
{
	local = make();
	for (;;)
		pause();
}

/* Far below the frames that stay, so that nothing of it is left in them. */
static __attribute__((noinline)) void lose()
{
	volatile char room[4096] = { 0 };

	for (int i = 0; i < LOST; i++)
		make().release();
	room[0] = 1;
}

static __attribute__((noinline)) void clear()
{
	volatile char room[16384];

	for (size_t i = 0; i < sizeof(room); i++)
		room[i] = 0;
}

int main(int count, char **)
{
	make = make_string;
	for (int i = 0; i < STRINGS; i++)
		names.push_back("longer than what fits into it, number " +
				std::to_string(i));
	for (int i = 0; i < SESSIONS; i++)
		sessions.emplace_back(i % 2 ? new Session : new Admin);
	lose();
	std::thread(wait_for_ever).detach();
	std::thread(wait_for_ever).detach();
	settle();
	clear();
	puts("ready");
	fflush(stdout);
	if (count > 1)
		_exit(0);
	wait_for_ever();
}
