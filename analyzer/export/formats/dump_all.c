/*
 * Writes ObjectSpace.dump_all's format, a line of JSON for each object of Ruby, for heapy, sheap,
 * jq and other tools that read it (ext/objspace/objspace_dump.c).
 *
 *	{"type":"ROOT", "root":"vm", "references":["0x7f...", ...]}
 *	{"address":"0x7f...", "type":"STRING", "class":"0x7f...", "embedded":true, "bytesize":5,
 *	 "value":"hello", "encoding":"UTF-8", "coderange":"7bit", "memsize":40}
 *
 * Members that are no objects are left out, and so are bits of the collector, but for "old".
 */
#include "allocators/ruby/ruby.h"
#include "analyzer/export/export.h"
#include "analyzer/report/values.h"
#include "analyzer/runtimes/ruby/links.h"
#include "analyzer/runtimes/ruby/objects.h"
#include "analyzer/runtimes/ruby/references.h"
#include "analyzer/runtimes/ruby/traces.h"

#include <math.h>

enum {
	WORD = 8,
	CLASS = 8,
	CONTENTS = 16,
	/* Bits of an object's flags. */
	OLD_1 = 1 << 5,
	OLD_2 = 1 << 6,
	FROZEN = 1 << 11,
	FLAG_1 = 1 << 13,   /* of arrays and objects: embedded; of strings: not */
	HAS_PROC = 1 << 14, /* of a Hash: what it has for missing keys is a Proc */
	FSTRING = 1 << 29,  /* of strings: the one of its text */
	SHAPE_SHIFT = 32,
	MOST_TEXT = 1 << 16,
};

struct dumping {
	const struct export *export;
	struct writer *writer;
	struct ruby *ruby;
	struct view view;
	struct ruby_references references;
	struct ruby_traces traces;
	bool has_two_bits; /* up to 3.2, old objects have both bits */
};

/* An object at hand. */
struct dumped {
	allocation_id id;
	uint64_t address, size, flags, type, class;
};

static void write_address(struct dumping *dumping, uint64_t address)
{
	writer_text(dumping->writer, "\"0x");
	writer_hexadecimal(dumping->writer, address);
	writer_put(dumping->writer, '"');
}

/* Name and separator of a member that is not the first. */
static void begin_member(struct dumping *dumping, const char *name)
{
	writer_text(dumping->writer, ", \"");
	writer_text(dumping->writer, name);
	writer_text(dumping->writer, "\":");
}

static void write_text_of(struct dumping *dumping, const char *name, const char *text)
{
	begin_member(dumping, name);
	json_text(dumping->writer, text);
}

static void write_number(struct dumping *dumping, const char *name, uint64_t number)
{
	begin_member(dumping, name);
	writer_decimal(dumping->writer, number);
}

static void write_reference(struct dumping *dumping, const char *name, uint64_t address)
{
	if (!address)
		return;
	begin_member(dumping, name);
	write_address(dumping, address);
}

static void write_truth(struct dumping *dumping, const char *name, bool truth)
{
	if (!truth)
		return;
	begin_member(dumping, name);
	writer_text(dumping->writer, "true");
}

static void write_references(struct dumping *dumping)
{
	const struct ruby_references *references = &dumping->references;
	const struct allocation_index *index = dumping->ruby->space.index;

	if (references->found.count == 0)
		return;
	begin_member(dumping, "references");
	for (size_t i = 0; i < references->found.count; i++) {
		writer_text(dumping->writer, i ? ", " : "[");
		write_address(dumping, allocation_start(index, references->found.items[i]));
	}
	writer_put(dumping->writer, ']');
}

/* Only in the encodings whose numbers are the same everywhere (encindex.h). */
static const char *const encodings[] = {
	NULL,	    "UTF-8",  "US-ASCII", "UTF-16BE", "UTF-16LE", "UTF-32BE",
	"UTF-32LE", "UTF-16", "UTF-32",	  "UTF8-MAC", "EUC-JP",	  "Windows-31J",
};

/* Bits of flags that say how a string is coded, include/ruby/internal/encoding/coderange.h. */
enum {
	BINARY,
	UTF_8,
	US_ASCII,
	ENCODING_SHIFT = 22,
	ENCODINGS = 128,
	RANGE_SHIFT = 20,
	BROKEN = 3
};

