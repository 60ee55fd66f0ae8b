#!/usr/bin/env python3
"""
Go: what its heap is used for, against what its runtime says, and what C code lost by way of objects
that are gone.
"""

import json
import shutil
import unittest

import harness

# Only objects of Go have had the ones that were dropped.
KINDS = {"lost": (300, 744), "dropped": (2000, 1000), "kept": (2000, 2000)}

PROGRAM = """
package main

/*
#include <stdlib.h>
#include <string.h>

// The program keeps no address as such.
__attribute__((noinline)) static unsigned long lose(size_t size)
{
	return ~(unsigned long)memset(malloc(size), 1, size);
}
*/
import "C"
import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"
	"unsafe"
)

type node struct {
	name  string
	block unsafe.Pointer
}

var kept []*node
var places = map[string][]uint64{}

//go:noinline
func take(kind string, size int) *node {
	hidden := uint64(C.lose(C.size_t(size)))
	places[kind] = append(places[kind], hidden)
	return &node{fmt.Sprint("node ", hidden), unsafe.Pointer(uintptr(^hidden))}
}

//go:noinline
func drop(count, size int) {
	nodes := map[string]*node{}
	for i := 0; i < count; i++ {
		made := take("dropped", size)
		nodes[made.name] = made
	}
}

func main() {
	for i := 0; i < LOST; i++ {
		places["lost"] = append(places["lost"], uint64(C.lose(LOST_SIZE)))
	}
	drop(DROPPED, DROPPED_SIZE)
	for i := 0; i < KEPT; i++ {
		kept = append(kept, take("kept", KEPT_SIZE))
	}
	for i := 0; i < 200; i++ {
		go func() { time.Sleep(time.Hour) }()
	}
	for i := 0; i < 5; i++ {
		var bytes [][]byte
		for j := 0; j < 5000; j++ {
			bytes = append(bytes, make([]byte, 300+i))
		}
		runtime.GC()
	}
	debug.SetGCPercent(-1)
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	json.NewEncoder(os.Stdout).Encode(map[string]any{"places": places, "stats": stats})
	fmt.Println("ready")
	for {
		time.Sleep(time.Hour)
	}
}
"""


@unittest.skipUnless(shutil.which("go"), "there is no go")
class Go(harness.LiveTest):
    """One core for all."""

    def test_what_the_runtime_says(self):
        text = PROGRAM
        for kind, numbers in KINDS.items():
            text = text.replace(f"{kind.upper()}_SIZE", str(numbers[1]))
            text = text.replace(kind.upper(), str(numbers[0]))
        with open(self.path("program.go"), "w", encoding="utf-8") as file:
            file.write(text)
        result = harness.run("go", "build", "-ldflags", "-s", "-o", self.path("program"),
                             self.path("program.go"),
                             env=harness.environment(GOCACHE=self.path("cache")))
        self.assertEqual(result.returncode, 0, result.stderr)
        process = self.start([self.path("program")])
        self.core = harness.snap(process, self.path("core"))
        harness.end(process)
        self.assertIn("is in Go: objects of Go are not counted as allocations",
                      harness.ask(self.core, "count leaked").stderr)
        truth = json.loads(process.said[0])
        self.check_bill(truth["stats"])
        self.check_leaks({kind: {~place & (1 << 64) - 1 for place in places}
                          for kind, places in truth["places"].items()})

    def check_bill(self, stats):
        """To write the truth takes some memory."""
        rows = harness.tables("-q", self.core, "bill")["use"]
        found = {row["use"].partition(": ")[2]: row["mapped"] for row in rows
                 if row["use"].startswith("Go's heap: ")}
        self.assertAlmostEqual(found["objects"], stats["HeapInuse"], delta=1 << 20)
        self.assertAlmostEqual(found["stacks"], stats["StackInuse"], delta=1 << 18)
        used = found["objects"] + found["stacks"] + found["free"]
        said = stats["HeapSys"] + stats["StackSys"]
        # The rest of its memory is the collector's, within what it says of that.
        self.assertLessEqual(abs(used + found.get("of the collector", 0) - said),
                             stats["GCSys"])
        self.assertTrue(any(row["use"] == "Go's tables of pages" and row["resident"]
                            for row in rows))

    def check_leaks(self, places):
        rows = harness.tables("-q", self.core, "list", "leaked")["allocation"]
        leaked = {int(row["address"], 16) for row in rows}
        self.assertEqual({kind: len(found) for kind, found in places.items()},
                         {kind: numbers[0] for kind, numbers in KINDS.items()})
        self.assertEqual(leaked & places["kept"], set())
        self.assertEqual(leaked - places["lost"] - places["dropped"], set())
        missed = (places["lost"] | places["dropped"]) - leaked
        # Its heap is at low addresses, as which three letters can be read.
        self.assertLess(len(missed), 50, [
            harness.ask("-q", self.core, "explain", hex(address)).stdout
            for address in sorted(missed)[:3]])


if __name__ == "__main__":
    unittest.main()
