/*
 * Things that stand in known places of the memory:
 *
 *	3 app::Session	each with a short, a long and an empty std::string
 *	4 nodes		of a std::map from std::string
 *	1 of 0x508	which static memory, a used and a free allocation, and a
 *			stack refer to
 *	1 of 0x708	with text and a word of 32 bits in it
 *	1 of 0x38	which begins with the address of a function that main()
 *			calls
 *
 * and 5 pages that are reserved, without any rights.
 */

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace app
{
struct Session {
	virtual ~Session()
	{
	}
	std::string user;
	std::string agent;
	std::string note;
};
} // namespace app

app::Session *sessions[3];
std::map<std::string, int> settings;
void *target;
void **holder;
char *texts;
void **caller;
volatile char one = 1;

extern "C" __attribute__((noinline)) int called(int number)
{
	asm volatile("" : "+r"(number));
	return number;
}

static void fill_sessions()
{
	for (int i = 0; i < 3; i++) {
		sessions[i] = new app::Session;
		sessions[i]->user = "user" + std::to_string(i);
		sessions[i]->agent = std::string(40, 'a' + i);
	}
	for (const char *name : { "colour", "depth", "size", "speed" })
		settings[name] = 1;
}

static void fill_places()
{
	void *volatile *freed = (void *volatile *)malloc(0x600);

	target = malloc(0x508);
	holder = (void **)calloc(1, 0x88);
	holder[2] = target;
	freed[40] = target;
	/* Keep it from becoming a part of the top. */
	texts = (char *)calloc(1, 0x708);
	free((void *)freed);
	strcpy(texts + 0x13, "heapcore was here\n");
	strcpy(texts + 0x103, "heapcore was there");
	/* Nowhere else, not even in the code. */
	for (int i = 0; i < 4; i++)
		texts[0x204 + i] = (char)("\xdf\xc1\xec\xff"[i] ^ one);
	caller = (void **)calloc(1, 0x38);
	caller[0] = (void *)called;
}

int main()
{
	void *volatile on_stack;

	fill_sessions();
	fill_places();
	on_stack = target;
	mmap(nullptr, 0x5000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (called(1) == 2)
		return 1;
	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		return 1;
	pause();
	return on_stack != target;
}