/* Write a text in UTF-8, if JSON can hold it. */
static void write_value(struct dumping *dumping, uint64_t address, uint64_t encoding)
{
	char text[MOST_TEXT + 1];
	uint64_t length = ruby_text_length(&dumping->ruby->slots, &dumping->view, address);

	if (dumping->export->no_content || encoding > US_ASCII ||
	    (length > 0 &&
	     !ruby_read_text(&dumping->ruby->slots, &dumping->view, address, text, sizeof(text))))
		return;
	length = MIN(length, MOST_TEXT);
	for (uint64_t i = 0; encoding == BINARY && i < length; i++)
		if (text[i] & 0x80)
			return;
	begin_member(dumping, "value");
	json_bytes(dumping->writer, text, length);
}

static void write_string(struct dumping *dumping, const struct dumped *object)
{
	static const char *const ranges[] = { "unknown", "7bit", "valid", "broken" };
	uint64_t encoding = (object->flags >> ENCODING_SHIFT) % ENCODINGS;
	uint64_t range = object->flags >> RANGE_SHIFT & BROKEN;

	write_truth(dumping, "embedded", !(object->flags & FLAG_1));
	write_truth(dumping, "fstring", object->flags & FSTRING);
	if (ruby_shared_with(&dumping->ruby->slots, &dumping->view, object->address)) {
		write_truth(dumping, "shared", true);
	} else {
		write_number(
			dumping, "bytesize",
			ruby_text_length(&dumping->ruby->slots, &dumping->view, object->address));
		if (range != BROKEN)
			write_value(dumping, object->address, encoding);
	}
	if (encoding < COUNT_OF(encodings) && encodings[encoding])
		write_text_of(dumping, "encoding", encodings[encoding]);
	write_text_of(dumping, "coderange", ranges[range]);
}

static void write_array(struct dumping *dumping, const struct dumped *object)
{
	uint64_t elements, count;

	if (!ruby_read_array(&dumping->ruby->slots, &dumping->view, object->address, &elements,
			     &count))
		return;
	write_number(dumping, "length", count);
	write_truth(dumping, "shared",
		    ruby_shared_with(&dumping->ruby->slots, &dumping->view, object->address));
	write_truth(dumping, "embedded", object->flags & FLAG_1);
}

static void write_hash(struct dumping *dumping, const struct dumped *object)
{
	uint64_t missing, size = ruby_hash_size(&dumping->view, object->address, object->size);

	write_number(dumping, "size", size);
	if ((object->flags & HAS_PROC) &&
	    view_word(&dumping->view, ruby_hash_default(object->address, object->size), &missing))
		write_reference(dumping, "default", missing);
}

static void write_class(struct dumping *dumping, const struct dumped *object)
{
	const struct ruby_slots *slots = &dumping->ruby->slots;
	char name[RUBY_MOST_NAME + 1];

	write_reference(dumping, "superclass", ruby_super(slots, &dumping->view, object->address));
	if (object->type == RUBY_ICLASS)
		return;
	if (ruby_read_name(slots, &dumping->view, object->address, name))
		write_text_of(dumping, "name", name);
	else if (ruby_read_name(slots, &dumping->view,
				ruby_real_class(slots, &dumping->view, object->address), name))
		write_text_of(dumping, "real_class_name", name);
	write_truth(dumping, "singleton",
		    object->type == RUBY_CLASS && (object->flags & slots->singleton));
}

static void write_symbol(struct dumping *dumping, const struct dumped *object)
{
	enum { STRING = 24 };
	uint64_t string;

	if (!view_word(&dumping->view, object->address + STRING, &string) ||
	    !ruby_slot_flags(&dumping->ruby->slots, &dumping->view, string))
		return;
	write_number(dumping, "bytesize",
		     ruby_text_length(&dumping->ruby->slots, &dumping->view, string));
	write_value(dumping, string, UTF_8);
}

