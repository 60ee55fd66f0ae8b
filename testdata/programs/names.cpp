/*
 * Makes allocations whose first words lead to constants, of which only some
 * tell what is there, and writes to $HEAPCORE_TRUTH how many of which there
 * are: "KIND COUNT" or "KIND ADDRESS".
 */

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <link.h>
#include <memory>
#include <new>
#include <string>
#include <unistd.h>
#include <vector>

static std::FILE *truth;

/* Shared by make_shared(), with and without a vtable. */
struct Response {
	int status = 200;
	std::string text;
};

struct Base {
	virtual ~Base() = default;
	long base = 1;
};

struct Derived : Base {
	long derived = 2;
};

static std::vector<std::shared_ptr<Response>> responses;
static std::vector<std::shared_ptr<const Base>> bases;
static std::vector<std::shared_ptr<Base>> apart;

static void share()
{
	for (int i = 0; i < 2000; i++)
		responses.push_back(std::make_shared<Response>());
	for (int i = 0; i < 300; i++)
		bases.push_back(std::make_shared<Derived>());
	for (int i = 0; i < 40; i++)
		apart.push_back(std::shared_ptr<Base>(new Base));
	std::fprintf(truth, "Response 2000\nDerived 300\n%%SharedPtrControlBlock 2340\n");
}

/* Short strings, written over what led to the C library before. */
static char *strings[900];

/* An address in its constants, of which two bytes can be any. */
static int find_constants(dl_phdr_info *info, size_t, void *data)
{
	if (!std::strstr(info->dlpi_name, "/libc.so"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const auto &part = info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + part.p_vaddr;
		uintptr_t place = (start + 0xffff) & ~(uintptr_t)0xffff;

		if (part.p_type == PT_LOAD && part.p_flags == PF_R &&
		    place + 0x10000 <= start + part.p_memsz)
			*static_cast<uintptr_t *>(data) = place + 0x8888;
	}
	return 1;
}

static void overwrite()
{
	uintptr_t link = 0;

	dl_iterate_phdr(find_constants, &link);
	for (auto &string : strings) {
		string = static_cast<char *>(std::calloc(1, 24));
		std::memcpy(string, &link, sizeof(link));
		std::strcpy(string, &"ab"[link++ % 2]);
		std::fprintf(truth, "text %lx\n", (unsigned long)string);
	}
}

/* What all that is empty points at is no type; a mark of a type is one. */
extern const long shared_empty[4], kind_mark[4];
const long shared_empty[4] = { -1, 0, 0, 24 }, kind_mark[4] = { 7 };
static std::vector<const long **> holders;

static void hold(const long *constant, size_t size)
{
	auto **holder = static_cast<const long **>(std::calloc(1, size));

	*holder = constant;
	holders.push_back(holder);
}

static void point()
{
	for (int i = 0; i < 600; i++) {
		hold(shared_empty, 24 + 16 * (i % 12));
		std::fprintf(truth, "empty %lx\n",
			     (unsigned long)holders.back());
	}
	for (int i = 0; i < 200; i++)
		hold(kind_mark, 48);
	std::fprintf(truth, "kind_mark 200\n");
}

/* Objects of six classes, cut out of slabs, as of LLVM's BumpPtrAllocator. */
template <int number, int size> struct Cut : Base {
	char filled[size];
	Cut() { std::memset(filled, number, size); }
};

static std::vector<void *> slabs;

template <int size> static void cut_slab(int first)
{
	const size_t length = sizeof(Cut<0, size>);
	char *slab = static_cast<char *>(std::malloc(4096));

	slabs.push_back(slab);
	for (size_t i = 0; (i + 1) * length <= 4096; i++) {
		void *place = slab + i * length;

		switch ((first + i) % 6) {
		case 0: new (place) Cut<0, size>; break;
		case 1: new (place) Cut<1, size>; break;
		case 2: new (place) Cut<2, size>; break;
		case 3: new (place) Cut<3, size>; break;
		case 4: new (place) Cut<4, size>; break;
		default: new (place) Cut<5, size>; break;
		}
	}
}

/* Large as well, and made of objects of several classes. */
struct Window : Base {
	Derived parts[40];
	Cut<7, 96> edges[10];
	char text[500];
};

static std::vector<Window *> windows;

static void cut()
{
	for (int i = 0; i < 60; i++) {
		cut_slab<88>(i);
		cut_slab<616>(i);
	}
	for (int i = 0; i < 50; i++)
		windows.push_back(new Window);
	/* With those that are apart from their counts. */
	std::fprintf(truth, "slab 120\nWindow 50\nBase 390\n");
}

int main()
{
	truth = std::fopen(std::getenv("HEAPCORE_TRUTH"), "w");
	if (!truth)
		return 1;
	share();
	overwrite();
	point();
	cut();
	std::fputs("ready\n", truth);
	std::fclose(truth);
	for (;;)
		pause();
}
