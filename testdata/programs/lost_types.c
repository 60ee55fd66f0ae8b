/*
 * Leaked allocations of which little is known but what others of their size, or of their kind, are:
 * connections whose links are still null, and notes, which end in a text of any length. For each
 * that should be known a line "conn NUMBER" or "note NUMBER", its address; for each that should
 * not, "not NUMBER". With an argument, so many of each are held, not 10.
 */
#include "truth.h"

#include <stdlib.h>
#include <string.h>

struct conn {
	struct conn *next;
	char name[56];
};

struct note {
	struct note *next;
	long length;
	char text[];
};

/* As large as a user, of which there are others of another type: pages. */
struct user {
	struct user *next;
	long id, numbers[20];
};

struct page {
	long number;
	struct page *next;
	long numbers[20];
};

enum { HELD = 10, LOST = 3 };

struct conn *volatile conns;
struct note *volatile notes;
struct user *volatile users;
struct page *volatile pages;

OUT_OF_LINE static struct conn *conn_new(void)
{
	struct conn *conn = truth_zeroed_block(sizeof(*conn));

	strcpy(conn->name, "peer");
	return conn;
}

OUT_OF_LINE static struct note *note_new(int number)
{
	static const char text[] =
		"what is to be done by the end of the week, and who is to be asked for the rest of it";
	size_t length = sizeof(text) - 1 - (size_t)number * 3;
	struct note *note = truth_zeroed_block(sizeof(*note) + length + 1);

	note->length = (long)length;
	memcpy(note->text, text, length);
	return note;
}

OUT_OF_LINE static struct user *user_new(void)
{
	struct user *user = truth_zeroed_block(sizeof(*user));

	user->id = 4711;
	return user;
}

OUT_OF_LINE static struct page *page_new(void)
{
	struct page *page = truth_zeroed_block(sizeof(*page));

	page->number = 815;
	return page;
}

OUT_OF_LINE static void hold_all(int count)
{
	for (int i = 0; i < count; i++) {
		struct conn *conn = conn_new();
		struct note *note = note_new(i % HELD);
		struct user *user = user_new();
		struct page *page = page_new();

		conn->next = conns;
		conns = conn;
		note->next = notes;
		notes = note;
		user->next = users;
		users = user;
		page->next = pages;
		pages = page;
	}
}

OUT_OF_LINE static void lose_all(void)
{
	for (int i = 0; i < LOST; i++) {
		struct note *note = note_new(HELD + i);
		char *text = truth_zeroed_block(sizeof(struct conn));
		char *empty = truth_zeroed_block(sizeof(struct conn));

		note->next = notes;
		memset(text, 'x', sizeof(struct conn) - 1);
		truth_number("conn", (uintptr_t)conn_new());
		truth_number("note", (uintptr_t)note);
		truth_number("not", (uintptr_t)user_new());
		truth_number("not", (uintptr_t)text);
		truth_number("not", (uintptr_t)empty);
	}
}

int main(int argc, char **argv)
{
	truth_open();
	hold_all(argc > 1 ? atoi(argv[1]) : HELD);
	lose_all();
	truth_ready();
}
