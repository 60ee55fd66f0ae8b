/*
 * A program whose debug information has some of all that heapcore reads:
 * classes, members, arrays, unions, inlined calls, static and thread-local
 * variables, several threads. Its threads run, rather than wait in a library.
 */
#include <pthread.h>
#include <stdlib.h>

namespace shop
{

struct Item {
	Item *next;
	union {
		long number;
		char *text;
	} value;
	unsigned int small : 3, large : 29;
};

class Base {
    public:
	virtual ~Base() {}
	Item *items[4] = {};
};

template <typename T> class Shelf : public Base {
    public:
	T content{};
	struct {
		T pair[2][3];
	} table = {};
	void put(T value) { content = table.pair[1][2] = value; }
};

static Shelf<Item *> shelf;
static Item *volatile list;

} // namespace shop

static __thread struct {
	long count;
	void *volatile buffer;
} mine;

static inline __attribute__((always_inline)) shop::Item *make(long number)
{
	auto *item = static_cast<shop::Item *>(malloc(sizeof(shop::Item)));

	item->next = shop::list;
	item->value.number = number;
	item->small = 1;
	item->large = 2;
	shop::list = item;
	return item;
}

static __attribute__((noinline)) void spin(shop::Item *item, int depth)
{
	volatile long numbers[8] = { depth };
	shop::Item *volatile local = item;

	if (depth > 0)
		spin(item->next, depth - 1);
	for (;;)
		numbers[1] = numbers[0] + (local != nullptr);
}

static void *work(void *data)
{
	void *volatile own = malloc(100);
	static void *volatile once;

	mine.buffer = malloc(40);
	once = malloc(24);
	shop::shelf.put(make(3));
	spin(static_cast<shop::Item *>(data), 3);
	return own;
}

int main()
{
	pthread_t thread;
	shop::Item *item = make(1);

	for (long i = 0; i < 10; i++)
		item = make(i);
	shop::shelf.items[2] = item;
	auto *volatile object = new shop::Shelf<long>;
	pthread_create(&thread, nullptr, work, item);
	work(item);
	return object != nullptr;
}
