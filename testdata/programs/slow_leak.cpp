/*
 * A server under load that slowly leaks.
 *
 * Each line on standard input lets it serve so many requests, after which it
 * writes how many sessions it has lost so far. Requests come and go, and caches
 * of pages, texts and blocks of any size are now larger, now smaller. One
 * request in ten loses its session: nobody frees it, or what it holds; a
 * registry that is never asked again still refers to it.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace server
{
/* The same numbers in each run. */
static uint64_t state = 88172645463325252;

static unsigned int chance(unsigned int below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned int)(state >> 32) % below;
}

struct Profile {
	virtual ~Profile() = default;
	char rights[100] = {};
};

struct Session {
	virtual ~Session() = default;
	std::unique_ptr<Profile> profile = std::make_unique<Profile>();
	std::map<int, int> counters = { { 1, 1 }, { 2, 2 } };
	char token[200] = {};
};

struct Page {
	virtual ~Page() = default;
	std::string text = std::string(100 + chance(400), 'p');
};

static std::vector<std::unique_ptr<Page>> pages;
static std::unordered_map<int, std::string> texts;
static std::vector<std::unique_ptr<char[]>> blocks;
static std::vector<Session *> registry;
static unsigned long lost;

/* Large caches now, small ones then, whatever was asked for. */
static void fill_caches(size_t size)
{
	while (pages.size() < size)
		pages.push_back(std::make_unique<Page>());
	while (pages.size() > size)
		pages.erase(pages.begin() + chance((unsigned int)pages.size()));
	while (blocks.size() < size)
		blocks.push_back(std::make_unique<char[]>(16 + chance(2000)));
	while (blocks.size() > size)
		blocks.erase(blocks.begin() +
			     chance((unsigned int)blocks.size()));
	while (texts.size() < size)
		/* Of 30 bits, one with what stood behind it looks like an address in registry. */
		texts[(int)chance(1 << 20)] = std::string(40, 't');
	while (texts.size() > size)
		texts.erase(texts.begin());
}

static void serve(int number)
{
	auto session = std::make_unique<Session>();
	auto answer = std::make_unique<Page>();

	if (chance(4) == 0)
		pages[chance((unsigned int)pages.size())] = std::move(answer);
	if (number % 10 == 0) {
		registry.push_back(session.release());
		lost++;
	}
}
} // namespace server

int main()
{
	static const size_t sizes[] = { 1000, 1500, 700, 1300, 900 };
	int requests;

	server::registry.reserve(1 << 20);
	for (int phase = 0; std::cin >> requests; phase++) {
		server::fill_caches(sizes[phase % 5]);
		for (int i = 0; i < requests; i++)
			server::serve(i);
		std::cout << server::lost << std::endl;
	}
	return 0;
}
