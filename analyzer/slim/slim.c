#include "analyzer/slim/slim.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/list.h"
#include "analyzer/base/parallel.h"
#include "analyzer/base/temporary.h"
#include "analyzer/image/elf_headers.h"
#include "analyzer/slim/parts.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 19 }; /* fits into the second-level cache */

/* More than a process has. */
static const uint64_t MOST_BYTES = UINT64_C(1) << 57;

/* Memory of one region, to be redacted at once. */
struct piece {
	uint64_t address, size; /* of the dump's memory */
	uint64_t from, to;	/* offsets in the dump, and in the new file */
};

struct slim_writer {
	struct slim_options options;
	struct slim_rules rules;
	const struct image *image;
	Elf64_Phdr *segments; /* of memory */
	size_t segment_count;
	struct piece *pieces;
	size_t piece_count;
	struct slim_notes notes;
	uint8_t *buffers; /* PIECE_BYTES for each thread */
	unsigned int threads;
	struct slim_tally (*tallies)[SLIM_ORIGINS]; /* of each thread */
	uint64_t file;				    /* its size */
	uint64_t taken; /* bytes of the dump that segments had: no two share any */
};

static void writer_deinit(struct slim_writer *writer)
{
	slim_rules_deinit(&writer->rules);
	slim_notes_deinit(&writer->notes);
	free(writer->segments);
	free(writer->pieces);
	free(writer->buffers);
	free(writer->tallies);
}
DEFINE_DEINIT(writer_deinit, struct slim_writer)

static const char *const origin_names[SLIM_ORIGINS] = {
	[SLIM_USED] = "allocations in use",
	[SLIM_FREE] = "free allocations",
	[SLIM_ALLOCATOR] = "heads of allocations, arenas",
	[SLIM_STACK] = "stacks",
	[SLIM_DATA] = "variables of modules",
	[SLIM_BINARY] = "code and constants of modules",
	[SLIM_OTHER] = "other mappings",
	[SLIM_NOTES] = "registers and other notes",
};

const char *slim_origin_name(enum slim_origin origin)
{
	return origin_names[origin];
}

/* The part of [start, end) of the dump's file that it has: how many bytes. */
static uint64_t present(const struct image *image, uint64_t offset, uint64_t size)
{
	uint64_t rest = offset < image->size ? image->size - offset : 0;

	return MIN(rest, size);
}

static struct error *add_piece(struct slim_writer *writer, struct piece piece)
{
	return LIST_APPEND(writer->pieces, writer->piece_count, piece);
}

/* Cut the segment's memory into pieces that end where regions do. */
static struct error *add_pieces(struct slim_writer *writer, const Elf64_Phdr *segment,
				uint64_t size, uint64_t to)
{
	uint64_t done = 0;

	while (done < size) {
		uint64_t address = segment->p_vaddr + done, left = size - done;
		const struct region *region = image_find(writer->image, address);
		uint64_t part = MIN(left, PIECE_BYTES);

		/* A dump that somebody wrote may have what belongs to no region: it is left out. */
		if (!region || !region->bytes) {
			done += MIN(left, page_below(address) + PAGE - address);
			continue;
		}
		part = MIN(part, region->end - address);
		TRY(add_piece(writer, (struct piece){ address, part, segment->p_offset + done,
						      to + done }));
		done += part;
	}
	return NULL;
}

static struct error *take_segment(struct slim_writer *writer, const Elf64_Phdr *segment)
{
	const struct image *image = writer->image;
	uint64_t size = present(image, segment->p_offset, segment->p_filesz);
	struct slim_tally *notes = &writer->tallies[0][SLIM_NOTES];

