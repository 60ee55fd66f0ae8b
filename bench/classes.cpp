/*
 * A program in C++ with a large heap: orders of three classes, with strings, vectors and a map.
 *
 *	classes [COUNT]
 *
 * It makes about COUNT allocations (ten million if not said). One order in twenty is lost, with
 * what it has. It says how many allocations operator new made, "used COUNT", then "ready", and
 * waits for its core to be taken.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <unistd.h>
#include <vector>

static uint64_t used;

__attribute__((noinline)) void *operator new(std::size_t size)
{
	void *block = std::malloc(size);

	if (!block)
		std::abort();
	used++;
	return block;
}

__attribute__((noinline)) void operator delete(void *block) noexcept
{
	used -= block != nullptr;
	std::free(block);
}

__attribute__((noinline)) void operator delete(void *block, std::size_t) noexcept
{
	operator delete(block);
}

namespace shop
{

struct Item {
	std::string name;
	uint64_t prices[8];
};

class Order
{
      public:
	explicit Order(uint64_t number)
	    : number(number), remark("to be sent by the end of the week " + std::to_string(number))
	{
		for (uint64_t i = 0; i < 4; i++)
			items.push_back(std::make_unique<Item>(
				Item{ "an item whose name is long " + std::to_string(i), { i } }));
	}
	virtual ~Order() = default;
	virtual uint64_t weight() const = 0;

      protected:
	uint64_t number;
	std::string remark;
	std::vector<std::unique_ptr<Item>> items;
	uint64_t history[16] = {};
};

struct Parcel : Order {
	using Order::Order;
	uint64_t weight() const override
	{
		return number;
	}
};

struct Letter : Order {
	using Order::Order;
	uint64_t weight() const override
	{
		return 20;
	}
	uint64_t stamps[4] = {};
};

static std::map<uint64_t, std::unique_ptr<Order>> orders;

} // namespace shop

enum { ONE_LOST_IN = 20 };

__attribute__((noinline)) static void make_all(uint64_t count)
{
	for (uint64_t number = 0; used < count; number++) {
		std::unique_ptr<shop::Order> order;

		if (number % 3 == 0)
			order = std::make_unique<shop::Parcel>(number);
		else
			order = std::make_unique<shop::Letter>(number);
		if (number % ONE_LOST_IN == 7)
			(void)order.release();
		else
			shop::orders.emplace(number * 7919 % 1000003 << 32 | number,
					     std::move(order));
	}
}

int main(int argc, char **argv)
{
	make_all(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10000000);
	std::printf("used %llu\nready\n", (unsigned long long)used);
	std::fflush(stdout);
	pause();
}
