/*
 * One of each that the command language tells apart:
 *
 *	Beta, Alpha	two each, Beta the larger, held by static memory
 *	Part		two that are parts of a Whole, whose vtable is not that
 *			of two others: they wait in their constructor
 *	a shared int	whose control block has a vtable, and is a pattern
 *	strings		seven in a vector with room for nine, of which two hold
 *			a text of their own
 *	on the stack	one of 0x108, which leads to one of 0x118
 *	lost		a ring of two of 0x128, one of 0x138 that leads to it
 */
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

namespace app
{
struct Alpha {
	virtual ~Alpha() = default;
	long words[2] = {};
};

struct Beta {
	virtual ~Beta() = default;
	long words[6] = {};
};

struct Common {
	virtual ~Common() = default;
};

static jmp_buf out_of_constructor;
static bool leave;

struct Part : virtual Common {
	Part()
	{
		if (leave)
			longjmp(out_of_constructor, 1);
	}
	long words[4] = {};
};

struct Whole : Part {
};
} // namespace app

/* Seen from outside, so that none is optimized away. */
app::Alpha *alphas[2];
app::Beta *betas[2];
app::Part *parts[4];
std::shared_ptr<int> shared;
std::vector<std::string> strings;

/* Wholes whose constructor is never left: to their vtable they are Parts. */
static __attribute__((noinline)) void make_unfinished(int number)
{
	void *memory = ::operator new(sizeof(app::Whole));

	parts[number] = static_cast<app::Part *>(memory);
	app::leave = true;
	if (setjmp(app::out_of_constructor) == 0)
		new (memory) app::Whole;
	app::leave = false;
}

/* A zeroed block, which the compiler cannot do without. */
static __attribute__((noinline)) void **block(size_t size)
{
	void *memory = calloc(1, size);

	__asm__ volatile("" : "+r"(memory) : : "memory");
	return static_cast<void **>(memory);
}

static __attribute__((noinline)) void lose()
{
	void **ring[2] = { block(0x128), block(0x128) };
	void **root = block(0x138);

	ring[0][1] = ring[1];
	ring[1][1] = ring[0];
	root[1] = ring[0];
	__asm__ volatile("" : : : "memory");
}

static __attribute__((noinline)) void fill()
{
	for (int i = 0; i < 2; i++) {
		alphas[i] = new app::Alpha;
		betas[i] = new app::Beta;
		parts[i] = new app::Part;
		make_unfinished(2 + i);
	}
	shared = std::make_shared<int>(7);
	strings.reserve(9);
	for (int i = 0; i < 9; i++)
		strings.emplace_back(i < 2 ? 40 : i < 8 ? 3 : 0, 'x');
	strings.resize(7);
}

/* What calls left in registers and on the stack must not hold anything. */
static __attribute__((noinline)) void wipe()
{
	volatile char space[0x4000];

	for (size_t i = 0; i < sizeof(space); i++)
		space[i] = 0;
}

int main()
{
	fill();
	lose();
	wipe();

	void **volatile held = block(0x108);

	held[1] = block(0x118);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
