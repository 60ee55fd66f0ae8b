/*
 * A program that leaks what its arguments say: KIND=COUNT...
 *
 *	plain		blocks that are no more than memory
 *	order		objects of a class
 *	ring		two objects each that refer to each other
 *	catalog		objects that hold containers
 *	big		blocks of their own mapping
 *	spare		objects that only a vector's spare capacity refers to
 *	shared		two orders each that refer to the same customer
 *	keep		objects that are in use to the end
 *	grow		no leak: buffers before the others, so that they are
 *			elsewhere
 *
 * With CHANGED an order has a member more.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace shop
{

struct Item {
	virtual ~Item() = default;
	Item *next = nullptr;
	char text[40] = "item";
};

struct Order : Item {
	long number[4] = { 1, 2, 3, 4 };
#ifdef CHANGED
	long more[4] = { 5, 6, 7, 8 };
#endif
	char *note = nullptr;
};

struct Invoice : Item {
	Item *order = nullptr;
};

struct Customer {
	virtual ~Customer() = default;
	Customer *other = nullptr;
	long number = 7;
};

struct Catalog {
	virtual ~Catalog() = default;
	std::vector<std::string> names;
	std::map<int, std::string> prices;
};

} // namespace shop

/* Never destroyed, so what they hold is in use when the program ends. */
static auto &kept = *new std::vector<shop::Item *>;
static auto &spare = *new std::vector<shop::Item *>;

/* The compiler must not leave out what is never used. */
template <typename T> static T *used(T *block)
{
	asm volatile("" : "+r"(block) : : "memory");
	return block;
}

static shop::Order *new_order(int number)
{
	auto *order = used(new shop::Order);

	/* Now and then a note, of any length. */
	if (number % 2) {
		order->note = static_cast<char *>(std::malloc(10 + number * 8));
		std::strcpy(order->note, "note");
	}
	return order;
}

static shop::Catalog *new_catalog(int number)
{
	auto *catalog = used(new shop::Catalog);

	for (int i = 0; i < 3 + number; i++) {
		std::string name(40 + number, 'n');

		catalog->names.push_back(name);
		catalog->prices[i] = name;
	}
	return catalog;
}

static void new_ring(int number)
{
	/* Either may be at the lower address. */
	shop::Order *order = number % 2 ? used(new shop::Order) : nullptr;
	auto *invoice = used(new shop::Invoice);

	if (!order)
		order = used(new shop::Order);
	order->next = invoice;
	invoice->order = order;
}

static void new_shared()
{
	auto *customer = used(new shop::Customer);
	auto *one = used(new shop::Invoice);
	auto *other = used(new shop::Invoice);

	one->order = reinterpret_cast<shop::Item *>(customer);
	other->order = reinterpret_cast<shop::Item *>(customer);
}

static __attribute__((noinline)) void make(const char *kind, int number)
{
	if (!std::strcmp(kind, "plain"))
		std::memset(used(std::malloc(100)), 'p', 100);
	else if (!std::strcmp(kind, "big"))
		std::memset(used(std::malloc(300000)), 'b', 300000);
	else if (!std::strcmp(kind, "order"))
		new_order(number);
	else if (!std::strcmp(kind, "ring"))
		new_ring(number);
	else if (!std::strcmp(kind, "catalog"))
		new_catalog(number);
	else if (!std::strcmp(kind, "shared"))
		new_shared();
	else if (!std::strcmp(kind, "keep"))
		kept.push_back(new_order(number));
	else if (!std::strcmp(kind, "spare"))
		spare.push_back(new_order(number));
	else if (!std::strcmp(kind, "grow"))
		std::free(used(std::malloc(1000 + number * 64)));
	else
		std::abort();
}

static __attribute__((noinline)) void wipe()
{
	volatile char stack[65536];

	for (size_t i = 0; i < sizeof(stack); i++)
		stack[i] = 0;
}

int main(int count, char **arguments)
{
	kept.reserve(8);
	spare.reserve(64);
	for (int i = 1; i < count; i++) {
		char kind[20];
		int number;

		if (std::sscanf(arguments[i], "%19[a-z]=%d", kind, &number) !=
		    2)
			return 64;
		for (int j = 0; j < number; j++)
			make(kind, j);
	}
	spare.clear();
	wipe();
	/* What is in registers now is in use. */
	make("keep", 0);
	make("keep", 1);
	std::puts("done");
	return 0;
}
