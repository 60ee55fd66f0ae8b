/*
 * Two shelves with books, of which one is on both; each book has a text. All of
 * it is 3 * 24 + 3 * 104 bytes of books and texts, and 2 * 24 of shelves.
 */
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

struct Book {
	virtual ~Book() = default;
	void *text = malloc(100);
	Book *sequel = nullptr;
};

struct Shelf {
	virtual ~Shelf() = default;
	Book *first, *second;
	Shelf(Book *first, Book *second) : first(first), second(second)
	{
	}
};

static Shelf *volatile shelves[2];

int main()
{
	Book *shared = new Book, *first = new Book;

	first->sequel = new Book;
	shelves[0] = new Shelf(first, shared);
	shelves[1] = new Shelf(shared, nullptr);
	setvbuf(stdout, nullptr, _IONBF, 0);
	puts("ready");
	for (;;)
		pause();
}