static void write_variables(struct dumping *dumping, const struct dumped *object)
{
	enum { OLD_EMBEDDED = 3 };
	bool is_old = !dumping->ruby->slots.has_length_behind;
	uint64_t count = ruby_variable_count(dumping->ruby, object->flags);

	write_truth(dumping, "embedded", !is_old && (object->flags & FLAG_1));
	if (is_old && (object->flags & FLAG_1))
		count = OLD_EMBEDDED;
	else if (is_old && view_word(&dumping->view, object->address + CONTENTS, &count))
		count = (uint32_t)count;
	if (count != RUBY_NO_COUNT)
		write_number(dumping, "ivars", count);
}

static void write_float(struct dumping *dumping, const struct dumped *object)
{
	double number;
	char text[64];

	if (dumping->export->no_content ||
	    !view_read(&dumping->view, object->address + CONTENTS, &number, sizeof(number)))
		return;
	snprintf(text, sizeof(text), "%#g", number);
	write_text_of(dumping, "value",
		      isnan(number)   ? "NaN"
		      : isinf(number) ? (number < 0 ? "-Inf" : "Inf")
				      : text);
}

static void write_data(struct dumping *dumping, const struct dumped *object)
{
	uint64_t type = ruby_find_data_type(dumping->ruby, &dumping->view, object->address);
	char name[RUBY_MOST_NAME + 1];

	if (type && ruby_read_data_name(dumping->ruby->space.image, type, name))
		write_text_of(dumping, "struct", name);
}

static void write_imemo(struct dumping *dumping, const struct dumped *object)
{
	const char *name = ruby_imemo_name(ruby_imemo_kind(&dumping->ruby->slots, object->flags));

	write_text_of(dumping, "imemo_type", name ? name : "unknown");
}

static void write_of_type(struct dumping *dumping, const struct dumped *object)
{
	static void (*const write[RUBY_TYPES])(struct dumping * dumping,
					       const struct dumped *object) = {
		[RUBY_OBJECT] = write_variables, [RUBY_STRING] = write_string,
		[RUBY_ARRAY] = write_array,	 [RUBY_HASH] = write_hash,
		[RUBY_CLASS] = write_class,	 [RUBY_MODULE] = write_class,
		[RUBY_ICLASS] = write_class,	 [RUBY_SYMBOL] = write_symbol,
		[RUBY_FLOAT] = write_float,	 [RUBY_DATA] = write_data,
		[RUBY_IMEMO] = write_imemo,
	};

	if (write[object->type])
		write[object->type](dumping, object);
}

/* Write where the object was allocated, if the program traces that. */
static void write_trace(struct dumping *dumping, const struct dumped *object)
{
	char method[RUBY_MOST_NAME + 1];
	struct ruby_trace trace;

	if (!ruby_traces_find(&dumping->traces, dumping->ruby, &dumping->view, object->address,
			      &trace))
		return;
	if (trace.path[0])
		write_text_of(dumping, "file", trace.path);
	if (trace.line)
		write_number(dumping, "line", trace.line);
	if (ruby_read_symbol(&dumping->ruby->symbols, &dumping->view, trace.method, method))
		write_text_of(dumping, "method", method);
	write_number(dumping, "generation", trace.generation);
}

/* From Ruby 3.2 on, slots are of several sizes. */
static struct error *write_object(struct dumping *dumping, const struct dumped *object)
{
	uint64_t old = dumping->has_two_bits ? OLD_1 | OLD_2 : OLD_1;
	const char *type = ruby_type_name(object->type);

	TRY(ruby_references_find(&dumping->references, object->id));
	writer_text(dumping->writer, "{\"address\":");
	write_address(dumping, object->address);
	write_text_of(dumping, "type", type ? type + strlen("T_") : "unknown");
	if (dumping->ruby->slots.has_length_behind) {
		write_number(dumping, "shape_id", object->flags >> SHAPE_SHIFT);
		write_number(dumping, "slot_size", object->size);
	}
	write_reference(dumping, "class", object->class);
	write_truth(dumping, "frozen", object->type != RUBY_IMEMO && (object->flags & FROZEN));
	write_of_type(dumping, object);
	write_references(dumping);
	write_trace(dumping, object);
	write_number(dumping, "memsize", object->size + dumping->references.bytes);
	if ((object->flags & old) == old)
		writer_text(dumping->writer, ", \"flags\":{\"old\":true}");
	writer_text(dumping->writer, "}\n");
	return NULL;
}

