#include "analyzer/slim/slim.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/list.h"
#include "analyzer/base/parallel.h"
#include "analyzer/base/sort.h"
#include "analyzer/base/temporary.h"
#include "analyzer/image/elf_headers.h"
#include "analyzer/slim/parts.h"

#include <elf.h>
#include <string.h>

enum { WORD = sizeof(uint64_t) };
enum { PIECE_BYTES = SLIM_MOST_REDACTED };

/* More than a process has. */
static const uint64_t MOST_BYTES = UINT64_C(1) << 57;

/* So many bytes of placeholders in a row, and whole pages of them, are left out. */
enum { LEAST_LEFT_OUT = 1 << 16 };

/* Memory of one region, to be redacted at once; or room between such. */
struct piece {
	uint64_t address, size; /* of the dump's memory */
	uint64_t from, to;	/* offsets in the dump, and in the new file */
	bool is_room;
};

/* A segment of the dump: its first present bytes are in the dump, and at to in the new file. */
struct segment {
	Elf64_Phdr header;
	uint64_t present, to;
};

/* Memory of which there are only placeholders. */
struct gap {
	uint64_t start, end;
};

/* A thread has one. */
struct worker {
	uint8_t *bytes; /* PIECE_BYTES */
	struct slim_output output;
	ARRAY(struct gap) gaps;
	struct slim_tally tallies[SLIM_ORIGINS];
};

struct slim_writer {
	struct slim_options options;
	struct slim_rules rules;
	const struct image *image;
	ARRAY(struct segment) segments;
	ARRAY(struct piece) pieces; /* all of the file between its header and the end of memory */
	ARRAY(struct gap) gaps;	    /* by address */
	ARRAY(Elf64_Phdr) headers;  /* of the new file; with offset 0: its bytes are missing */
	struct slim_notes notes;
	struct worker *workers;
	unsigned int threads;
	struct relay relay;
	uint64_t page;	 /* bytes of one of the process */
	uint64_t file;	 /* its size, as far as it is planned */
	uint64_t packed; /* bytes written */
	uint64_t taken;	 /* bytes of the dump that segments had: no two share any */
};

static void writer_deinit(struct slim_writer *writer)
{
	for (unsigned int i = 0; writer->workers && i < writer->threads; i++) {
		slim_output_deinit(&writer->workers[i].output);
		arrays_release(&writer->workers[i].gaps);
		free(writer->workers[i].bytes);
	}
	free(writer->workers);
	slim_rules_deinit(&writer->rules);
	slim_notes_deinit(&writer->notes);
	relay_deinit(&writer->relay);
	arrays_release(&writer->segments, &writer->pieces, &writer->gaps, &writer->headers);
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
	piece.to = writer->file;
	writer->file += piece.size;
	return array_append(&writer->pieces, piece);
}

/* Zeros up to that place of the file. */
static struct error *add_room(struct slim_writer *writer, uint64_t end)
{
	while (writer->file < end)
		TRY(add_piece(writer, (struct piece){ .size = MIN(end - writer->file, PIECE_BYTES),
						      .is_room = true }));
	return NULL;
}

/* Cut the segment's memory into pieces that end where regions do. */
static struct error *add_pieces(struct slim_writer *writer, const struct segment *segment)
{
	uint64_t done = 0;

	while (done < segment->present) {
		uint64_t address = segment->header.p_vaddr + done, left = segment->present - done;
		const struct region *region = image_find(writer->image, address);
		struct piece piece = { .address = address,
				       .from = segment->header.p_offset + done,
				       .size = MIN(left, PIECE_BYTES) };

		/* A dump that somebody wrote may have what belongs to no region: it is left out. */
		piece.is_room = !region || !region->bytes;
		piece.size = MIN(piece.size, piece.is_room ? page_below(address) + PAGE - address
							   : region->end - address);
		TRY(add_piece(writer, piece));
		done += piece.size;
	}
	return NULL;
}

static struct error *take_segment(struct slim_writer *writer, const Elf64_Phdr *segment)
{
	const struct image *image = writer->image;
	uint64_t size = present(image, segment->p_offset, segment->p_filesz);
	struct slim_tally *notes = &writer->workers[0].tallies[SLIM_NOTES];

	/* Say that memory has tags, and leave these out. */
	if (segment->p_type == MEMORY_TAGS && image->arch->tag_bits)
		return array_append(&writer->segments,
				    (struct segment){ { .p_type = MEMORY_TAGS,
							.p_vaddr = segment->p_vaddr,
							.p_memsz = segment->p_memsz } });
	if (segment->p_type != PT_NOTE && !elf_segment_is_memory(segment))
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
	return array_append(&writer->segments,
			    (struct segment){ *segment, .present = MIN(size, segment->p_memsz) });
}

