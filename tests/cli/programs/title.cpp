/*
 * A book, which a shelf holds, and a title that was shortened: behind its end,
 * its buffer still has the address of the book.
 */
#include <cstdio>
#include <cstring>
#include <string>
#include <unistd.h>

struct Book {
	virtual ~Book() = default;
	int pages = 100;
};

struct Shelf {
	virtual ~Shelf() = default;
	Book *book = new Book;
};

static Shelf *volatile shelf;
static std::string title;

int main()
{
	Shelf *made = new Shelf;

	shelf = made;
	title.assign(100, 'x');
	memcpy(&title[64], &made->book, sizeof(made->book));
	title.resize(40);
	setvbuf(stdout, nullptr, _IONBF, 0);
	puts("ready");
	for (;;)
		pause();
}
