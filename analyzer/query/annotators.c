#include "analyzer/query/annotators.h"

static void put(struct writer *out, const char *text)
{
	writer_bytes(out, text, strlen(text));
}

/* The first characters of a text. */
static void write_text(const struct annotated_place *place, uint64_t address, uint64_t length,
		       struct writer *out)
{
	enum { SHOWN = 64 };
	char text[SHOWN];
	bool cut = length > SHOWN;

	if (cut)
		length = SHOWN;
	if (!image_read(place->reader->image, address, text, length))
		return;
	put(out, ", \"");
	writer_bytes(out, text, strnlen(text, length));
	put(out, cut ? "\"..." : "\"");
}

static uint64_t tell_string(const struct annotated_place *place, bool is_short, struct writer *out)
{
	struct cxx_string string;

	if (!cxx_string_read(place->reader, place->address, place->words, place->count, &string) ||
	    (string.kind == STRING_SHORT) != is_short)
		return 0;
	put(out, "length ");
	writer_decimal(out, string.length);
	if (!is_short) {
		put(out, ", capacity ");
		writer_decimal(out, string.capacity);
		put(out, ", text at ");
		writer_hexadecimal(out, string.text);
	}
	write_text(place, string.text, string.length, out);
	return string.size;
}

static uint64_t tell_short_string(const struct annotated_place *place, struct writer *out)
{
	return tell_string(place, true, out);
}

static uint64_t tell_long_string(const struct annotated_place *place, struct writer *out)
{
	return tell_string(place, false, out);
}

static uint64_t tell_module(const struct annotated_place *place, struct writer *out)
{
	uint64_t address = place->words[0];
	const struct module *module;
	struct debug *debug = analysis_debug(place->analysis);
	struct symbol symbol;

	if (!reader_in_module(place->reader, address))
		return 0;
	module = program_find_module(place->reader->program, address);
	writer_hexadecimal(out, address);
	put(out, ", at offset ");
	writer_hexadecimal(out, address - module->start);
	put(out, " of ");
	put(out, module_name(module));
	if (!debug_symbol(debug, address, &symbol))
		return sizeof(address);
	put(out, ", ");
	put(out, symbol.name);
	if (address > symbol.start) {
		put(out, "+0x");
		writer_hexadecimal(out, address - symbol.start);
	}
	return sizeof(address);
}

/* What the allocation is, as far as its own words say. */
static const char *name_of(struct analysis *analysis, allocation_id id)
{
	uint64_t signature = analysis_signature(analysis, id);
	struct identity identity;

	if (signature)
		return classes_name(analysis_classes(analysis), signature);
	return analysis_identity(analysis, id, &identity) ? identity.name : NULL;
}

static uint64_t tell_allocation(const struct annotated_place *place, struct writer *out)
{
	struct reader *reader = place->reader;
	uint64_t address = place->words[0], start;
	allocation_id id;
	const char *name;

	if (!heap_bounds_hold(&reader->bounds, address))
		return 0;
	id = allocation_find(reader->index, address);
	if (id == NO_ALLOCATION)
		return 0;
	start = allocation_start(reader->index, id);
	name = name_of(place->analysis, id);
	writer_hexadecimal(out, address);
	put(out, ", at offset ");
	writer_hexadecimal(out, address - start);
	put(out, bitmap_get(reader->used, id) ? " of the used allocation at "
					      : " of the free allocation at ");
	writer_hexadecimal(out, start);
	put(out, " of size ");
	writer_hexadecimal(out, allocation_size(reader->index, id));
	if (name) {
		put(out, " (");
		put(out, name);
		put(out, ")");
	}
	return sizeof(address);
}

static const struct annotator annotators[] = {
	{ "SSOString", "a std::string with its text in itself", tell_short_string, true },
	{ "LongString", "a std::string with its text elsewhere", tell_long_string, true },
	{ "ModuleAddress", "an address in the program or a library, and what is there",
	  tell_module },
	{ "AllocationAddress", "an address in an allocation, and in which", tell_allocation },
};

const struct annotator *annotator_at(size_t number)
{
	return number < sizeof(annotators) / sizeof(*annotators) ? &annotators[number] : NULL;
}
