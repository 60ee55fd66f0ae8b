#!/usr/bin/env python3
"""
Blocks in lists whose link says nothing of what they are: no type is called by
the link, the object that a word points to is the better name, and a few blocks
are of no type that only has the link in common with them.
"""

import unittest

import harness

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node { struct node *next, *prev; };
struct list { struct node *head, *null, *tail; };
struct class { const char *name; size_t size; void (*free)(void *); void (*show)(void *); };
struct resource { struct node n; const struct class *class; };
struct area { struct node n; unsigned id, cost; struct list nets, others; long numbers[8]; };

static void nothing(void *block) { (void)block; }
static void something(void *block) { puts(block); }
static const struct class pool = { "pool", 96, nothing, something };
static const struct class table = { "table", 120, something, nothing };
static struct list resources, unknown;
static struct area *area;

static void add(struct list *list, struct node *node)
{
	node->next = list->head;
	if (list->head)
		list->head->prev = node;
	list->head = node;
}

int main(void)
{
	for (int i = 0; i < 300; i++) {
		size_t size = i % 3 ? 96 + i % 5 * 16 : 120;
		struct resource *resource = calloc(1, size);

		resource->class = i % 3 ? &pool : &table;
		add(&resources, &resource->n);
	}
	/* Just as large as an area, but nobody says what they are. */
	for (int i = 0; i < 5; i++) {
		struct node *node = calloc(1, sizeof(*area));

		memset(node + 1, i + 1, 4);
		add(&unknown, node);
	}
	area = calloc(1, sizeof(*area));
	puts("ready");
	fflush(stdout);
	getchar();
	return 0;
}
"""


class Links(harness.LiveTest):
    def test_a_link_is_no_name(self):
        process = self.start([self.compile("linked", text=PROGRAM, flags=["-g", "-O0"])])
        core = harness.snap(process, self.path("core"))
        rows = harness.rows("group", "-q", core, "summarize", "used")
        self.assertEqual({row["identity"]: row["count"] for row in rows if row["identity"]
                          in ("pool", "table")}, {"pool": 200, "table": 100})
        self.assertFalse([row["type"] for row in rows if "node" in (row["type"] or "")])
        self.assertEqual([row["count"] for row in rows if row["type"] == "struct area"], [1])
        text = harness.ask("-q", core, "describe", "unknown.head").stdout
        self.assertNotIn("It is of type", text)


if __name__ == "__main__":
    unittest.main()