	/* Say that memory has tags, and leave these out. */
	if (segment->p_type == MEMORY_TAGS && image->arch->tag_bits)
		return LIST_APPEND(writer->segments, writer->segment_count,
				   (Elf64_Phdr){ .p_type = MEMORY_TAGS,
						 .p_vaddr = segment->p_vaddr,
						 .p_memsz = segment->p_memsz });
	if (segment->p_type != PT_NOTE && segment->p_type != PT_LOAD)
		return NULL;
	/* None has the ELF header, so that there are bytes below each. */
	if (size > image->size - writer->taken || segment->p_filesz > MOST_BYTES ||
	    (size > 0 && segment->p_offset < sizeof(Elf64_Ehdr)))
		return error_create(
			ERROR_BAD_DUMP,
			"has segments that share bytes with others or the header, or are too large");
	writer->taken += size;
	if (segment->p_type == PT_NOTE)
		return slim_notes_add(&writer->notes, &writer->rules,
				      image->bytes + (size ? segment->p_offset : 0), size, notes);
	if (segment->p_memsz == 0)
		return NULL;
	return LIST_APPEND(writer->segments, writer->segment_count, *segment);
}

/* How many segments the dump has; more than fit the ELF header's field are counted elsewhere. */
static uint64_t count_segments(const struct image *image, const Elf64_Ehdr *header)
{
	Elf64_Shdr section;

	if (header->e_phnum != PN_XNUM ||
	    present(image, header->e_shoff, sizeof(section)) < sizeof(section))
		return header->e_phnum;
	memcpy(&section, image->bytes + header->e_shoff, sizeof(section));
	return section.sh_info;
}

static struct error *take_segments(struct slim_writer *writer, const Elf64_Ehdr *header)
{
	const struct image *image = writer->image;
	uint64_t count = count_segments(image, header), size = sizeof(Elf64_Phdr);

	if (present(image, header->e_phoff, count * size) < count * size)
		return error_create(ERROR_BAD_DUMP, "is cut off within its program headers");
	for (uint64_t i = 0; i < count; i++) {
		Elf64_Phdr segment;

		memcpy(&segment, image->bytes + header->e_phoff + i * size, size);
		TRY(take_segment(writer, &segment));
	}
	return slim_notes_end(&writer->notes, image);
}

static uint64_t headers_size(const struct slim_writer *writer)
{
	return sizeof(Elf64_Ehdr) + (writer->segment_count + 1) * sizeof(Elf64_Phdr) +
	       sizeof(Elf64_Shdr);
}

/* Say where everything goes: each segment keeps its size, as far as the dump has it. */
static struct error *plan(struct slim_writer *writer)
{
	uint64_t offset = page_above(headers_size(writer) + writer->notes.size);

	writer->file = offset;
	for (size_t i = 0; i < writer->segment_count; i++) {
		Elf64_Phdr *segment = &writer->segments[i];
		uint64_t size;

		segment->p_filesz = MIN(segment->p_filesz, segment->p_memsz);
		size = present(writer->image, segment->p_offset, segment->p_filesz);
		TRY(add_pieces(writer, segment, size, offset));
		segment->p_offset = offset;
		/* The part that was cut off the dump's end stays missing. */
		if (size > 0)
			writer->file = offset + size;
		offset = page_above(offset + segment->p_filesz);
	}
	return NULL;
}

static struct error *write_bytes(const struct slim_writer *writer, const void *bytes, uint64_t size,
				 uint64_t offset)
{
	if (writer->options.fd < 0 || write_fully(writer->options.fd, bytes, size, offset))
		return NULL;
	return error_system("the core cannot be written");
}

/* Write the pages, but for those that were holes: these say what was never touched. */
static struct error *write_pages(const struct slim_writer *writer, const struct piece *piece,
				 const uint8_t *bytes)
{
	uint64_t end = piece->address + piece->size, address = piece->address;

	while (address < end) {
		uint64_t data = MIN(image_next_data(writer->image, address), end), hole;

		if (data == end)
			break;
		hole = MIN(MAX(image_next_hole(writer->image, data), data + 1), end);
		TRY(write_bytes(writer, bytes + (data - piece->address), hole - data,
				piece->to + (data - piece->address)));
		address = hole;
	}
	return NULL;
}