/* How many segments the dump has; more than fit the ELF header's field are counted elsewhere. */
static uint64_t count_segments(const struct image *image, const Elf64_Ehdr *header)
{
	size_t size = elf_section_size(header);
	bool narrow = size == sizeof(Elf32_Shdr);
	Elf64_Shdr section;
	Elf32_Shdr narrow_section;

	if (header->e_phnum != PN_XNUM || present(image, header->e_shoff, size) < size)
		return header->e_phnum;
	memcpy(narrow ? (void *)&narrow_section : &section, image->bytes + header->e_shoff, size);
	return narrow ? narrow_section.sh_info : section.sh_info;
}

static struct error *take_segments(struct slim_writer *writer, const Elf64_Ehdr *header)
{
	const struct image *image = writer->image;
	uint64_t count = count_segments(image, header), size = elf_segment_size(header);

	if (present(image, header->e_phoff, count * size) < count * size)
		return error_create(ERROR_BAD_DUMP, "is cut off within its program headers");
	for (uint64_t i = 0, next = 0; i < count; i = next) {
		const uint8_t *place = image->bytes + header->e_phoff;
		Elf64_Phdr segment, more;

		memcpy(&segment, place + i * size, size);
		elf_segments_widen(header, &segment, 1);
		/* A mapping of a slim core may be cut. */
		for (next = i + 1; next < count; next++) {
			memcpy(&more, place + next * size, size);
			elf_segments_widen(header, &more, 1);
			if (!elf_segment_join(&segment, &more))
				break;
		}
		TRY(take_segment(writer, &segment));
	}
	return slim_notes_end(&writer->notes, &writer->rules);
}

/* Say where everything goes: each segment keeps its size, as far as the dump has it. */
static struct error *plan(struct slim_writer *writer)
{
	writer->file = sizeof(Elf64_Ehdr);
	list_for_each(segment, writer->segments.items, writer->segments.count) {
		segment->header.p_filesz = MIN(segment->header.p_filesz, segment->header.p_memsz);
		TRY(add_room(writer, page_above(writer->file)));
		segment->to = writer->file;
		TRY(add_pieces(writer, segment));
	}
	return add_room(writer, (writer->file + WORD - 1) / WORD * WORD);
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

/* True if it consists of one placeholder. */
static bool is_placeholders(const struct slim_rules *rules, const uint8_t *page, uint64_t size)
{
	return (*page == rules->letter || *page == (uint8_t)rules->half) &&
	       memcmp(page, page + 1, size - 1) == 0;
}

/*
 * Find what is left out of the redacted piece. Pages are those of the process.
 */
static struct error *find_gaps(const struct slim_writer *writer, const struct piece *piece,
			       struct worker *worker)
{
	const uint64_t size = writer->page;
	uint64_t at = -piece->address & (size - 1), start = at;

	for (; at <= piece->size; at += size) {
		if (piece->size - at >= size &&
		    is_placeholders(&writer->rules, worker->bytes + at, size))
			continue;
		if (at - start >= LEAST_LEFT_OUT)
			TRY(array_append(&worker->gaps, (struct gap){ piece->address + start,
								      piece->address + at }));
		start = at + size;
	}
	return NULL;
}

/* Write the frame behind those before it. */
static struct error *write_packed(struct slim_writer *writer, const struct worker *worker)
{
	uint64_t place = writer->packed;

	writer->packed += worker->output.size;
	return write_bytes(writer, worker->output.frame, worker->output.size, place);
}

static struct error *write_in_order(struct slim_writer *writer, const struct piece *piece,
				    struct worker *worker, size_t chunk)
{
	struct error *error = slim_output_pack(&worker->output, worker->bytes, piece->size);

	if (!error && !relay_take(&writer->relay, chunk))
		return NULL;
	if (!error)
		error = write_packed(writer, worker);
	if (error)
		relay_end(&writer->relay);
	else
		relay_pass(&writer->relay);
	return error;
}

static struct error *redact_piece(struct slim_writer *writer, const struct piece *piece,
				  struct worker *worker)
{
	if (piece->is_room) {
		memset(worker->bytes, 0, piece->size);
		return NULL;
	}
	slim_redact(&writer->rules, piece->address, writer->image->bytes + piece->from, piece->size,
		    worker->bytes, worker->tallies);
	return find_gaps(writer, piece, worker);
}

static struct error *take_piece(void *data, size_t chunk, unsigned int thread)
{
	struct slim_writer *writer = data;
	const struct piece *piece = &writer->pieces.items[chunk];
	struct worker *worker = &writer->workers[thread];
	struct error *error = progress_check(writer->options.progress, piece->size);

