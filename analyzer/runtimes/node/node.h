/*
 * Node.js: V8's heap, and the memory of its Buffers.
 *
 * V8's objects are no allocations; its heap is memory outside of heaps, and a root: a word of it
 * that is not tagged, such as the address of a buffer, is an address as any other.
 */
#ifndef ANALYZER_RUNTIMES_NODE_NODE_H
#define ANALYZER_RUNTIMES_NODE_NODE_H

#include "analyzer/runtimes/runtime.h"

extern const struct runtime runtime_node;

#endif
