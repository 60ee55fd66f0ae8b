/*
 * Objects of classes of every kind that C++ knows, each as many times as the
 * program says:
 *
 *	class COUNT NAME	so many objects of that very class
 *	base COUNT NAME		so many of it and of classes derived from it
 *	ready
 *
 * Compiled again with MORE defined, it is a second part of the same program,
 * with a class of the same name as one of the first part.
 */

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

struct Hidden {
	virtual ~Hidden() = default;
	long value = 1;
};

} // namespace

void keep(void *object);
void make_more(int count);

#ifdef MORE

void make_more(int count)
{
	for (int i = 0; i < count; i++)
		keep(static_cast<void *>(new Hidden));
}

#else

namespace {

/* Volatile: else the compiler may leave out what nobody reads. */
void *volatile kept[4096];
int kept_count;

} // namespace

void keep(void *object)
{
	kept[kept_count++] = object;
	__asm__ volatile("" ::: "memory");
}

namespace app {

struct Session {
	virtual ~Session() = default;
	virtual int run() { return 1; }
	long id = 7;
};

namespace detail {

/* Single inheritance, over two steps. */
struct Worker : Session {
	int run() override { return 2; }
};

struct Foreman : Worker {
	int run() override { return 3; }
};

} // namespace detail

} // namespace app

struct Left {
	virtual ~Left() = default;
	long left = 1;
};

struct Right {
	virtual ~Right() = default;
	long right = 2;
};

/* Multiple inheritance, with a vtable for each base. */
struct Both : Left, Right {
	long both = 3;
};

/* A base without virtual functions comes second in memory. */
struct Plain {
	long plain = 4;
};

struct BesidePlain : Plain, app::Session {
	long beside = 5;
};

struct Top {
	virtual ~Top() = default;
	long top = 6;
};

struct LeftSide : virtual Top {
	long left_side = 7;
};

struct RightSide : virtual Top {
	long right_side = 8;
};

/* Virtual inheritance. */
struct Diamond : LeftSide, RightSide, private Right {
	long bottom = 9;
};

/* A vtable without any function. */
struct OverPlain : virtual Plain {
	long over = 10;
};

/* A vtable with a function that nobody defined. */
struct Shape {
	virtual ~Shape() = default;
	virtual double area() const = 0;
};

template <typename Value>
struct Holder : Shape {
	double area() const override { return 1; }
	Value value{};
};

template <typename First, typename Second>
struct Couple {
	virtual ~Couple() = default;
	First first{};
	Second second{};
};

template <typename Made>
static void make(int count)
{
	for (int i = 0; i < count; i++)
		keep(static_cast<void *>(new Made));
}

static void make_local(int count)
{
	struct Local : app::Session {
		long local = 11;
	};

	make<Local>(count);
}

static void make_all()
{
	make<app::Session>(57);
	make<app::detail::Worker>(12);
	make<app::detail::Foreman>(5);
	make<Left>(3);
	make<Right>(4);
	make<Both>(11);
	make<BesidePlain>(6);
	make<Top>(1);
	make<LeftSide>(2);
	make<RightSide>(8);
	make<Diamond>(9);
	make<OverPlain>(10);
	make<Holder<int>>(13);
	make<Holder<std::string>>(14);
	make<Holder<std::map<int, std::string>>>(15);
	make<Couple<std::vector<long>, app::Session *>>(16);
	make<Hidden>(17);
	make_more(18);
	make_local(19);
}

static void tell()
{
	std::puts("class 57 app::Session");
	std::puts("class 12 app::detail::Worker");
	std::puts("class 5 app::detail::Foreman");
	std::puts("class 3 Left");
	std::puts("class 4 Right");
	std::puts("class 11 Both");
	std::puts("class 1 Top");
	std::puts("class 6 BesidePlain");
	std::puts("class 2 LeftSide");
	std::puts("class 8 RightSide");
	std::puts("class 9 Diamond");
	std::puts("class 10 OverPlain");
	std::puts("class 13 Holder<int>");
	std::puts("class 14 Holder<std::string>");
	std::puts("class 15 Holder<std::map<int, std::string>>");
	std::puts("class 16 Couple<std::vector<long>, app::Session*>");
	std::puts("class 35 (anonymous namespace)::Hidden");
	std::puts("class 19 make_local(int)::Local");
	std::puts("base 99 app::Session");
	std::puts("base 17 app::detail::Worker");
	std::puts("base 14 Left");
	std::puts("base 24 Right");
	std::puts("base 20 Top");
	std::puts("base 11 LeftSide");
	std::puts("base 17 RightSide");
	std::puts("base 16 Plain");
	std::puts("base 42 Shape");
	std::puts("ready");
	std::fflush(stdout);
}

int main()
{
	make_all();
	tell();
	for (;;)
		pause();
}

#endif
