/*
 * A profile for pprof: protocol buffers, gzipped. See profile.proto in github.com/google/pprof.
 *
 * A sample's call stack is a path of owners, the allocations' own kind being its leaf. Its values
 * are allocations, bytes, bytes retained and bytes leaked. Allocations of a path are a sample for
 * each arena and size, which are its labels; what non-members add to what is retained has none.
 */
#include "analyzer/export/export.h"
#include "analyzer/export/protobuf.h"
#include "analyzer/image/files.h"
#include "analyzer/owners/frames.h"

#include <inttypes.h>
#include <xxhash.h>
#include <zlib.h>

/* Numbers of fields. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRING,
	PROFILE_TIME = 9,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_TYPE,
	TYPE_TYPE = 1,
	TYPE_UNIT,
	SAMPLE_LOCATION = 1,
	SAMPLE_VALUE,
	SAMPLE_LABEL,
	LABEL_KEY = 1,
	LABEL_TEXT,
	LABEL_NUMBER,
	LABEL_UNIT,
	MAPPING_ID = 1,
	MAPPING_START,
	MAPPING_LIMIT,
	MAPPING_FILE = 5,
	MAPPING_BUILD_ID,
	MAPPING_HAS_FUNCTIONS,
	LOCATION_ID = 1,
	LOCATION_MAPPING,
	LOCATION_ADDRESS,
	LOCATION_LINE,
	LINE_FUNCTION = 1,
	FUNCTION_ID = 1,
	FUNCTION_NAME,
	FUNCTION_SYSTEM_NAME,
};

enum { MOST_CELLS = 1 << 18, MOST_MAPPINGS = 1 << 12, LARGEST_EXACT_SIZE = 1024 };

/* The text of a hash, and its number in the table of strings. */
struct string {
	uint64_t hash;
	uint64_t number;
};

/* Members with the same path, arena and size. */
struct cell {
	uint32_t frame;
	arena_number arena;
	uint64_t size;
	uint64_t count, bytes, leaked;
};

struct profile {
	const struct export *export;
	struct frames frames;
	HASH_TABLE(struct string) strings;
	HASH_TABLE(struct cell) cells;
	struct writer out; /* in memory */
	struct error *error;
};

static void profile_deinit(struct profile *profile)
{
	frames_deinit(&profile->frames);
	tables_release(&profile->strings, &profile->cells);
	writer_deinit(&profile->out);
	if (profile->error)
		error_destroy(profile->error);
}
DEFINE_DEINIT(profile_deinit, struct profile)

/* The number of the text, which is written when it is first asked for. */
static uint64_t string_number(struct profile *profile, const char *text)
{
	uint64_t hash = XXH3_64bits(text, strlen(text));
	const struct string *known = table_find(&profile->strings, hash, item, item->hash == hash);

	if (known)
		return known->number;
	protobuf_bytes(&profile->out, PROFILE_STRING, text, strlen(text));
	if (!profile->error)
		profile->error = table_append(&profile->strings, hash,
					      (struct string){ hash, profile->strings.count });
	return profile->strings.count - 1;
}

static void write_sample_type(struct profile *profile, const char *type, const char *unit)
{
	struct writer message = { 0 };

	protobuf_number(&message, TYPE_TYPE, string_number(profile, type));
	protobuf_number(&message, TYPE_UNIT, string_number(profile, unit));
	protobuf_message(&profile->out, PROFILE_SAMPLE_TYPE, &message);
}

static void write_mapping(struct profile *profile, size_t number)
{
	const struct analysis *analysis = profile->export->analysis;
	const struct module *module = &analysis_program(analysis)->modules[number];
	struct build_id id =
		build_id_of_image(analysis_image(analysis), module->start, module->end);
	char digits[2 * sizeof(id.bytes) + 1] = "";
	_cleanup_(free) char *path = escape_text(module->path);
	struct writer message = { 0 };

	for (size_t i = 0; i < id.size && i < sizeof(id.bytes); i++)
		snprintf(digits + 2 * i, 3, "%02x", id.bytes[i]);
	protobuf_number(&message, MAPPING_ID, number + 1);
	protobuf_number(&message, MAPPING_START, module->start);
	protobuf_number(&message, MAPPING_LIMIT, module->end);
	protobuf_number(&message, MAPPING_FILE, string_number(profile, path ? path : ""));
	protobuf_number(&message, MAPPING_BUILD_ID, string_number(profile, digits));
	protobuf_number(&message, MAPPING_HAS_FUNCTIONS, true);
	protobuf_message(&profile->out, PROFILE_MAPPING, &message);
}

static size_t mapping_count(const struct profile *profile)
{
	size_t count = analysis_program(profile->export->analysis)->module_count;

	return count < MOST_MAPPINGS ? count : MOST_MAPPINGS;
}

