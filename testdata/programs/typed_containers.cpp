/*
 * A plain structure that all containers and wrappers of the standard library lead to, and what
 * stands in place of it in others of the same type: for each of the former a line "ADDRESS WHERE".
 */
#include <any>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <forward_list>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unistd.h>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

namespace shop
{

struct Leaf {
	Leaf *next;
	long number;
	double rate;
	long more[5];
};

/* As large as a leaf, and nothing that is known leads to it. */
struct Other {
	long words[8];
};

struct Item {
	Leaf *leaf;
	long count;
};

struct Large {
	Leaf *leaf;
	long words[9];
};

struct Choice {
	std::variant<int, std::unique_ptr<Leaf>, Item, Other *> value;
	std::optional<Item> maybe;
};

struct Shop {
	std::map<int, Item> map;
	std::set<Leaf *> set;
	std::multimap<std::string, Leaf *> multimap;
	std::list<Item> list;
	std::forward_list<Item> forward;
	std::unordered_map<int, Item> hashed;
	std::unordered_map<std::string, Item> named;
	std::unordered_set<Leaf *> hashes;
	std::deque<Item> deque;
	std::deque<Leaf *> pointers;
	std::vector<Item> vector;
	std::vector<Leaf *> leaves;
	std::vector<std::vector<Item>> nested;
	std::map<std::string, std::vector<Item>> lists;
	std::map<int, std::map<int, Item>> maps;
	std::vector<std::shared_ptr<Large>> shared;
	std::vector<std::unique_ptr<Large>> unique;
	std::map<std::string, std::shared_ptr<Large>> named_shared;
	std::shared_ptr<Large> owned;
	std::weak_ptr<Large> weak;
	std::unique_ptr<Item[]> array;
	Leaf **plain;
	Choice choice;
	std::vector<Choice> choices;
	std::list<Item> *far;
	std::vector<std::function<long(long)>> functions;
	std::vector<std::any> any;
	std::function<long(long)> function;
};

} // namespace shop

using namespace shop;

Shop *open_shop;

static Leaf *make_leaf(const char *where)
{
	auto made = new Leaf{ nullptr, 7, 1.5, {} };

	printf("%p %s\n", (void *)made, where);
	return made;
}

static Large make_large(const char *where)
{
	return Large{ make_leaf(where), {} };
}

static void fill_choice(Choice &choice, int number)
{
	if (number % 3 == 0)
		choice.value = std::unique_ptr<Leaf>(make_leaf("variant"));
	else if (number % 3 == 1)
		choice.value = Item{ make_leaf("variant"), number };
	else
		choice.value = new Other{};
	if (number % 2) {
		choice.maybe = Item{ make_leaf("optional"), number };
	} else {
		/* What was destroyed stays where it was. */
		choice.maybe = Item{ reinterpret_cast<Leaf *>(new Other{}), number };
		choice.maybe.reset();
	}
}

/* What vectors get next is full of pointers, which stay where alignment leaves room. */
static void leave_pointers(Shop &shop)
{
	for (size_t count = 6; count < 100; count *= 2) {
		void *volatile *words = new void *[count];

		for (size_t i = 0; i < count; i++)
			words[i] = &shop;
		delete[] words;
	}
}

/* Closures that stand within, others that are behind, and functions. */
static void fill_functions(Shop &shop)
{
	Item item = { make_leaf("function"), 1 };
	Leaf *leaf = make_leaf("function");
	auto shared = std::make_shared<Large>(make_large("function"));
	auto unique = std::shared_ptr<Leaf>(make_leaf("function"));
	auto other = new Other{};
	long far = 3;

	leave_pointers(shop);
	shop.functions.push_back([item, far](long number) { return item.count + far + number; });
	shop.functions.push_back([leaf](long number) { return leaf->number + number; });
	shop.functions.push_back([far, leaf](long number) { return leaf->number + number + far; });
	shop.functions.push_back([shared](long number) { return shared->words[0] + number; });
	shop.functions.push_back([unique](long number) { return unique->number + number; });
	shop.functions.push_back([](long number) { return number; });
	shop.functions.push_back(labs);
	shop.functions.push_back([other](long number) { return other->words[0] + number; });
	shop.function = [item](long number) { return item.count + number; };
}

static void fill_any(Shop &shop)
{
	shop.any.push_back(make_leaf("any"));
	shop.any.push_back(Item{ make_leaf("any"), 1 });
	shop.any.push_back(make_large("any"));
	shop.any.push_back(std::shared_ptr<Leaf>(make_leaf("any")));
	shop.any.push_back(7L);
	shop.any.push_back(new Other{});
	shop.any.push_back(reinterpret_cast<Leaf *>(new Other{}));
	shop.any.back().reset();
	shop.any.push_back(std::string(50, 'a'));
}

static void fill(Shop &shop)
{
	for (int i = 0; i < 30; i++) {
		std::string name = std::to_string(i);

		shop.map[i] = { make_leaf("map"), i };
		shop.set.insert(make_leaf("set"));
		shop.multimap.emplace(std::string(40, 'a'), make_leaf("multimap"));
		shop.list.push_back({ make_leaf("list"), i });
		shop.forward.push_front({ make_leaf("forward_list"), i });
		shop.hashed[i] = { make_leaf("unordered_map"), i };
		shop.named[name + std::string(30, 'n')] = { make_leaf("unordered_map"), i };
		shop.hashes.insert(make_leaf("unordered_set"));
		shop.deque.push_back({ make_leaf("deque"), i });
		shop.pointers.push_back(make_leaf("deque"));
		shop.vector.push_back({ make_leaf("vector"), i });
		shop.leaves.push_back(make_leaf("vector"));
		shop.nested.push_back({ { make_leaf("vector"), i } });
		shop.lists[name].push_back({ make_leaf("vector"), i });
		shop.maps[i][i] = { make_leaf("map"), i };
		shop.shared.push_back(std::make_shared<Large>(make_large("make_shared")));
		shop.unique.push_back(std::make_unique<Large>(make_large("unique_ptr")));
		shop.named_shared[name] = std::make_shared<Large>(make_large("make_shared"));
		shop.choices.emplace_back();
		fill_choice(shop.choices.back(), i);
	}
	shop.owned.reset(new Large(make_large("shared_ptr")));
	shop.weak = shop.owned;
	shop.array.reset(new Item[10]());
	shop.array[3] = { make_leaf("array"), 3 };
	shop.plain = new Leaf *[5] {
		make_leaf("array"), make_leaf("array")
	};
	fill_choice(shop.choice, 1);
	fill_functions(shop);
	fill_any(shop);
	shop.far = new std::list<Item>;
	shop.far->push_back({ make_leaf("list"), 1 });
}

int main()
{
	open_shop = new Shop;
	fill(*open_shop);
	printf("ready\n");
	fflush(stdout);
	pause();
	return open_shop->map.empty();
}
