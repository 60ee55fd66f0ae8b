/*
 * A small heap of a known shape, to extend sets in. Of each object the offsets
 * of its pointers are known; all have a vtable but links.
 *
 *	owner ─ 8 ──> part <──────── 8 ─ cursor
 *	      ─ 10 ─> special (a Part, too)
 *	      ─ 18 ─> table + 10
 *	part, special ─ 8 ─> owner
 *	table ─ 18 ─> special
 *
 *	lost owner ─ 8 ──> part      (leaked, and part is not)
 *	           ─ 10 ─> lost part
 *
 *	dangling ─ 8 ─> freed memory
 */
#include <cstdio>
#include <cstdlib>
#include <list>
#include <vector>

#include <unistd.h>

namespace app {

struct Base {
	virtual ~Base() = default;
};

struct Owner : Base {
	void *first = nullptr, *second = nullptr, *inside = nullptr;
};

struct Part : Base {
	Owner *owner = nullptr;
	long value = 0;
};

struct SpecialPart : Part {
	long more[4] = {};
};

template <typename Key, typename Value> struct Table : Base {
	Key key = 0;
	Value value = 0;
	Part *part = nullptr;
};

struct Cursor : Base {
	Part *part = nullptr;
	std::list<long>::iterator place;
};

struct Dangling : Base {
	void *freed = nullptr;
};

/* Of whom the vector's body has room for a part that it no longer holds. */
struct Holder : Base {
	std::vector<Part *> parts;
	std::list<long> numbers;
};

/* A state of this name would be a class as well. */
struct Nothing : Base {
};

} // namespace app

struct Link {
	Link *next;
	long rest[6];
};

struct Marker {
	virtual ~Marker() = default;
	void *to = nullptr;
};

/* Not static, or what only keeps a pointer would be left out. */
app::Owner *owner;
app::Cursor *cursor;
app::Dangling *dangling;
app::Holder *holder;
Link *line, *ring, *tail[2];
Marker *marker;

static Link *add_link(Link *next)
{
	Link *link = (Link *)calloc(1, sizeof(*link));

	link->next = next;
	return link;
}

static void make_parts()
{
	app::Part *part;
	app::SpecialPart *special;
	app::Table<int, long> *table;

	owner = new app::Owner;
	part = new app::Part;
	special = new app::SpecialPart;
	table = new app::Table<int, long>;
	cursor = new app::Cursor;
	owner->first = part;
	owner->second = special;
	owner->inside = (char *)table + 0x10;
	part->owner = special->owner = owner;
	table->part = special;
	cursor->part = part;
}

/* What the compiler does not see the use of it would not make at all. */
template <typename Lost> static Lost *lose(Lost *lost)
{
	asm volatile("" : : "r"(lost) : "memory");
	return lost;
}

static __attribute__((noinline)) void lose_owner()
{
	app::Owner *lost = lose(new app::Owner);

	lost->first = owner->first;
	lost->second = lose(new app::Part);
	lose(lost);
}

static void make_containers()
{
	holder = new app::Holder;
	holder->parts.reserve(4);
	holder->parts.push_back(cursor->part);
	holder->parts.push_back((app::Part *)owner->second);
	holder->parts.pop_back();
	for (long i = 0; i < 3; i++)
		holder->numbers.push_back(i);
	cursor->place = std::next(holder->numbers.begin());
}

static void make_chains()
{
	line = add_link(add_link(add_link(nullptr)));
	ring = add_link(nullptr);
	ring->next = add_link(add_link(ring));
	tail[0] = add_link(line);
	tail[1] = add_link(line);
}

/* What was in registers and on the stack is no root any more. */
static __attribute__((noinline)) void wipe_stack()
{
	volatile char bytes[4096];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = 0;
}

int main()
{
	make_parts();
	lose_owner();
	make_containers();
	make_chains();
	marker = new Marker;
	marker->to = new app::Nothing;
	dangling = new app::Dangling;
	dangling->freed = malloc(200);
	free(dangling->freed);
	wipe_stack();
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
