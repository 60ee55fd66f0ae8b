/*
 * A shop in miniature that leaks, for docs/tutorial.md. It takes orders, keeps
 * those that it delivers in a book, and loses those that it turns down.
 */
#include <cstdio>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

namespace shop
{
class Item {
    public:
	explicit Item(int number)
		: name("article number " + std::to_string(number)),
		  price(number % 90 + 10)
	{
	}
	virtual ~Item() = default;

    private:
	std::string name;
	int price;
};

class Order {
    public:
	Order(int number, const std::string &customer)
		: number(number), customer(customer)
	{
		for (int i = 0; i < number % 2 + 1; i++)
			items.push_back(new Item(number + i));
	}
	virtual ~Order()
	{
		for (Item *item : items)
			delete item;
	}
	bool can_be_delivered() const
	{
		return number % 50 != 0;
	}

    private:
	int number;
	std::string customer;
	std::vector<Item *> items;
};

class Shop {
    public:
	void take(int number)
	{
		const std::string customer = "a customer from district " +
					     std::to_string(number % 20);
		Order *order = new Order(number, customer);

		/* The order is turned down, and nobody deletes it. */
		if (!order->can_be_delivered())
			return;
		delete book[number % 200];
		book[number % 200] = order;
	}

    private:
	std::map<int, Order *> book;
};
} // namespace shop

static shop::Shop *the_shop;

int main()
{
	the_shop = new shop::Shop;
	for (int number = 1; number <= 5000; number++)
		the_shop->take(number);
	puts("ready");
	fflush(stdout);
	pause();
}