static bool read_object(struct dumping *dumping, allocation_id id, struct dumped *ret)
{
	const struct allocation_index *index = dumping->ruby->space.index;

	*ret = (struct dumped){
		.id = id,
		.address = allocation_start(index, id),
		.size = allocation_size(index, id),
	};
	if (!view_word(&dumping->view, ret->address, &ret->flags))
		return false;
	ret->type = ret->flags % RUBY_TYPES;
	if (ret->type != RUBY_IMEMO && ret->type != RUBY_NODE)
		view_word(&dumping->view, ret->address + CLASS, &ret->class);
	return ret->type != 0;
}

static struct error *write_objects(struct dumping *dumping)
{
	struct progress *progress = analysis_progress(dumping->export->analysis);
	struct dumped object;

	progress_begin(progress, "writing objects", dumping->export->members->count);
	bitmap_for_each(id, dumping->export->members) {
		TRY(progress_check(progress, 1));
		if (bitmap_get(&dumping->ruby->slots.slots, id) &&
		    read_object(dumping, (allocation_id)id, &object))
			TRY(write_object(dumping, &object));
	}
	return NULL;
}

/* Write roots by kind, because Ruby's own are not known. */
static struct error *write_roots(struct dumping *dumping)
{
	static const char *const names[ROOT_KINDS] = {
		[ROOT_STATIC] = "vm",	       [ROOT_STACK] = "machine_context",
		[ROOT_REGISTER] = "registers", [ROOT_KERNEL] = "kernel",
		[ROOT_INTEGER] = "integers",
	};
	const struct roots *roots = analysis_roots(dumping->export->analysis);

	for (enum root_kind kind = 0; kind < ROOT_KINDS; kind++) {
		TRY(ruby_references_find_from(&dumping->references, root_targets(roots, kind),
					      kind == ROOT_STATIC));
		if (dumping->references.found.count == 0)
			continue;
		writer_text(dumping->writer, "{\"type\":\"ROOT\", \"root\":\"");
		writer_text(dumping->writer, names[kind]);
		writer_put(dumping->writer, '"');
		write_references(dumping);
		writer_text(dumping->writer, "}\n");
	}
	return NULL;
}

/* True if any object has the upper one of two bits for its age. */
static bool find_two_bits(struct dumping *dumping)
{
	const struct ruby *ruby = dumping->ruby;
	size_t hint = 0;

	bitmap_for_each(id, &ruby->slots.slots) {
		uint64_t flags,
			start = allocation_range_near(ruby->space.index, (allocation_id)id, &hint)
					.start;

		if (view_word(&dumping->view, start, &flags) && (flags & OLD_2))
			return true;
	}
	return false;
}

extern const struct runtime runtime_ruby;

static struct error *dump_all_write(const struct export *export, struct writer *writer)
{
	struct dumping dumping = { .export = export, .writer = writer };
	struct error *error;

	TRY(analysis_need(export->analysis, STAGE_OBJECT_PATHS));
	TRY(analysis_need(export->analysis, STAGE_ROOTS));
	dumping.ruby =
		(struct ruby *)runtimes_space(analysis_runtimes(export->analysis), &runtime_ruby);
	if (!dumping.ruby)
		return error_create(ERROR_USAGE,
				    "'dump_all' writes objects of Ruby, and this process has none");
	dumping.view.image = dumping.ruby->space.image;
	dumping.has_two_bits = !dumping.ruby->slots.has_boxes && find_two_bits(&dumping);
	error = ruby_references_init(&dumping.references, dumping.ruby,
				     root_targets(analysis_roots(export->analysis), ROOT_STATIC));
	if (!error)
		error = ruby_traces_init(&dumping.traces, dumping.ruby);
	if (!error)
		error = write_roots(&dumping);
	if (!error)
		error = write_objects(&dumping);
	if (!error && !ruby_references_are_complete(&dumping.references))
		analysis_doubt(
			export->analysis,
			"references of objects are missing: too many share the memory that they lead to");
	ruby_traces_deinit(&dumping.traces);
	ruby_references_deinit(&dumping.references);
	return error;
}

const struct export_format export_format_dump_all = {
	.name = "dump_all",
	.summary =
		"objects of Ruby one by one, as ObjectSpace.dump_all writes them, for heapy, sheap and jq",
	.lists_members = true,
	.write = dump_all_write,
};
