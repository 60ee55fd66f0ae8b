/*
 * Plain structures that only members of C++ objects, and elements of containers, lead to: for each
 * a line "ADDRESS TYPE".
 */
#include <cstdio>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unistd.h>
#include <unordered_map>
#include <vector>

namespace shop
{

struct Note {
	Note *next;
	const char *text;
	long number;
};

struct Price {
	long amount;
	const Note *note;
	double rate, tax, rebate;
};

struct Item {
	Price *price;
	int count;
};

struct Address {
	const char *street;
	const Note *note;
	int number, floor, door;
};

struct Parcel {
	Address *from, *to;
	double weight;
};

struct Route {
	Parcel *first;
	int length;
	Note *note;
	long stops[6];
};

class Account
{
      public:
	virtual ~Account() = default;
	virtual int kind() const = 0;
	int number = 0;
};

class Company : public Account
{
      public:
	int kind() const override
	{
		return 1;
	}
	Address *seat = nullptr;
	std::vector<Item> items;
	std::list<Price *> prices;
};

class Person : public Account
{
      public:
	int kind() const override
	{
		return 2;
	}
	Parcel *parcel = nullptr;
	std::unique_ptr<Route> route;
};

struct Shop {
	std::vector<Account *> accounts;
	std::map<int, Note *> notes;
	std::map<std::string, Item> stock;
	std::set<Address *> addresses;
	std::unordered_map<int, std::unique_ptr<Route>> routes;
	std::list<Parcel> parcels;
	std::shared_ptr<Item> shared;
};

} // namespace shop

using namespace shop;

Shop *open_shop;
/* Nothing else says what it leads to. */
void *hidden[8];

template <typename Type> static Type *tell(Type *value, const char *name)
{
	printf("%p %s\n", (void *)value, name);
	return value;
}

static Note *make_note(long number)
{
	return tell(new Note{ nullptr, "as was said", number }, "shop::Note");
}

static Price *make_price(long number)
{
	return tell(new Price{ number, make_note(number), 1, 2, 3 }, "shop::Price");
}

static Address *make_address(int number)
{
	return tell(new Address{ "High Street", make_note(number), number, 1, 2 }, "shop::Address");
}

static Route *make_route(Parcel *parcel, int number)
{
	return tell(new Route{ parcel, number, make_note(number), {} }, "shop::Route");
}

static Parcel *make_parcel(int number)
{
	return tell(new Parcel{ make_address(number), make_address(number + 1), 1.5 },
		    "shop::Parcel");
}

static Company *make_company(int number)
{
	auto company = new Company;

	company->number = number;
	company->seat = make_address(number);
	for (int i = 0; i < 3; i++)
		company->items.push_back({ make_price(i), i });
	for (int i = 0; i < 4; i++)
		company->prices.push_back(make_price(i));
	return company;
}

static Person *make_person(int number)
{
	auto person = new Person;

	person->number = number;
	person->parcel = make_parcel(number);
	person->route.reset(make_route(make_parcel(number), number));
	return person;
}

static void fill(Shop &shop)
{
	for (int i = 0; i < 20; i++) {
		shop.accounts.push_back(make_company(i));
		shop.accounts.push_back(make_person(i));
		shop.notes[i] = make_note(i);
		shop.stock[std::string(30, (char)('a' + i))] = { make_price(i), i };
		shop.addresses.insert(make_address(i));
		shop.routes[i].reset(make_route(make_parcel(i), i));
		shop.parcels.push_back({ make_address(i), make_address(i), 1.0 });
	}
	shop.shared.reset(tell(new Item{ make_price(8), 8 }, "shop::Item"));
}

int main()
{
	open_shop = new Shop;
	fill(*open_shop);
	hidden[0] = make_company(100);
	hidden[1] = make_person(101);
	printf("ready\n");
	fflush(stdout);
	pause();
	return open_shop->accounts.empty();
}
