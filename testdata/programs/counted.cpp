/*
 * What C++ counts references to: exceptions, some of them thrown again, and what std::shared_ptr
 * and std::weak_ptr point at, some of it destroyed.
 *
 * Says "COUNT NAME" of each kind that there is, then "ready", and waits.
 */

#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <vector>

namespace app
{
struct Error : std::runtime_error {
	int code = 0;

	Error() : std::runtime_error("it failed")
	{
	}
};

struct Plain {
	char text[40];
};

struct Base {
	virtual ~Base()
	{
	}
	int number = 0;
};

struct Derived : Base {
	char data[100];
};

struct Tablet {
	char data[300];
};

template <class T> struct Own : std::allocator<T> {
	template <class U> struct rebind {
		typedef Own<U> other;
	};
	Own()
	{
	}
	template <class U> Own(const Own<U> &)
	{
	}
};
} // namespace app

static std::vector<std::exception_ptr> thrown;
static std::vector<std::weak_ptr<void>> weak;
static std::vector<std::shared_ptr<void>> strong;

template <class T> static void raise(int count, const char *name, const T &what)
{
	for (int i = 0; i < count; i++)
		try {
			throw what;
		} catch (...) {
			thrown.push_back(std::current_exception());
		}
	printf("%d exception %s\n", count, name);
}

template <class Make> static void share(int count, int destroyed, const char *name, Make make)
{
	for (int i = 0; i < count; i++) {
		auto pointer = make();

		weak.push_back(pointer);
		if (i >= destroyed)
			strong.push_back(pointer);
	}
	printf("%d %s\n", count - destroyed, name);
	printf("%d %s (destroyed, held by weak_ptr)\n", destroyed, name);
}

int main()
{
	raise(7, "app::Error", app::Error());
	raise(5, "app::Plain", app::Plain());
	raise(4, "int", 1);
	share(9, 6, "app::Tablet", [] { return std::make_shared<app::Tablet>(); });
	share(8, 5, "app::Derived",
	      [] { return std::allocate_shared<app::Derived>(app::Own<app::Derived>()); });
	for (int i = 0; i < 4; i++)
		weak.push_back(std::shared_ptr<app::Plain>(new app::Plain));
	try {
		std::rethrow_exception(thrown[0]);
	} catch (...) {
		puts("1 exception app::Error (rethrown)\nready");
		fflush(stdout);
		getchar();
	}
}
