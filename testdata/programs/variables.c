/*
 * Variables with members, elements and pointers, and where each of them is: lines "PATH ADDRESS",
 * of "&PATH" its own address, of another one what it points to.
 */
#include "variables.h"

#include "truth.h"

#include <string.h>

#define TELL_PLACE(path)   truth_number("&" #path, (uintptr_t) & (path))
#define TELL_POINTER(path) truth_number(#path, (uintptr_t)(path))

struct entry {
	struct entry *next;
	const char *key;
	union {
		long number;
		struct dict *within;
	};
};

struct dict {
	struct entry *table[4];
	long used;
};

struct database {
	struct dict *dict;
	int id;
};

struct opaque;

struct server {
	struct {
		int port;
		char *host;
	} network;
	struct database db[2];
	struct database *current;
	struct opaque *opaque;
	void *nothing;
} server;

struct entry *volatile entries;
static volatile int grid[3][4];
static volatile long ticks = 1; /* variables_other.c has one, too */
static const long constant = 4; /* no compiler keeps it */
_Thread_local struct entry *mine, first_of_mine;

static struct dict *make_dict(void)
{
	struct dict *dict = truth_zeroed_block(sizeof(*dict));

	dict->table[2] = truth_zeroed_block(sizeof(struct entry));
	dict->table[2]->next = truth_zeroed_block(sizeof(struct entry));
	dict->table[2]->next->key = strcpy(truth_zeroed_block(40), "a key of an entry");
	return dict;
}

OUT_OF_LINE static void tell_static(void)
{
	static volatile long calls = 1, ticks_of_it = 1;

	calls += ticks_of_it + constant;
	TELL_PLACE(calls);
}

OUT_OF_LINE static void make_all(void)
{
	server.db[0].dict = make_dict();
	server.db[1].dict = make_dict();
	server.current = &server.db[1];
	server.opaque = truth_zeroed_block(100);
	server.db[1].dict->table[2]->within = server.db[0].dict;
	entries = truth_zeroed_block(3 * sizeof(*entries));
	mine = truth_zeroed_block(sizeof(*mine));
}

OUT_OF_LINE static void tell_all(void)
{
	ticks += grid[1][2];
	TELL_PLACE(server);
	TELL_PLACE(server.network);
	TELL_PLACE(server.network.host);
	TELL_PLACE(server.db);
	TELL_PLACE(server.db[1]);
	TELL_PLACE(server.db[1].id);
	TELL_PLACE(server.current);
	TELL_PLACE(server.current->id);
	TELL_POINTER(server.current);
	TELL_POINTER(server.db[0].dict);
	TELL_PLACE(server.db[0].dict);
	TELL_POINTER(server.db[0].dict->table[2]);
	TELL_POINTER(server.db[0].dict->table[2]->next->key);
	TELL_PLACE(server.current->dict->table[2]->number);
	TELL_POINTER(server.current->dict->table[2]->within);
	TELL_POINTER(server.opaque);
	TELL_POINTER(entries);
	TELL_PLACE(entries);
	TELL_PLACE(entries[2]);
	TELL_PLACE(entries[2].key);
	TELL_PLACE(*entries);
	TELL_PLACE((*entries).key);
	TELL_PLACE(grid);
	TELL_PLACE(grid[1]);
	TELL_PLACE(grid[2][3]);
	TELL_POINTER(mine);
	TELL_PLACE(mine);
	TELL_PLACE(first_of_mine.key);
	truth_number("&variables.c::ticks", (uintptr_t)&ticks);
	truth_number("&variables_other.c::ticks", other_ticks());
	tell_static();
}

int main(void)
{
	truth_open();
	make_all();
	tell_all();
	truth_ready();
}
