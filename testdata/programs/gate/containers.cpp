/*
 * C++ containers and objects that are lost.
 *
 *	containers CASE leak|clean
 */
#include "testdata/programs/gate/cases.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace
{

struct session {
	virtual ~session() = default;
	std::string name = std::string(80, 'n');
	std::shared_ptr<session> peer;
};

void lose_vector(bool leak)
{
	auto *names = new std::vector<std::string>;

	for (int i = 0; i < 12; i++)
		names->push_back(std::string(100, 'x'));
	if (!leak)
		delete names;
}

void lose_map(bool leak)
{
	auto *numbers = new std::map<int, int>;

	for (int i = 0; i < 50; i++)
		(*numbers)[i] = i;
	if (!leak)
		delete numbers;
}

void lose_cycle(bool leak)
{
	auto one = std::make_shared<session>();
	auto two = std::make_shared<session>();

	one->peer = two;
	two->peer = one;
	if (!leak)
		two->peer.reset();
}

/* A pointer to an array of objects points behind their count. */
session *kept;

void lose_array(bool leak)
{
	for (int i = 0; i < 3; i++) {
		if (!leak)
			delete[] kept;
		kept = new session[4];
	}
}

} // namespace

const struct leak_case cases[] = {
	{ "vector", lose_vector }, { "map", lose_map },
	{ "cycle", lose_cycle },   { "array", lose_array },
	{ nullptr, nullptr },
};
