#include "analyzer/export/protobuf.h"

enum wire_type { WIRE_VARINT = 0, WIRE_BYTES = 2 };

void protobuf_varint(struct writer *writer, uint64_t number)
{
	for (; number >= 0x80; number >>= 7)
		writer_put(writer, (char)(number | 0x80));
	writer_put(writer, (char)number);
}

static void write_tag(struct writer *writer, unsigned int field, enum wire_type type)
{
	protobuf_varint(writer, (uint64_t)field << 3 | type);
}

void protobuf_number(struct writer *writer, unsigned int field, uint64_t number)
{
	if (!number)
		return;
	write_tag(writer, field, WIRE_VARINT);
	protobuf_varint(writer, number);
}

void protobuf_bytes(struct writer *writer, unsigned int field, const char *bytes, size_t size)
{
	write_tag(writer, field, WIRE_BYTES);
	protobuf_varint(writer, size);
	writer_bytes(writer, bytes, size);
}

void protobuf_message(struct writer *writer, unsigned int field, struct writer *message)
{
	write_tag(writer, field, WIRE_BYTES);
	protobuf_varint(writer, message->used);
	writer_move(writer, message);
}
