/*
 * Protocol buffers, as far as writing a message takes: varints, text, messages within messages.
 *
 * A library such as protobuf-c would need its compiler to build heapcore, and all of a profile as
 * a tree of structures in memory; this is the whole of what it would save. See
 * https://protobuf.dev/programming-guides/encoding/.
 */
#pragma once

#include "analyzer/report/writer.h"

void protobuf_varint(struct writer *writer, uint64_t number);

/* A number that is not 0, which is what a field has by default. */
void protobuf_number(struct writer *writer, unsigned int field, uint64_t number);
void protobuf_bytes(struct writer *writer, unsigned int field, const char *bytes, size_t size);

/* A message, or packed numbers, from memory, which is released. */
void protobuf_message(struct writer *writer, unsigned int field, struct writer *message);
