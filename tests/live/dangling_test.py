#!/usr/bin/env python3
"""
References to freed memory: those in members and static variables are counted, by whose they are;
words that hold nothing any more are not.
"""

import unittest

from harness import LiveTest, ask, rows, snap

PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
#include <vector>

struct peer { long id; char name[72]; };
struct session { long id; peer *to; char name[24]; session *next; };
static session *sessions;
static peer *last[4];
static struct look { long id; char *at; } *look; /* into the middle */
static std::vector<peer *> *queue;

static peer *make_peer(long id)
{
	peer *made = (peer *)calloc(1, sizeof(peer));
	made->id = id;
	return made;
}
int main(int count, char **)
{
	bool frees = count > 1;
	queue = new std::vector<peer *>;
	queue->reserve(64);
	setvbuf(stdout, (char *)malloc(4096), _IOFBF, 4096);
	session *holder = (session *)calloc(3, sizeof(session));
	holder[1].to = make_peer(300);
	printf("lost %p held at %p\n", (void *)holder[1].to, (void *)&holder[1].to);
	for (long i = 0; i < 40; i++) {
		session *made = (session *)calloc(1, sizeof(session));
		made->id = i;
		made->to = make_peer(i);
		made->next = sessions;
		sessions = made;
		queue->push_back(make_peer(100 + i));
	}
	for (int i = 0; i < 4; i++)
		last[i] = make_peer(200 + i);
	for (int i = 0; i < 9; i++) { /* what is left is in spare capacity */
		free(queue->back());
		queue->pop_back();
	}
	if (frees)
		free(holder); /* before what it holds */
	holder = nullptr;
	int number = 0;
	for (session *one = sessions; one; one = one->next)
		if (frees && ++number % 6 == 1) {
			free(one->to);
			printf("session %p %p\n", (void *)one, (void *)one->to);
		}
	look = (struct look *)calloc(1, sizeof(struct look));
	look->at = last[0]->name + 8;
	for (int i = 0; frees && i < 3; i++)
		free(last[i]);
	puts("ready");
	fflush(stdout);
	pause();
}
"""


class DanglingTest(LiveTest):
    def dangling(self, program, *words):
        process = self.start([program, *words])
        core = snap(process, self.path("core"))
        text = ask("-q", core, "dangling").stdout
        return rows("dangling", "-q", core, "dangling"), text, core, process.said

    def check(self, program, names):
        found, text, core, said = self.dangling(program, "frees")
        self.assertEqual([(row["member"], row["references"], row["to_starts"], row["owners"])
                          for row in found], [(names[0], 7, 7, 7), (names[1], 3, 3, 3)])
        self.assertIn("10 references of 2 members lead to freed memory. 1 member more leads only "
                      "into the middle of freed blocks, likely by chance.", text)
        self.assertIn(f"session {found[0]['such_as']} {found[0]['freed']}", said)
        for row in found:
            self.assertIn("free allocation", ask("-q", core, "describe", row["freed"]).stdout)
        only = rows("dangling", "-q", core, "dangling", "used", "--size", "0x38")
        self.assertEqual([row["references"] for row in only], [7])

        lost = next(line.split() for line in said if line.startswith("lost"))
        explained = ask("-q", core, "explain", lost[1]).stdout
        self.assertRegex(explained, "What held it was freed first: the free block at 0x[0-9a-f]+ "
                         rf"of size \d+ \(0x[0-9a-f]+\) still has its address, at {lost[4]}")

    def test_with_debug_information(self):
        program = self.compile("freed", compiler="c++", flags=("-g",), text=PROGRAM)
        self.check(program, ("session.to", "last (freed)"))

    def test_stripped(self):
        program = self.compile("freed", compiler="c++", flags=("-s",), text=PROGRAM)
        # Without symbols, each static word stands by itself.
        found, *_ = self.dangling(program, "frees")
        self.assertEqual([(row["member"], row["references"]) for row in found],
                         [("+0x8 of size 0x38", 7), *[("static data of freed", 1)] * 3])

    def test_nothing_dangles(self):
        program = self.compile("freed", compiler="c++", flags=("-g",), text=PROGRAM)
        found, text, core, said = self.dangling(program)
        lost = next(line.split() for line in said if line.startswith("lost"))
        self.assertNotIn("freed first", ask("-q", core, "explain", lost[1]).stdout)
        self.assertEqual(found, [])
        self.assertIn("0 references of 0 members lead to freed memory.", text)
        self.assertNotIn("middle", text)


if __name__ == "__main__":
    unittest.main()
