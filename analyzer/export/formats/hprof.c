/*
 * A heap dump as Java's hprof has it ("JAVA PROFILE 1.0.2"), for Eclipse MAT, VisualVM and
 * Perfetto. All numbers are big-endian; ids have 8 bytes.
 *
 * Kinds are classes, allocations their instances, with addresses as ids. A root is a class, whose
 * static field "holds" what it holds. Each instance has
 *
 *	bytes, retained, count    as heapcore has them; count: of those that it stands for
 *	holds                     an array of what it refers to, or dominates; or null
 *	contents                  an array of zeros, so that the viewer's sizes come out
 *
 * A viewer adds up headers, fields and arrays. So the zeros are as many as are missing to the
 * size of the allocation; the smallest seem a little larger than they are. Of more than
 * MOST_ZEROS, there is only one for each unit of a power of two, which is a static field of the
 * class heapcore.Allocation.
 */
#include "analyzer/base/text.h"
#include "analyzer/export/sample.h"

#include <string.h>

enum { TAG_STRING = 0x01, TAG_LOAD_CLASS, TAG_TRACE = 0x05, TAG_SEGMENT = 0x1c, TAG_END = 0x2c };
enum { DUMP_STICKY_CLASS = 0x05, DUMP_CLASS = 0x20, DUMP_INSTANCE, DUMP_OBJECTS, DUMP_PRIMITIVES };
enum { TYPE_OBJECT = 2, TYPE_BYTE = 8, TYPE_LONG = 11 };
enum { ID_SIZE = 8, TRACE = 1, SEGMENT_SIZE = 1 << 20 };

/* Sizes in viewers: of an instance, and of an array of 8-byte ids or of bytes. */
enum { INSTANCE_SIZE = 16 + 5 * 8, ARRAY_SIZE = 24 };

static const uint64_t MOST_ZEROS = UINT64_C(1) << 28;

/* Ids that are no addresses. What belongs to an allocation has an id within it. */
static const uint64_t OWN_IDS = UINT64_C(1) << 62;
enum { ID_STEP = 8, ID_HOLDS = 1, ID_CONTENTS = 2 };

/* Strings and classes of our own, then those of names, then objects that are no allocations. */
enum own {
	OWN_NONE, /* an id of 0 is null */
	OWN_OBJECT,
	OWN_CLASS,
	OWN_LOADER,
	OWN_STRING,
	OWN_OBJECTS,
	OWN_BYTES,
	OWN_ALLOCATION,
	OWN_LAST_CLASS = OWN_ALLOCATION,
	OWN_FIELD_BYTES,
	OWN_FIELD_RETAINED,
	OWN_FIELD_COUNT,
	OWN_FIELD_HOLDS,
	OWN_FIELD_CONTENTS,
	OWN_FIELD_UNIT,
	OWNS
};

static const char *const own_texts[OWNS] = {
	[OWN_OBJECT] = "java/lang/Object",
	[OWN_CLASS] = "java/lang/Class",
	[OWN_LOADER] = "java/lang/ClassLoader",
	[OWN_STRING] = "java/lang/String",
	[OWN_OBJECTS] = "[Ljava/lang/Object;",
	[OWN_BYTES] = "[B",
	[OWN_ALLOCATION] = "heapcore/Allocation",
	[OWN_FIELD_BYTES] = "bytes",
	[OWN_FIELD_RETAINED] = "retained",
	[OWN_FIELD_COUNT] = "count",
	[OWN_FIELD_HOLDS] = "holds",
	[OWN_FIELD_CONTENTS] = "contents",
	[OWN_FIELD_UNIT] = "unitOfContents",
};

struct dump {
	const struct export *export;
	struct sample sample;
	struct writer *out;
	struct writer segment;	 /* in memory */
	uint32_t classes;	 /* loaded so far */
	unsigned int shift;	 /* of the sizes, to zeros */
	ARRAY(uint8_t) is_class; /* by name: it is one of an instance or a root */
};

static void dump_deinit(struct dump *dump)
{
	sample_deinit(&dump->sample);
	writer_deinit(&dump->segment);
	array_release(&dump->is_class);
}
DEFINE_DEINIT(dump_deinit, struct dump)

static void put(struct writer *writer, uint64_t number, unsigned int bytes)
{
	while (bytes-- > 0)
		writer_put(writer, (char)(number >> 8 * bytes));
}

static void put_id(struct writer *writer, uint64_t id)
{
	put(writer, id, ID_SIZE);
}

static void begin_record(struct dump *dump, unsigned int tag, uint64_t size)
{
	put(dump->out, tag, 1);
	put(dump->out, 0, 4);
	put(dump->out, size, 4);
}

static uint64_t own_id(uint64_t number)
{
	return number ? OWN_IDS + number * ID_STEP : 0;
}

static uint64_t name_id(uint64_t name)
{
	return own_id(OWNS + name);
}

