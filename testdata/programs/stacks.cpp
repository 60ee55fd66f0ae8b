/*
 * Loses blocks that are made in many ways, by calls of its own that it counts.
 *
 * Each line of the truth, the file named by HEAPCORE_TRUTH, is "COUNT FUNCTION ...": so many blocks
 * were lost that the first function allocated, called by the others. Only the first run writes it.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#define CALL __attribute__((noinline, noclone, noipa))

static std::map<std::string, int> truth;
static void *volatile sink;

template <class T> static void lose(T *block, const char *calls)
{
	truth[calls]++;
	memset((void *)block, 1, 8);
	sink = block;
	sink = nullptr;
}

struct Order {
	long words[5];
};

CALL static void *by_malloc(size_t size)
{
	void *block = malloc(size);

	asm volatile("" ::: "memory");
	return block;
}

CALL static void *by_calloc()
{
	void *block = calloc(3, 40);

	asm volatile("" ::: "memory");
	return block;
}

CALL static void *by_realloc()
{
	void *block = malloc(100);

	block = realloc(block, 3000);
	asm volatile("" ::: "memory");
	return block;
}

CALL static void *by_memalign()
{
	void *block = nullptr;

	if (posix_memalign(&block, 256, 500))
		abort();
	return block;
}

CALL static char *by_strdup()
{
	char *block = strdup("an address that nobody will ever write to");

	asm volatile("" ::: "memory");
	return block;
}

CALL static Order *by_new()
{
	Order *order = new Order();

	asm volatile("" ::: "memory");
	return order;
}

CALL static Order *by_make_unique()
{
	Order *order = std::make_unique<Order>().release();

	asm volatile("" ::: "memory");
	return order;
}

CALL static void first()
{
	lose(by_malloc(200), "by_malloc first");
	asm volatile("" ::: "memory");
}

CALL static void second()
{
	lose(by_malloc(200), "by_malloc second");
	asm volatile("" ::: "memory");
}

CALL static void recursion(int depth)
{
	if (depth > 0)
		recursion(depth - 1);
	else
		lose(by_malloc(900), "by_malloc recursion recursion recursion");
	asm volatile("" ::: "memory");
}

CALL static void others()
{
	lose(by_calloc(), "by_calloc others");
	lose(by_realloc(), "by_realloc others");
	lose(by_memalign(), "by_memalign others");
	lose(by_strdup(), "by_strdup others");
	lose(by_new(), "by_new others");
	lose(by_make_unique(), "by_make_unique others");
	asm volatile("" ::: "memory");
}

/* Blocks that are freed, by many at once, so that what they leave behind is reused. */
CALL static void churn()
{
	for (int i = 0; i < 3000; i++) {
		std::vector<char *> blocks;

		for (int j = 0; j < 8; j++)
			blocks.push_back((char *)malloc(16 + 200 * j));
		for (char *block : blocks)
			free(block);
	}
}

CALL static void work()
{
	churn();
	for (int i = 0; i < 30; i++)
		first();
	for (int i = 0; i < 20; i++)
		second();
	for (int i = 0; i < 10; i++)
		recursion(5);
	for (int i = 0; i < 7; i++)
		others();
}

/* Nothing of what was lost stays on the stack or in registers. */
CALL static void scrub()
{
	volatile char bytes[65536];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = 0;
#ifdef __aarch64__
	asm volatile("mov x19, xzr; mov x20, xzr; mov x21, xzr; mov x22, xzr; mov x23, xzr;"
		     "mov x24, xzr; mov x25, xzr; mov x26, xzr; mov x27, xzr; mov x28, xzr" ::
			     : "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28");
#else
	asm volatile("xor %%ebx, %%ebx; xor %%r12d, %%r12d; xor %%r13d, %%r13d; xor %%r14d, %%r14d;"
		     "xor %%r15d, %%r15d" ::
			     : "rbx", "r12", "r13", "r14", "r15");
#endif
}

int main()
{
	const char *path = getenv("HEAPCORE_TRUTH");
	std::thread churners[3];

	for (std::thread &one : churners)
		one = std::thread(churn);
	work();
	for (std::thread &one : churners)
		one.join();
	churn();
	scrub();
	if (path && access(path, F_OK) != 0) {
		FILE *file = fopen(path, "w");

		for (const auto &[calls, count] : truth)
			fprintf(file, "%d %s\n", count, calls.c_str());
		fclose(file);
	}
	return 0;
}