/* A frame is a location, a name a function; numbers are 1 more than those of heapcore. */
static void write_location(struct profile *profile, size_t number)
{
	const struct owners *owners = profile->export->owners;
	const struct owner_frame *frame = &profile->frames.list.items[number];
	const struct owner_name *name =
		&owners->names.list.items[owners->nodes.items[frame->node].name];
	uint64_t address = frame->others ? 0 : name->address;
	const struct program *program = analysis_program(profile->export->analysis);
	const struct module *module = address ? program_find_module(program, address) : NULL;
	size_t mapping = module ? (size_t)(module - program->modules) : MOST_MAPPINGS;
	struct writer message = { 0 }, line = { 0 };

	protobuf_number(&message, LOCATION_ID, number + 1);
	if (mapping < mapping_count(profile)) {
		protobuf_number(&message, LOCATION_MAPPING, mapping + 1);
		protobuf_number(&message, LOCATION_ADDRESS, address);
	}
	protobuf_number(&line, LINE_FUNCTION, number + 1);
	protobuf_message(&message, LOCATION_LINE, &line);
	protobuf_message(&profile->out, PROFILE_LOCATION, &message);
}

static void write_function(struct profile *profile, size_t number)
{
	char buffer[FRAME_TEXT_SIZE];
	uint64_t text = string_number(profile, frame_text(&profile->frames, number, buffer));
	struct writer message = { 0 };

	protobuf_number(&message, FUNCTION_ID, number + 1);
	protobuf_number(&message, FUNCTION_NAME, text);
	protobuf_number(&message, FUNCTION_SYSTEM_NAME, text);
	protobuf_message(&profile->out, PROFILE_FUNCTION, &message);
}

/* The leaf comes first, the process itself is left out. */
static void write_path(struct profile *profile, uint32_t frame, struct writer *sample)
{
	struct writer packed = { 0 };

	for (; frame; frame = profile->frames.list.items[frame].parent)
		protobuf_varint(&packed, (uint64_t)frame + 1);
	protobuf_message(sample, SAMPLE_LOCATION, &packed);
}

static void write_values(struct writer *sample, const uint64_t values[4])
{
	struct writer packed = { 0 };

	for (size_t i = 0; i < 4; i++)
		protobuf_varint(&packed, values[i]);
	protobuf_message(sample, SAMPLE_VALUE, &packed);
}

static void write_label(struct profile *profile, struct writer *sample, const char *key,
			const char *text)
{
	struct writer label = { 0 };

	protobuf_number(&label, LABEL_KEY, string_number(profile, key));
	protobuf_number(&label, LABEL_TEXT, string_number(profile, text));
	protobuf_message(sample, SAMPLE_LABEL, &label);
}

static void write_size(struct profile *profile, struct writer *sample, uint64_t size)
{
	struct writer label = { 0 };

	protobuf_number(&label, LABEL_KEY, string_number(profile, "bytes"));
	protobuf_number(&label, LABEL_NUMBER, size);
	protobuf_number(&label, LABEL_UNIT, string_number(profile, "bytes"));
	protobuf_message(sample, SAMPLE_LABEL, &label);
}

/* The certainty of the allocations' kind. */
static const char *sureness(const struct profile *profile, uint32_t number)
{
	const struct owners *owners = profile->export->owners;
	const struct owner_frame *frame = &profile->frames.list.items[number];
	const struct owner_name *name =
		&owners->names.list.items[owners->nodes.items[frame->node].name];

	switch (frame->others ? BY_NOTHING : name->by) {
	case BY_SIGNATURE:
		return "signature";
	case BY_PATTERN:
		return "pattern";
	case BY_TYPE:
		return strncmp(name->text, "probably ", 9) == 0 ? "likely type" : "type";
	case BY_IDENTITY:
		return "identity";
	case BY_SIZE:
		return "size alone";
	default:
		return "several";
	}
}

static void write_cell(struct profile *profile, const struct cell *cell)
{
	const struct heaps *heaps = analysis_heaps(profile->export->analysis);
	const uint64_t values[] = { cell->count, cell->bytes, cell->bytes, cell->leaked };
	struct writer sample = { 0 };
	char arena[160];

	snprintf(arena, sizeof(arena), "%s %" PRIu32 " (%s)",
		 heaps_arena(heaps, cell->arena).kind->name, (uint32_t)cell->arena,
		 heaps_arena_allocator(heaps, cell->arena)->name);
	write_path(profile, cell->frame, &sample);
	write_values(&sample, values);
	write_label(profile, &sample, "arena", arena);
	if (!profile->export->has_stacks)
		write_label(profile, &sample, "sureness", sureness(profile, cell->frame));
	if (cell->size)
		write_size(profile, &sample, cell->size);
	protobuf_message(&profile->out, PROFILE_SAMPLE, &sample);
}

/* Write the bytes that a frame retains beyond its members. */
static void write_retained(struct profile *profile, uint32_t number)
{
	const struct owner_amount *own = profile->frames.list.items[number].own;
	const uint64_t values[] = { 0, 0, own[MEASURE_RETAINED].bytes - own[MEASURE_OWN].bytes, 0 };
	struct writer sample = { 0 };

	if (!values[2])
		return;
	write_path(profile, number, &sample);
	write_values(&sample, values);
	protobuf_message(&profile->out, PROFILE_SAMPLE, &sample);
}

