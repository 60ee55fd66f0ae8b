/*
 * A heap on which the examples of the help and the manual have something to
 * show: sessions in a list, each with a map of long texts, a vector and a
 * pointer to memory that is free again; some of them lost. It says "older",
 * and waits for a line, for a core to be taken when most are not there yet.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace app
{
template <typename Key, typename Value> class Map
{
      public:
	virtual ~Map() = default;
	std::map<Key, Value> elements;
};

class Session
{
      public:
	explicit Session(Session *next) : next(next), buffer(malloc(200))
	{
		for (int i = 0; i < 4; i++)
			texts[i] = "a text too long to be kept in its string";
		history.resize(100);
		numbers.elements[1] = 2;
	}
	virtual ~Session() = default;

	/* The pointer stays. */
	void release()
	{
		free(buffer);
		if (next)
			next->release();
	}

      private:
	Session *next; /* at offset 8 */
	void *buffer;
	std::map<int, std::string> texts;
	std::vector<int> history;
	Map<int, int> numbers;
	std::string name = "short";
};
} // namespace app

static app::Session *sessions;
static volatile unsigned int magic = 0xcafe;
static const char *volatile text = "the password";
static volatile unsigned char bytes[] = { 0xde, 0xad, 0xbe, 0xef };
static app::Map<int, int> *map;
static char *big;

static __attribute__((noinline)) void lose(int count)
{
	app::Session *volatile lost = nullptr;

	for (int i = 0; i < count; i++)
		lost = new app::Session(lost);
	lost = nullptr;
}

int main()
{
	app::Session *volatile held;

	char line[16];

	lose(5);
	puts("older");
	fflush(stdout);
	if (read(STDIN_FILENO, line, sizeof(line)) < 0)
		return 1;
	memset(malloc(3000), 1, 3000);
	mmap(nullptr, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 20; i++)
		sessions = new app::Session(sessions);
	map = new app::Map<int, int>;
	for (int i = 0; i < 10; i++)
		map->elements[i] = i;
	big = static_cast<char *>(calloc(1, 300000));
	held = new app::Session(nullptr);
	sessions->release();
	puts("ready");
	fflush(stdout);
	pause();
	delete held;
	return big[0] + text[0] + (int)magic + bytes[0];
}