static struct error *redact_piece(void *data, size_t chunk, unsigned int thread)
{
	struct slim_writer *writer = data;
	const struct piece *piece = &writer->pieces[chunk];
	uint8_t *place = writer->buffers + (size_t)thread * PIECE_BYTES;

	TRY(progress_check(writer->options.progress, piece->size));
	slim_redact(&writer->rules, piece->address, writer->image->bytes + piece->from, piece->size,
		    place, writer->tallies[thread]);
	return write_pages(writer, piece, place);
}

static struct error *write_headers(const struct slim_writer *writer, const Elf64_Ehdr *core)
{
	uint64_t count = writer->segment_count + 1, place = headers_size(writer);
	bool many = count >= PN_XNUM;
	Elf64_Ehdr header = *core;
	/* Its sh_info has the count of segments where e_phnum cannot. */
	Elf64_Shdr section = { .sh_size = 1, .sh_info = (Elf64_Word)count };
	Elf64_Phdr notes = {
		.p_type = PT_NOTE,
		.p_offset = place,
		.p_filesz = writer->notes.size,
		.p_align = 4,
	};

	header.e_phoff = sizeof(header);
	header.e_phnum = (Elf64_Half)(many ? PN_XNUM : count);
	header.e_shoff = many ? place - sizeof(section) : 0;
	header.e_shentsize = many ? sizeof(section) : 0;
	header.e_shnum = many ? 1 : 0;
	header.e_shstrndx = 0;
	TRY(write_bytes(writer, &header, sizeof(header), 0));
	TRY(write_bytes(writer, &notes, sizeof(notes), header.e_phoff));
	TRY(write_bytes(writer, writer->segments, writer->segment_count * sizeof(Elf64_Phdr),
			header.e_phoff + sizeof(notes)));
	if (many)
		TRY(write_bytes(writer, &section, sizeof(section), header.e_shoff));
	return write_bytes(writer, writer->notes.bytes, writer->notes.size, place);
}

static struct error *prepare(struct slim_writer *writer)
{
	writer->threads = parallel_threads_for(writer->options.progress);
	writer->buffers = malloc((size_t)writer->threads * PIECE_BYTES);
	writer->tallies = calloc(writer->threads, sizeof(*writer->tallies));
	TRY_MEMORY(writer->buffers && writer->tallies);
	return NULL;
}

static void add_up(const struct slim_writer *writer, struct slim_sizes *ret)
{
	*ret = (struct slim_sizes){ .file = writer->file, .core = writer->image->size };
	for (unsigned int i = 0; i < writer->threads; i++)
		for (unsigned int j = 0; j < SLIM_ORIGINS; j++) {
			const struct slim_tally *more = &writer->tallies[i][j];

			ret->tallies[j].zeros += more->zeros;
			ret->tallies[j].addresses += more->addresses;
			ret->tallies[j].structure += more->structure;
			ret->tallies[j].placeholders += more->placeholders;
		}
}

struct error *slim_write(struct analysis *analysis, const struct slim_options *options,
			 struct slim_sizes *ret)
{
	_cleanup_(writer_deinit) struct slim_writer writer = { .options = *options };
	Elf64_Ehdr header;

	TRY(prepare(&writer));
	TRY(slim_rules_init(&writer.rules, analysis));
	writer.image = writer.rules.image;
	if (writer.image->size < sizeof(header))
		return error_create(ERROR_BAD_DUMP, "is cut off within its ELF header");
	memcpy(&header, writer.image->bytes, sizeof(header));
	TRY(take_segments(&writer, &header));
	TRY(plan(&writer));
	progress_begin(options->progress, "leaving out contents", writer.file);
	TRY(parallel_for(writer.piece_count, writer.threads, redact_piece, &writer));
	TRY(write_headers(&writer, &header));
	if (options->fd >= 0 && ftruncate(options->fd, (off_t)writer.file) < 0)
		return error_system("the core cannot be written");
	add_up(&writer, ret);
	return NULL;
}