static uint64_t rounded(uint64_t size)
{
	return size <= LARGEST_EXACT_SIZE
		       ? size
		       : UINT64_C(1) << (63 - (unsigned int)__builtin_clzll(size));
}

/* The cell of that path, arena and size, which is added if there is none; NULL: memory is short. */
static struct cell *find_cell(struct profile *profile, uint32_t frame, arena_number arena,
			      uint64_t size)
{
	uint64_t part[] = { frame, arena, size };

	return table_obtain(&profile->cells, XXH3_64bits(part, sizeof(part)), item,
			    item->frame == frame && item->arena == arena && item->size == size,
			    (struct cell){ .frame = frame, .arena = arena, .size = size });
}

static struct error *count_member(struct profile *profile, allocation_id id, uint64_t size,
				  arena_number arena)
{
	uint32_t frame = profile->frames.of_node.items[profile->export->owners->of.items[id]];
	/* If there are too many cells, merge the sizes of a path. */
	bool is_full = profile->cells.count >= MOST_CELLS;
	struct cell *cell = find_cell(profile, frame, arena, is_full ? 0 : rounded(size));

	TRY_MEMORY(cell);
	cell->count++;
	cell->bytes += size;
	if (bitmap_get(analysis_leaked(profile->export->analysis), id))
		cell->leaked += size;
	return NULL;
}

static struct error *count_members(struct profile *profile)
{
	const struct allocation_index *index = analysis_index(profile->export->analysis);
	const struct bitmap *members = profile->export->members;
	size_t hint = 0;

	for (size_t i = 0; i < heap_region_count(index); i++) {
		const struct heap_region *region = heap_region(index, i);
		size_t end = region->first + (size_t)region->count;

		for (size_t id = bitmap_next(members, region->first); id < end;
		     id = bitmap_next(members, id + 1)) {
			struct memory_range range =
				allocation_range_near(index, (allocation_id)id, &hint);

			TRY(count_member(profile, (allocation_id)id, range.end - range.start,
					 region->arena));
		}
	}
	return NULL;
}

static void write_profile(struct profile *profile)
{
	const struct image *image = analysis_image(profile->export->analysis);
	_cleanup_(free) char *title = escape_text(profile->export->title);

	string_number(profile, "");
	write_sample_type(profile, "inuse_objects", "count");
	write_sample_type(profile, "inuse_space", "bytes");
	write_sample_type(profile, "retained", "bytes");
	write_sample_type(profile, "leaked", "bytes");
	for (size_t i = 0; i < mapping_count(profile); i++)
		write_mapping(profile, i);
	for (size_t i = 1; i < profile->frames.list.count; i++) {
		write_location(profile, i);
		write_function(profile, i);
		write_retained(profile, (uint32_t)i);
	}
	array_for_each(cell, &profile->cells)
		write_cell(profile, cell);
	protobuf_number(&profile->out, PROFILE_TIME, image->origin.time);
	protobuf_number(&profile->out, PROFILE_COMMENT, string_number(profile, title ? title : ""));
	protobuf_number(&profile->out, PROFILE_DEFAULT_TYPE, string_number(profile, "inuse_space"));
}

/* One gzip member. */
static struct error *compress_to(struct writer *writer, const struct writer *from)
{
	enum { GZIP = 15 + 16, MEMORY = 8 };
	z_stream stream = { .next_in = (Bytef *)from->buffer, .avail_in = (uInt)from->used };
	char buffer[WRITER_CAPACITY / 4];
	int status;

	if (from->used > UINT32_MAX)
		return error_create(ERROR_USAGE,
				    "the profile is too large; --limit makes it smaller");
	if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP, MEMORY,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return &error_no_memory;
	do {
		stream.next_out = (Bytef *)buffer;
		stream.avail_out = sizeof(buffer);
		status = deflate(&stream, Z_FINISH);
		writer_bytes(writer, buffer, sizeof(buffer) - stream.avail_out);
	} while (status == Z_OK);
	deflateEnd(&stream);
	return NULL;
}

static struct error *pprof_write(const struct export *export, struct writer *writer)
{
	struct memory_account *account = analysis_account(export->analysis);
	_cleanup_(profile_deinit) struct profile profile = {
		.export = export,
	};

	arrays_use(account, &profile.strings, &profile.cells);
	/* Cut by the largest value in any measure. */
	TRY(frames_make(export->owners, MEASURE_RETAINED, export->limit, account, &profile.frames));
	TRY(count_members(&profile));
	write_profile(&profile);
	if (profile.error)
		return take(profile.error);
	return profile.out.failed ? &error_no_memory : compress_to(writer, &profile.out);
}

const struct export_format export_format_pprof = {
	.name = "pprof",
	.summary =
		"a profile for pprof: objects, bytes, retained, leaked; labels of arena, size, sureness",
	.is_binary = true,
	.prefers_stacks = true,
	.limit = 20000,
	.write = pprof_write,
};
