/*
 * Getters: functions that return a word of the object that is their first argument, such as those
 * by which a class written in C shows its members to an interpreted language.
 */
#pragma once

#include "analyzer/image/image.h"
#include "analyzer/program/disassembler.h"

/*
 * True if the function at entry returns the word at that offset of its first argument, or something
 * else where that is null. False as well where the machine code cannot be read. *disassembler is
 * NULL at first, and the caller's to destroy.
 */
bool getter_returns(const struct image *image, struct disassembler **disassembler, uint64_t entry,
		    uint64_t offset);