	if (!error)
		error = redact_piece(writer, piece, worker);
	if (error)
		relay_end(&writer->relay);
	if (error || writer->options.fd < 0)
		return error;
	if (writer->options.packed)
		return write_in_order(writer, piece, worker, chunk);
	return piece->is_room ? NULL : write_pages(writer, piece, worker->bytes);
}

DEFINE_COMPARE(compare_gaps, struct gap, ASCENDING(start))

/* Bring the gaps of all threads together, by address. */
static struct error *join_gaps(struct slim_writer *writer)
{
	for (unsigned int i = 0; i < writer->threads; i++)
		list_for_each(gap, writer->workers[i].gaps.items, writer->workers[i].gaps.count)
			TRY(array_append(&writer->gaps, *gap));
	SORT(writer->gaps.items, writer->gaps.count, compare_gaps);
	return NULL;
}

/* Add a header for [start, end) of the segment. */
static struct error *add_header(struct slim_writer *writer, const struct segment *segment,
				uint64_t start, uint64_t end, uint32_t type)
{
	Elf64_Phdr header = segment->header;

	header.p_offset = segment->to + (start - header.p_vaddr);
	header.p_flags |= start > header.p_vaddr ? SEGMENT_CONTINUES : 0;
	header.p_type = type;
	header.p_filesz = end - start;
	header.p_memsz = end - start;
	header.p_vaddr = start;
	return array_append(&writer->headers, header);
}

/* Add headers for what is in the file and what is left out. Returns where that ends. */
static struct error *add_cut_headers(struct slim_writer *writer, const struct segment *segment,
				     uint64_t *ret_end)
{
	uint64_t address = segment->header.p_vaddr, end = address + segment->present;
	size_t i = LIST_ABOVE(writer->gaps.items, writer->gaps.count, end, address);

	for (; i < writer->gaps.count && writer->gaps.items[i].start < end; i++) {
		struct gap gap = writer->gaps.items[i];

		if (gap.start < address)
			continue;
		if (gap.start > address)
			TRY(add_header(writer, segment, address, gap.start, PT_LOAD));
		TRY(add_header(writer, segment, gap.start, gap.end, SEGMENT_PLACEHOLDERS));
		address = gap.end;
	}
	*ret_end = address;
	return NULL;
}

/* The last header has what is behind that: some present bytes, missing ones, and none at all. */
static struct error *add_headers(struct slim_writer *writer, const struct segment *segment)
{
	uint64_t start = segment->header.p_vaddr, end = start + segment->header.p_memsz, address;
	uint64_t present = start + segment->present, held = start + segment->header.p_filesz;
	Elf64_Phdr *last;

	TRY(add_cut_headers(writer, segment, &address));
	if (present < held && address < present) {
		TRY(add_header(writer, segment, address, present, PT_LOAD));
		address = present;
	}
	if (address == end)
		return NULL;
	TRY(add_header(writer, segment, address, end, segment->header.p_type));
	last = &writer->headers.items[writer->headers.count - 1];
	last->p_filesz = held - address;
	if (present < held)
		last->p_offset = 0;
	return NULL;
}

/* Give missing bytes places behind the file's end. */
static void place_missing(struct slim_writer *writer, uint64_t end)
{
	list_for_each(header, writer->headers.items, writer->headers.count) {
		if (header->p_offset > 0 || header->p_filesz == 0)
			continue;
		header->p_offset = page_above(end);
		end = header->p_offset + header->p_filesz;
	}
}

/* Write the end of the file: notes, and headers of segments. */
static struct error *write_end(struct slim_writer *writer, const void *bytes, uint64_t size)
{
	struct worker *worker = &writer->workers[0];
	uint64_t place = writer->file;

	writer->file += size;
	if (!writer->options.packed)
		return write_bytes(writer, bytes, size, place);
	for (uint64_t done = 0; done < size; done += PIECE_BYTES) {
		uint64_t part = MIN(size - done, PIECE_BYTES);

		TRY(slim_output_pack(&worker->output, (const uint8_t *)bytes + done, part));
		TRY(write_packed(writer, worker));
	}
	return NULL;
}

static struct error *write_first(struct slim_writer *writer, const Elf64_Ehdr *header)
{
	uint8_t frame[SLIM_FRAME_HEAD + sizeof(*header)];
	size_t size = slim_output_pack_header(header, frame);

