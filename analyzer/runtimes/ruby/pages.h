/*
 * Pages of Ruby's objects. The head of a page leads to its struct heap_page (gc.c, 2.x to 3.4), one
 * of whose first words leads back to where objects begin:
 *
 *	page (16 or 64 KiB)          struct heap_page
 *	| *heap_page | objects |     | u16 slot size, slots | .. start .. |
 *
 * Up to Ruby 3.0, slots have 40 bytes, and their number comes first.
 */
#ifndef ANALYZER_RUNTIMES_RUBY_PAGES_H
#define ANALYZER_RUNTIMES_RUBY_PAGES_H

#include "analyzer/runtimes/runtime.h"

extern const struct object_pages ruby_pages;
extern const struct integer_encoding ruby_integer;

#endif
