#!/usr/bin/env python3
"""
The table `member` of SQL: what a program says that its structures hold.
"""

import json
import os
import shutil
import tempfile
import unittest

import harness

PROGRAM = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum state { IDLE, BUSY = 7 };
struct point { short x, y; };
struct tail { unsigned count; struct point points[]; };
struct node {
	struct node *next;
	int32_t small;
	uint64_t large;
	double real;
	float single;
	signed char letter;
	_Bool flag;
	enum state state;
	unsigned low : 3;
	int high : 5;
	char name[12];
	struct point corner, corners[2];
	union { int as_number; float as_real; };
	struct tail *tail;
	int (*call)(void);
};

struct node *first;
struct point *grid;

int main(void)
{
	first = calloc(1, sizeof(*first));
	first->next = calloc(1, sizeof(*first));
	*first->next = (struct node){ 0, -5, UINT64_MAX, -2.5, 0.25, -1, 1, BUSY, 5, -3, "it's \n",
				      { 1, -2 }, { { 3, 4 }, { 5, 6 } }, { 42 }, 0, getchar };
	first->next->tail = malloc(sizeof(struct tail) + 5 * sizeof(struct point));
	first->next->tail->count = 5;
	for (int i = 0; i < 5; i++)
		first->next->tail->points[i] = (struct point){ i, -i };
	grid = calloc(100000, sizeof(*grid));
	printf("%p %p %p %p\n", (void *)first, (void *)first->next, (void *)first->next->tail,
	       (void *)grid);
	fflush(stdout);
	return getchar();
}
"""
# What the second node holds, by path.
VALUES = {
    "small": -5, "large": -1, "real": -2.5, "single": 0.25, "letter": -1, "flag": 1, "state": 7,
    "low": 5, "high": -3, "name": "it's \n", "corner.x": 1, "corner.y": -2, "corners[0].x": 3,
    "corners[0].y": 4, "corners[1].x": 5, "corners[1].y": 6, "as_number": 42, "next": 0,
}


RUST = """
use std::io::Read;

struct Order { number: u64, rate: f64, small: i16, flag: bool, note: String, items: Vec<u32>, name: Box<str>, next: Option<Box<Order>> }

fn main() {
    let mut last = None;
    for i in 0..3 {
        last = Some(Box::new(Order { number: 100 + i, rate: 0.5, small: -7, flag: true, note: format!("note number {}", i),
            items: vec![7; 10 + i as usize], name: "a name that is kept".into(), next: last }));
    }
    let order = last.unwrap();
    println!("{:p} {:p}", order, &**order.next.as_ref().unwrap());
    println!("ready");
    let _ = std::io::stdin().read(&mut [0]);
    println!("{} {} {} {} {} {} {}", order.number, order.rate, order.small, order.flag, order.note, order.items.len(), order.name);
}
"""


@unittest.skipUnless(shutil.which("rustc"), "no rustc")
class RustTest(harness.LiveTest):
    def test_values_are_those_of_the_program(self):
        program = harness.build(self.path("orders"), "rustc", "-g", "-", text=RUST)
        process = self.start([program])
        first, second = process.said[0].split()
        core = harness.snap(process, self.path("core"))
        rows = harness.tables("-q", core, "sql", "SELECT m.path, m.value, m.length, t.address AS target FROM allocation AS a"
                              " CROSS JOIN member AS m ON m.id = a.id LEFT JOIN allocation AS t ON t.id = m.target"
                              f" WHERE a.address = {int(first, 16)}")["result"]
        found = {row["path"]: row for row in rows}
        self.assertEqual({path: (found[path]["value"], found[path]["length"]) for path in
                          ("number", "rate", "small", "flag", "note", "items", "name")},
                         {"number": (102, None), "rate": (0.5, None), "small": (-7, None), "flag": (1, None),
                          "note": ("note number 2", 13), "items": (None, 12), "name": ("a name that is kept", 19)})
        self.assertIn(second, [row["target"] for row in rows])


class MembersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="heapcore-")
        cls.addClassCleanup(folder.cleanup)
        program = harness.build(os.path.join(folder.name, "program"), "cc", "-g", "-O0", "-x", "c", "-",
                                text=PROGRAM)
        cls.core = os.path.join(folder.name, "core")
        with harness.ended(harness.launch([program])) as process:
            cls.first, cls.second, cls.tail, cls.grid = process.stdout.readline().split()
            harness.snap(process, cls.core)

    def rows(self, query, *options):
        return harness.tables("-q", *options, self.core, "sql", query)["result"]

    def members(self, address, *options):
        query = ("SELECT member.* FROM allocation CROSS JOIN member USING (id)"
                 f" WHERE allocation.address = {address}")
        return {row["path"]: row for row in self.rows(query, *options)}

    def identity(self, address):
        return self.rows(f"SELECT id FROM allocation WHERE address = {address}")[0]["id"]

    def test_values_are_those_of_the_program(self):
        found = self.members(self.second)
        self.assertEqual({path: found[path]["value"] for path in VALUES}, VALUES)
        self.assertEqual(set(found) - set(VALUES), {"as_real", "tail", "call"})
        self.assertEqual(found["tail"]["value"], int(self.tail, 16))
        self.assertEqual(found["tail"]["target"], self.identity(self.tail))
        self.assertIsNone(found["next"]["target"])
        self.assertEqual(found["next"]["type"], "struct node *")
        self.assertEqual((found["name"]["type"], found["name"]["size"]), ("char[12]", 12))
        self.assertEqual(self.members(self.first)["next"]["target"], self.identity(self.second))

    def test_offsets_are_where_the_values_stand(self):
        row = self.members(self.second)["large"]
        word = self.rows(f"SELECT words({int(self.second, 16) + row['offset']}, 1) AS word")[0]["word"]
        self.assertEqual(int(word, 16), 2 ** 64 - 1)

    def test_arrays_and_tails_have_all_elements_up_to_a_bound(self):
        tail = self.members(self.tail)
        self.assertEqual([tail[f"points[{i}].y"]["value"] for i in range(5)], [0, -1, -2, -3, -4])
        grid = self.members(self.grid)
        self.assertEqual(len(grid), 4096)
        self.assertIn("[2047].y", grid)

    def test_a_lookup_visits_one(self):
        one = self.identity(self.second)
        self.assertEqual({row["visited"] for row in
                          self.rows(f"SELECT visited() AS visited FROM member WHERE id = {one}")}, {1})
        every = self.rows("SELECT id FROM member")
        self.assertEqual([row["id"] for row in every], sorted(row["id"] for row in every))

    def test_what_the_user_states_holds_for_the_next_question(self):
        question = f"sql 'SELECT type, kind FROM allocation WHERE address = {self.grid}'\n"
        text = harness.ask("-q", "--format", "csv", self.core,
                           input=f"{question}istype {self.grid} tail\n{question}").stdout
        self.assertIn("result,struct point[],struct point[]", text)
        self.assertRegex(text, r"result,([^,]*struct tail[^,]*),\1\r?\n$")

    def test_values_are_left_out_without_content(self):
        found = self.members(self.second, "--no-content")
        self.assertEqual({row["value"] for row in found.values()}, {"(content left out)"})
        self.assertNotIn("it's", json.dumps(found))


if __name__ == "__main__":
    unittest.main()