	return writer->options.packed ? write_bytes(writer, frame, size, 0)
				      : write_bytes(writer, header, sizeof(*header), 0);
}

/* The headers are last: so the first one says how large the file is. */
static struct error *write_headers(struct slim_writer *writer, Elf64_Ehdr *header)
{
	uint64_t count = writer->headers.count + 1, each = elf_segment_size(header);
	uint64_t section_size = elf_section_size(header), size = count * each;
	/* Its sh_info has the count of segments where e_phnum cannot. */
	const Elf64_Shdr section = { .sh_size = 1, .sh_info = (Elf64_Word)count };
	const Elf32_Shdr narrow_section = { .sh_size = 1, .sh_info = (Elf32_Word)count };
	bool many = count >= PN_XNUM;
	Elf64_Phdr notes = {
		.p_type = PT_NOTE,
		.p_offset = writer->file,
		.p_filesz = writer->notes.size,
		.p_align = 4,
	};

	TRY(write_end(writer, writer->notes.bytes, writer->notes.size));
	header->e_phoff = writer->file;
	header->e_phnum = (Elf64_Half)(many ? PN_XNUM : count);
	header->e_shoff = many ? writer->file + size : 0;
	header->e_shentsize = many ? (Elf64_Half)section_size : 0;
	header->e_shnum = many ? 1 : 0;
	header->e_shstrndx = 0;
	place_missing(writer, writer->file + size + sizeof(section));
	elf_segments_narrow(header, &notes, 1);
	elf_segments_narrow(header, writer->headers.items, writer->headers.count);
	TRY(write_end(writer, &notes, each));
	TRY(write_end(writer, writer->headers.items, size - each));
	TRY(write_end(writer,
		      section_size == sizeof(section) ? (const void *)&section : &narrow_section,
		      many ? section_size : 0));
	elf_header_narrow(header);
	return write_first(writer, header);
}

static struct error *prepare(struct slim_writer *writer, struct memory_account *account)
{
	arrays_use(account, &writer->segments, &writer->pieces, &writer->gaps, &writer->headers);
	writer->threads = parallel_threads_for(writer->options.progress);
	writer->workers = calloc(writer->threads, sizeof(*writer->workers));
	TRY_MEMORY(writer->workers);
	for (unsigned int i = 0; i < writer->threads; i++) {
		struct worker *worker = &writer->workers[i];

		arrays_use(account, &worker->gaps);
		worker->bytes = malloc(PIECE_BYTES);
		TRY_MEMORY(worker->bytes);
		if (writer->options.packed)
			TRY(slim_output_init(&worker->output, PIECE_BYTES));
	}
	writer->packed = SLIM_FRAME_HEAD + sizeof(Elf64_Ehdr);
	return NULL;
}

static void add_up(const struct slim_writer *writer, struct slim_sizes *ret)
{
	*ret = (struct slim_sizes){ .file = writer->file,
				    .packed = writer->options.packed ? writer->packed : 0,
				    .core = writer->image->size };
	list_for_each(gap, writer->gaps.items, writer->gaps.count)
		ret->left_out += gap->end - gap->start;
	for (unsigned int i = 0; i < writer->threads; i++)
		for (unsigned int j = 0; j < SLIM_ORIGINS; j++) {
			const struct slim_tally *more = &writer->workers[i].tallies[j];

			ret->tallies[j].zeros += more->zeros;
			ret->tallies[j].addresses += more->addresses;
			ret->tallies[j].structure += more->structure;
			ret->tallies[j].contents += more->contents;
			ret->tallies[j].placeholders += more->placeholders;
		}
}

struct error *slim_write(struct analysis *analysis, const struct slim_options *options,
			 struct slim_sizes *ret)
{
	_cleanup_(writer_deinit) struct slim_writer writer = { .options = *options };
	Elf64_Ehdr header;

	relay_init(&writer.relay);
	TRY(prepare(&writer, analysis_account(analysis)));
	TRY(slim_rules_init(&writer.rules, analysis, options));
	writer.image = writer.rules.image;
	writer.page = image_page_size(writer.image);
	if (writer.image->size < sizeof(header))
		return error_create(ERROR_BAD_DUMP, "is cut off within its ELF header");
	memcpy(&header, writer.image->bytes, sizeof(header));
	elf_header_widen(&header);
	TRY(take_segments(&writer, &header));
	TRY(plan(&writer));
	progress_begin(options->progress, "leaving out contents", writer.file);
	TRY(parallel_for(writer.pieces.count, writer.threads, take_piece, &writer));
	TRY(join_gaps(&writer));
	list_for_each(segment, writer.segments.items, writer.segments.count)
		TRY(add_headers(&writer, segment));
	TRY(write_headers(&writer, &header));
	add_up(&writer, ret);
	return NULL;
}