static uint64_t object_id(const struct dump *dump, uint32_t number)
{
	const struct object *object = &dump->sample.objects.items[number];

	if (object->kind == OBJECT_ALLOCATION)
		return allocation_start(analysis_index(dump->export->analysis), object->id);
	if (object->kind == OBJECT_OTHERS)
		return own_id(OWNS + dump->export->owners->names.list.count + number);
	return name_id(object->name);
}

/* Viewers take [] at the end, or [ at the beginning, for arrays. */
static void write_string(struct dump *dump, uint64_t id, const char *text, bool is_name)
{
	struct writer changed = { 0 };

	for (size_t i = 0; text[i]; i++)
		writer_put(&changed, is_name && text[i] == '['	 ? '('
				     : is_name && text[i] == ']' ? ')'
								 : text[i]);
	begin_record(dump, TAG_STRING, ID_SIZE + changed.used);
	put_id(dump->out, id);
	writer_move(dump->out, &changed);
}

static void write_loaded(struct dump *dump, uint64_t id)
{
	begin_record(dump, TAG_LOAD_CLASS, 4 + ID_SIZE + 4 + ID_SIZE);
	put(dump->out, ++dump->classes, 4);
	put_id(dump->out, id);
	put(dump->out, TRACE, 4);
	put_id(dump->out, id);
}

static void end_segment(struct dump *dump)
{
	if (!dump->segment.used)
		return;
	begin_record(dump, TAG_SEGMENT, dump->segment.used);
	writer_move(dump->out, &dump->segment);
}

static struct writer *segment(struct dump *dump)
{
	if (dump->segment.used >= SEGMENT_SIZE)
		end_segment(dump);
	return &dump->segment;
}

/* Write a class up to its fields, static ones first. */
static struct writer *begin_class(struct dump *dump, uint64_t id, uint64_t super, uint32_t size)
{
	struct writer *writer = segment(dump);

	put(writer, DUMP_CLASS, 1);
	put_id(writer, id);
	put(writer, TRACE, 4);
	put_id(writer, super);
	for (size_t i = 0; i < 5; i++)
		put_id(writer, 0);
	put(writer, size, 4);
	put(writer, 0, 2); /* constants */
	return writer;
}

static void put_field(struct writer *writer, enum own name, unsigned int type)
{
	put_id(writer, own_id(name));
	put(writer, type, 1);
}

static void write_own_classes(struct dump *dump)
{
	struct writer *writer;

	for (enum own own = OWN_OBJECT; own < OWN_ALLOCATION; own++) {
		writer = begin_class(dump, own_id(own), own == OWN_OBJECT ? 0 : own_id(OWN_OBJECT),
				     0);
		put(writer, 0, 4);
	}
	writer = begin_class(dump, own_id(OWN_ALLOCATION), own_id(OWN_OBJECT), 5 * 8);
	put(writer, 1, 2);
	put_field(writer, OWN_FIELD_UNIT, TYPE_LONG);
	put(writer, UINT64_C(1) << dump->shift, 8);
	put(writer, 5, 2);
	put_field(writer, OWN_FIELD_BYTES, TYPE_LONG);
	put_field(writer, OWN_FIELD_RETAINED, TYPE_LONG);
	put_field(writer, OWN_FIELD_COUNT, TYPE_LONG);
	put_field(writer, OWN_FIELD_HOLDS, TYPE_OBJECT);
	put_field(writer, OWN_FIELD_CONTENTS, TYPE_OBJECT);
}

/* The arrays of what an object holds: from its first edge on. Returns how many there are. */
static size_t write_held(struct dump *dump, uint32_t number, uint64_t id, size_t first)
{
	const struct object_edge *edges = dump->sample.edges.items;
	struct writer *writer;
	size_t count = 0;

	while (first + count < dump->sample.edges.count && edges[first + count].from == number)
		count++;
	if (!count)
		return 0;
	writer = segment(dump);
	put(writer, DUMP_OBJECTS, 1);
	put_id(writer, id + ID_HOLDS);
	put(writer, TRACE, 4);
	put(writer, count, 4);
	put_id(writer, own_id(OWN_OBJECTS));
	for (size_t i = 0; i < count; i++)
		put_id(writer, object_id(dump, edges[first + i].to));
	return count;
}

/* In a segment of its own, as it may be large. */
static void write_contents(struct dump *dump, uint64_t id, uint64_t size)
{
	static const char zeros[4096];

	end_segment(dump);
	begin_record(dump, TAG_SEGMENT, 1 + ID_SIZE + 4 + 4 + 1 + size);
	put(dump->out, DUMP_PRIMITIVES, 1);
	put_id(dump->out, id);
	put(dump->out, TRACE, 4);
	put(dump->out, size, 4);
	put(dump->out, TYPE_BYTE, 1);
	while (size) {
		size_t piece = size < sizeof(zeros) ? size : sizeof(zeros);

		writer_bytes(dump->out, zeros, piece);
		size -= piece;
	}
}

/* A root: a class with what it holds. */
static size_t write_root(struct dump *dump, uint32_t number, size_t first)
{
	uint64_t id = object_id(dump, number);
	size_t held = write_held(dump, number, id, first);
	struct writer *writer = begin_class(dump, id, own_id(OWN_OBJECT), 0);

	put(writer, 1, 2);
	put_field(writer, OWN_FIELD_HOLDS, TYPE_OBJECT);
	put_id(writer, held ? id + ID_HOLDS : 0);
	put(writer, 0, 2);
	put(writer, DUMP_STICKY_CLASS, 1);
	put_id(writer, id);
	return held;
}

/* How many zeros make the instance as large as the allocation. */
static uint64_t zeros_of(const struct dump *dump, const struct object *object, size_t held)
{
	uint64_t size = object->bytes, head = INSTANCE_SIZE + ARRAY_SIZE;

	if (held)
		head += ARRAY_SIZE + held * ID_SIZE;
	if (dump->shift)
		return size >> dump->shift;
	return size > head ? size - head : 0;
}

static size_t write_instance(struct dump *dump, uint32_t number, size_t first)
{
	const struct object *object = &dump->sample.objects.items[number];
	uint64_t id = object_id(dump, number);
	size_t held = write_held(dump, number, id, first);
	uint64_t zeros = zeros_of(dump, object, held);
	struct writer *writer;

	if (zeros)
		write_contents(dump, id + ID_CONTENTS, zeros);
	writer = segment(dump);
	put(writer, DUMP_INSTANCE, 1);
	put_id(writer, id);
	put(writer, TRACE, 4);
	put_id(writer, name_id(object->name));
	put(writer, 5 * 8, 4);
	put(writer, object->bytes, 8);
	put(writer, object->retained, 8);
	put(writer, object->count, 8);
	put_id(writer, held ? id + ID_HOLDS : 0);
	put_id(writer, zeros ? id + ID_CONTENTS : 0);
	return held;
}

/* Names of kinds and roots that are there. A kind may be one of a root's name, but never a root. */
static struct error *write_names(struct dump *dump)
{
	const struct owner_names *names = &dump->export->owners->names;

	TRY(array_resize(&dump->is_class, names->list.count));
	array_for_each(object, &dump->sample.objects)
		dump->is_class.items[object->name] = true;
	for (uint64_t own = OWN_OBJECT; own < OWNS; own++)
		write_string(dump, own_id(own), own_texts[own], false);
	for (size_t i = 0; i < names->list.count; i++)
		if (dump->is_class.items[i])
			write_string(dump, name_id(i), names->list.items[i].text, true);
	for (uint64_t own = OWN_OBJECT; own <= OWN_LAST_CLASS; own++)
		write_loaded(dump, own_id(own));
	for (size_t i = 0; i < names->list.count; i++)
		if (dump->is_class.items[i])
			write_loaded(dump, name_id(i));
	begin_record(dump, TAG_TRACE, 12);
	put(dump->out, TRACE, 4);
	put(dump->out, 0, 8);
	return NULL;
}

static void write_kinds(struct dump *dump)
{
	/* Classes of roots are written elsewhere, along with the roots' references. */
	array_for_each(object, &dump->sample.objects)
		if (object->kind < OBJECT_ALLOCATION)
			dump->is_class.items[object->name] = false;
	for (size_t i = 0; i < dump->is_class.count; i++)
		if (dump->is_class.items[i])
			put(begin_class(dump, name_id(i), own_id(OWN_ALLOCATION), 5 * 8), 0, 4);
}

static struct error *write_objects(struct dump *dump)
{
	struct progress *progress = analysis_progress(dump->export->analysis);
	size_t edge = 0;

	for (uint32_t i = 0; i < dump->sample.objects.count; i++) {
		TRY(progress_glance(progress));
		edge += dump->sample.objects.items[i].kind < OBJECT_ALLOCATION
				? write_root(dump, i, edge)
				: write_instance(dump, i, edge);
	}
	return NULL;
}

static struct error *hprof_write(const struct export *export, struct writer *writer)
{
	const struct image *image = analysis_image(export->analysis);
	_cleanup_(dump_deinit) struct dump dump = { .export = export, .out = writer };
	static const char magic[] = "JAVA PROFILE 1.0.2";

	dump.is_class.memory.account = analysis_account(export->analysis);
	TRY(sample_make(export, export->limit, false, &dump.sample));
	while (dump.sample.objects.items[0].retained >> dump.shift > MOST_ZEROS)
		dump.shift++;
	writer_bytes(writer, magic, sizeof(magic));
	put(writer, ID_SIZE, 4);
	put(writer, image->origin.time / 1000000, 8);
	TRY(write_names(&dump));
	write_own_classes(&dump);
	write_kinds(&dump);
	TRY(write_objects(&dump));
	end_segment(&dump);
	begin_record(&dump, TAG_END, 0);
	return NULL;
}

const struct export_format export_format_hprof = {
	.name = "hprof",
	.summary = "allocations one by one, for Eclipse MAT, VisualVM and Perfetto",
	.is_binary = true,
	.limit = 100000,
	.write = hprof_write,
};
