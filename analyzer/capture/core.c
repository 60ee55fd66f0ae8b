#include "analyzer/capture/core.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/group.h"
#include "analyzer/base/list.h"
#include "analyzer/base/parallel.h"
#include "analyzer/base/temporary.h"
#include "analyzer/capture/notes.h"
#include "analyzer/capture/portable.h"
#include "analyzer/capture/source.h"
#include "analyzer/image/own_notes.h"

#include <elf.h>
#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>

enum {
	PIECE_BYTES = 1 << 19, /* fits into the second-level cache */
	SPARE_BYTES = 1 << 24, /* that the process may grow by meanwhile */
	CUT_BYTES = 1 << 30,   /* untouched ones that the file leaves out */
	/* Megabytes a second that are copied while the process stands still,
	 * to memory or straight to a file. */
	MEMORY_RATE = 4000,
	FILE_RATE = 500,
};

/* Bytes of the process, and where they go. */
struct piece {
	uint64_t address, size;
	size_t segment;
	bool late;	/* to be read from the clone */
	uint64_t place; /* in the stage, if they fit into that; unless late */
};

struct core_writer {
	struct core_options options;
	struct xstate_layout layout;
	struct source source;
	struct source clone; /* from which what is late is read */
	bool cloned;	     /* there is one, or will be */
	struct notes notes;
	struct held_values held;
	struct memory_map map;
	bool *needed;	      /* of each area, for a portable core; or NULL */
	Elf64_Phdr *segments; /* of a mapping that is cut, several */
	size_t segment_count;
	struct note_range *cuts; /* mappings that are cut */
	size_t cut_count;
	struct piece *pieces;
	size_t piece_count;
	uint64_t pieces_size; /* of those that are not late */
	uint64_t late_size;
	/* as far as the last survey told, and of that, what a clone lacks */
	uint64_t expected_size, expected_early;
	struct note_range *unshared; /* mappings that the clone lacks */
	size_t unshared_count;
	uint8_t *stage; /* memory provided for the first stage_size bytes */
	uint64_t stage_size;
	uint8_t *buffers; /* PIECE_BYTES for each thread */
	unsigned int threads;
	struct core_sizes sizes;
	_Atomic uint64_t copied, unreadable;
};

struct error *core_create(const struct core_options *options, struct core_writer **ret)
{
	_cleanup_(core_destroy) struct core_writer *core = calloc(1, sizeof(*core));

	TRY_MEMORY(core);
	core->options = *options;
	core->layout = options->layout ? *options->layout : xstate_layout_here();
	core->source = (struct source){ .memory = -1, .pages.fd = -1 };
	core->clone = core->source;
	core->threads = parallel_threads();
	core->buffers = malloc((size_t)core->threads * PIECE_BYTES);
	TRY_MEMORY(core->buffers);
	*ret = take(core);
	return NULL;
}

void core_destroy(struct core_writer *core)
{
	source_close(&core->source);
	source_close(&core->clone);
	notes_deinit(&core->notes);
	held_deinit(&core->held);
	memory_map_deinit(&core->map);
	if (core->stage)
		munmap(core->stage, core->stage_size);
	free(core->needed);
	free(core->segments);
	free(core->cuts);
	free(core->unshared);
	free(core->pieces);
	free(core->buffers);
	free(core);
}

/* The last is [vsyscall], in the kernel's half of the address space. */
static bool is_held_back(const struct core_writer *core, const struct memory_area *area)
{
	return area->device || area->start >> 63 || (area->excluded && !core->options.complete);
}

/* True if it shares memory with a file that others can open. */
static bool is_shared_file(const struct memory_area *area)
{
	return area->shared && !memory_area_is_nameless(area);
}

/* The most bytes to copy of an area. */
static uint64_t expected(const struct core_writer *core, const struct memory_area *area)
{
	if (is_held_back(core, area))
		return 0;
	if (is_shared_file(area))
		return area->rights & PF_W ? area->resident : 0;
	if (area->of_file)
		return area->written || (core->options.portable && !(area->rights & PF_X))
			       ? area->end - area->start
			       : PAGE;
	return area->resident;
}

/* Have the kernel provide the memory now, in large pages. */
static struct error *touch(void *data, size_t chunk, unsigned int thread)
{
	struct core_writer *core = data;
	uint64_t start = (uint64_t)chunk * PIECE_BYTES;

	for (uint64_t i = 0; i < PIECE_BYTES; i += PAGE)
		core->stage[start + i] = 0;
	return NULL;
}

/* True if a clone of the process would lack the memory there. */
static bool is_unshared(const struct memory_area *area)
{
	return area->shared || area->unforked;
}

struct error *core_survey(struct core_writer *core, pid_t process)
{
	const struct memory_map *map = &core->map;
	struct error *error = memory_map_read(process, &core->map);

	/* Stopping the process will show it, too. */
	if (error) {
		error_destroy(error);
		return NULL;
	}
	for (size_t i = 0; i < map->count; i++) {
		uint64_t size = expected(core, &map->areas[i]);

		core->expected_size += size;
		if (is_unshared(&map->areas[i]))
			core->expected_early += size;
	}
	return NULL;
}

const struct memory_map *core_surveyed(const struct core_writer *core, uint64_t *ret_size)
{
	*ret_size = core->expected_size;
	return &core->map;
}

/* Memory of the machine, or of what this process's control group is allowed. */
static uint64_t memory_for_copies(void)
{
	uint64_t available = available_memory();
	struct group_limit limit;

	if (group_limit_of(getpid(), GROUP_MEMORY, &limit) && group_left(&limit) < available)
		return group_left(&limit);
	return available;
}

/* For the copy of as much, with some room; 0: the machine has not that much. */
static uint64_t stage_size(uint64_t size)
{
	size += SPARE_BYTES;
	size += size / 16;
	size -= size % PIECE_BYTES;
	/* The file will need as much again of the page cache. */
	return size > memory_for_copies() / 3 ? 0 : size;
}

double core_expected_stop(const struct core_writer *core)
{
	uint64_t rate = stage_size(core->expected_size) > 0 ? MEMORY_RATE : FILE_RATE;

	return (double)core->expected_size / 1e6 / (double)rate;
}

struct error *core_provide(struct core_writer *core, bool cloned)
{
	uint64_t size = stage_size(cloned ? core->expected_early : core->expected_size);
	void *stage;

	core->cloned = cloned;
	if (core->map.count == 0 || size == 0)
		return NULL;
	stage = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stage == MAP_FAILED)
		return NULL;
	madvise(stage, size, MADV_HUGEPAGE);
	core->stage = stage;
	core->stage_size = size;
	return parallel_for(size / PIECE_BYTES, core->threads, touch, core);
}

static Elf64_Phdr *last_segment(const struct core_writer *core)
{
	return &core->segments[core->segment_count - 1];
}

static struct error *add_segment(struct core_writer *core, uint32_t rights, uint64_t start,
				 uint64_t end)
{
	return LIST_APPEND(core->segments, core->segment_count,
			   (Elf64_Phdr){
				   .p_type = PT_LOAD,
				   .p_flags = rights,
				   .p_vaddr = start,
				   .p_memsz = end - start,
				   .p_align = PAGE,
			   });
}

/* Add bytes of the last segment. */
static struct error *add_piece(struct core_writer *core, const struct memory_area *area,
			       uint64_t address, uint64_t size)
{
	bool late = core->cloned && !is_unshared(area);
	uint64_t place = core->pieces_size;

	*(late ? &core->late_size : &core->pieces_size) += size;
	return LIST_APPEND(core->pieces, core->piece_count,
			   (struct piece){ address, size, core->segment_count - 1, late, place });
}

/* An area whose pages are looked for. */
struct filling {
	struct core_writer *core;
	const struct memory_area *area;
	uint64_t filled; /* up to there they were */
	bool cuttable;	 /* the gaps between runs were never touched, and may be cut out */
	bool cut;
};

/* The segment ends with what it has; another begins at start. */
static struct error *cut(struct filling *filling, uint64_t start)
{
	Elf64_Phdr *segment = last_segment(filling->core);

	filling->cut = true;
	segment->p_filesz = filling->filled - segment->p_vaddr;
	segment->p_memsz = start - segment->p_vaddr;
	if (start == filling->area->end)
		return NULL;
	return add_segment(filling->core, segment->p_flags, start, filling->area->end);
}

static struct error *add_run(void *data, uint64_t start, uint64_t end)
{
	struct filling *filling = data;

	if (filling->cuttable && start - filling->filled >= CUT_BYTES)
		TRY(cut(filling, start));
	filling->filled = end;
	while (start < end) {
		uint64_t size = end - start;

		size = MIN(size, PIECE_BYTES);
		TRY(add_piece(filling->core, filling->area, start, size));
		start += size;
	}
	return NULL;
}

/* All runs were added: the file has the area, or what was not cut of it. */
static struct error *end_filling(struct filling *filling)
{
	struct core_writer *core = filling->core;
	const struct memory_area *area = filling->area;
	Elf64_Phdr *segment = last_segment(core);

	segment->p_filesz = segment->p_memsz;
	if (filling->cuttable && area->end - filling->filled >= CUT_BYTES)
		cut(filling, area->end);
	return filling->cut ? LIST_APPEND(core->cuts, core->cut_count,
					  (struct note_range){ area->start, area->end })
			    : NULL;
}

static struct error *fill_whole(struct core_writer *core, const struct memory_area *area)
{
	struct filling filling = { core, area, area->start };

	TRY(add_run(&filling, area->start, area->end));
	return end_filling(&filling);
}

/* Memory that is only there where it was touched. */
static struct error *fill_touched(struct core_writer *core, const struct memory_area *area)
{
	struct filling filling = { core, area, area->start,
				   .cuttable = !area->of_file || area->huge };
	size_t before = core->piece_count;

	/*
	 * Pages may have become resident since the survey, so only the slow way, which has just
	 * read the map, may trust a count of 0.
	 */
	if (area->resident > 0 || area->huge || pages_can_scan(&core->source.pages))
		TRY(pages_find(&core->source.pages, PAGES_ALL, area->start, area->end, add_run,
			       &filling));
	/* Areas without rights and without pages are guards, which the kernel leaves out. */
	if (area->rights || core->piece_count > before)
		TRY(end_filling(&filling));
	return NULL;
}

static struct error *note_run(void *data, uint64_t start, uint64_t end)
{
	*(bool *)data = true;
	return NULL;
}

/* Set ret if the process has changed its private copy of any page of the file. */
static struct error *is_changed(struct core_writer *core, const struct memory_area *area, bool *ret)
{
	*ret = area->written > 0;
	if (*ret || !pages_can_scan(&core->source.pages))
		return NULL;
	return pages_find(&core->source.pages, PAGES_OWN, area->start, area->end, note_run, ret);
}

/* Call found for each run of the area where its file has data. */
static struct error *find_data(const struct memory_area *area, int fd, page_run_fn *found,
			       void *data_of_found)
{
	uint64_t start = area->offset, last = start + area->end - area->start;

	while (start < last) {
		off_t data = lseek(fd, (off_t)start, SEEK_DATA);
		off_t hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
		uint64_t end = (uint64_t)hole < last ? (uint64_t)hole : last;

		if (hole < 0 || (uint64_t)data >= last)
			break;
		TRY(found(data_of_found, area->start + (uint64_t)data - area->offset,
			  area->start + end - area->offset));
		start = end;
	}
	return NULL;
}

static struct error *sum_run(void *data, uint64_t start, uint64_t end)
{
	*(uint64_t *)data += end - start;
	return NULL;
}

static bool is_in_memory(int fd)
{
	struct statfs status;

	return fstatfs(fd, &status) == 0 && (unsigned long)status.f_type == TMPFS_MAGIC;
}

/*
 * Copy the part of a file that is in memory. Reading all of it from disk could hold up the process
 * for long.
 */
static struct error *fill_resident(struct core_writer *core, const struct memory_area *area, int fd)
{
	uint64_t before = core->pieces_size, size = 0, taken;

	TRY(fill_touched(core, area));
	if (fd >= 0)
		TRY(find_data(area, fd, sum_run, &size));
	taken = core->pieces_size - before;
	if (fd < 0)
		size = area->end - area->start;
	core->sizes.not_resident += size > taken ? size - taken : 0;
	return NULL;
}

/*
 * Shared memory may have been touched by others only, so the page table of the process does not
 * tell; the file does, where it may be opened.
 */
static struct error *fill_shared(struct core_writer *core, const struct memory_area *area)
{
	struct filling filling = { core, area, area->start, .cuttable = true };
	_cleanup_(close) int fd = source_open_mapped(&core->source, area);

	if (is_shared_file(area) && (fd < 0 || !is_in_memory(fd)))
		return fill_resident(core, area, fd);
	if (fd < 0)
		return fill_whole(core, area);
	TRY(find_data(area, fd, add_run, &filling));
	return end_filling(&filling);
}

static bool begins_with_elf(const struct core_writer *core, const struct memory_area *area)
{
	char magic[SELFMAG];

	return area->offset == 0 && (area->rights & PF_R) &&
	       source_read(&core->source, area->start, magic, SELFMAG) == SELFMAG &&
	       memcmp(magic, ELFMAG, SELFMAG) == 0;
}

static struct error *fill_private_file(struct core_writer *core, const struct memory_area *area)
{
	bool needed = core->needed && core->needed[area - core->map.areas];
	bool changed;

	TRY(is_changed(core, area, &changed));
	if (!changed)
		last_segment(core)->p_flags |= SEGMENT_AS_IN_FILE;
	/* Keep what cannot be read from the file later. */
	if (changed || needed || memory_area_is_nameless(area))
		return fill_whole(core, area);
	if (!begins_with_elf(core, area))
		return NULL;
	last_segment(core)->p_filesz = PAGE;
	return add_piece(core, area, area->start, PAGE);
}

static struct error *fill(struct core_writer *core, const struct memory_area *area)
{
	if (is_held_back(core, area)) {
		core->sizes.excluded += area->device ? 0 : area->resident;
		return NULL;
	}
	/* Memory that the process cannot write equals the file; a note has what a ring holds. */
	if (is_shared_file(area) &&
	    (!(area->rights & PF_W) || memory_area_has_path(area, RING_PATH)))
		return NULL;
	if (area->shared)
		return fill_shared(core, area);
	/* The kernel's own code is there whether it was called or not. */
	if (memory_area_has_path(area, "[vdso]"))
		return fill_whole(core, area);
	if (!area->of_file || area->huge)
		return fill_touched(core, area);
	return fill_private_file(core, area);
}

/* The sizes behind the header: segments, notes, and the section that counts them. */
static uint64_t headers_size(const struct core_writer *core)
{
	return sizeof(Elf64_Ehdr) + (core->segment_count + 1) * sizeof(Elf64_Phdr) +
	       sizeof(Elf64_Shdr);
}

/* Say what is to be copied. */
static struct error *fill_all(struct core_writer *core)
{
	list_for_each(area, core->map.areas, core->map.count) {
		size_t before = core->piece_count;

		TRY(add_segment(core, area->rights, area->start, area->end));
		TRY(fill(core, area));
		if (core->cloned && is_unshared(area) && core->piece_count > before)
			TRY(LIST_APPEND(core->unshared, core->unshared_count,
					(struct note_range){ area->start, area->end }));
	}
	return NULL;
}

/* And where everything goes. */
static struct error *plan(struct core_writer *core)
{
	uint64_t offset;

	TRY(fill_all(core));
	TRY(notes_add_ranges(&core->notes, NOTE_CUTS, core->cuts, core->cut_count));
	TRY(notes_add_ranges(&core->notes, NOTE_UNSHARED, core->unshared, core->unshared_count));
	offset = page_above(headers_size(core) + core->notes.size);
	for (size_t i = 0; i < core->segment_count; i++) {
		core->segments[i].p_offset = offset;
		offset += core->segments[i].p_filesz;
	}
	core->sizes.file = offset;
	return NULL;
}

/* The piece's offset in the file. */
static uint64_t offset_of(const struct core_writer *core, const struct piece *piece)
{
	const Elf64_Phdr *segment = &core->segments[piece->segment];

	return segment->p_offset + (piece->address - segment->p_vaddr);
}

static struct error *write_all(int fd, const void *bytes, uint64_t size, uint64_t offset)
{
	return write_fully(fd, bytes, size, offset) ? NULL
						    : error_system("the core cannot be written");
}

static bool is_zero(const uint8_t *page)
{
	return bytes_are_zero(page, PAGE);
}

/* Write what is not zero of size bytes, in runs of pages. */
static struct error *write_pages(struct core_writer *core, const uint8_t *bytes, uint64_t size,
				 uint64_t offset)
{
	uint64_t start = 0;

	while (start < size) {
		uint64_t end = start;

		while (end < size && !is_zero(bytes + end))
			end += PAGE;
		if (end > start)
			TRY(write_all(core->options.fd, bytes + start, end - start,
				      offset + start));
		core->copied += end - start;
		/* The page at end is zero, or there is none. */
		start = end + PAGE;
	}
	return NULL;
}

/* The piece's memory in the stage, or NULL. */
static uint8_t *staged(const struct core_writer *core, const struct piece *piece)
{
	return !piece->late && piece->place <= core->stage_size &&
			       core->stage_size - piece->place >= piece->size
		       ? core->stage + piece->place
		       : NULL;
}

/* Copy the piece to memory, or without that to the file. */
static struct error *move_piece(struct core_writer *core, const struct piece *piece,
				unsigned int thread)
{
	const struct source *source = piece->late ? &core->clone : &core->source;
	uint8_t *place = staged(core, piece);
	bool direct = !place;

	TRY(progress_check(core->options.progress, piece->size));
	if (direct)
		place = core->buffers + (size_t)thread * PIECE_BYTES;
	core->unreadable += source_copy(source, piece->address, place, piece->size);
	if (!direct)
		return NULL;
	return write_pages(core, place, piece->size, offset_of(core, piece));
}

/* Starting a thread takes longer than copying a few pieces. */
static unsigned int threads_for(const struct core_writer *core)
{
	enum { FEW_BYTES = 1 << 21 };

	return core->pieces_size + core->late_size > FEW_BYTES ? core->threads : 1;
}

static struct error *copy_piece(void *data, size_t chunk, unsigned int thread)
{
	struct core_writer *core = data;
	const struct piece *piece = &core->pieces[chunk];

	return piece->late ? NULL : move_piece(core, piece, thread);
}

static struct error *write_piece(void *data, size_t chunk, unsigned int thread)
{
	struct core_writer *core = data;
	const struct piece *piece = &core->pieces[chunk];
	uint8_t *place = staged(core, piece);

	if (piece->late)
		return move_piece(core, piece, thread);
	TRY(progress_check(core->options.progress, place ? piece->size : 0));
	return place ? write_pages(core, place, piece->size, offset_of(core, piece)) : NULL;
}

/* The text of smaps takes the kernel long: the earlier one may do. */
static struct error *read_map(struct core_writer *core, pid_t process)
{
	bool known = false;

	if (core->map.count > 0 && pages_can_scan(&core->source.pages))
		TRY(memory_map_renew(process, &core->map, &known));
	if (known)
		return NULL;
	memory_map_deinit(&core->map);
	core->map = (struct memory_map){ 0 };
	return memory_map_read(process, &core->map);
}

struct error *core_describe(struct core_writer *core, const struct held_process *held, int signal)
{
	/* The leader may have ended, which leaves /proc/LEADER without memory.
	 */
	pid_t witness = held->threads[0].id;

	TRY(source_open(witness, &core->source));
	TRY(read_map(core, witness));
	TRY(held_read(held, &core->map, &core->source, &core->held));
	TRY(notes_write(held, signal, &core->map, &core->held, &core->layout, &core->notes));
	if (core->options.portable)
		TRY(portable_find(&core->source, &core->map, &core->needed));
	TRY(plan(core));
	core->sizes.threads = held->count;
	for (size_t i = 0; i < held->count; i++)
		core->sizes.unstoppable += !held->threads[i].stopped;
	return NULL;
}

struct error *core_copy(struct core_writer *core)
{
	progress_begin(core->options.progress, "copying memory", core->pieces_size);
	return parallel_for(core->piece_count, threads_for(core), copy_piece, core);
}

static struct error *write_headers(const struct core_writer *core)
{
	int fd = core->options.fd;
	uint64_t count = core->segment_count + 1, place = headers_size(core);
	bool many = count >= PN_XNUM;
	Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_CORE,
		.e_machine = machine.arch->machine,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(header),
		.e_phoff = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = (Elf64_Half)(many ? PN_XNUM : count),
	};
	/* Its sh_info has the count of segments where e_phnum cannot. */
	Elf64_Shdr section = { .sh_size = 1, .sh_info = (Elf64_Word)count };
	Elf64_Phdr notes = {
		.p_type = PT_NOTE,
		.p_offset = place,
		.p_filesz = core->notes.size,
		.p_align = 4,
	};

	if (many) {
		header.e_shoff = place - sizeof(section);
		header.e_shentsize = sizeof(section);
		header.e_shnum = 1;
	}
	TRY(write_all(fd, &header, sizeof(header), 0));
	TRY(write_all(fd, &notes, sizeof(notes), header.e_phoff));
	TRY(write_all(fd, core->segments, core->segment_count * sizeof(Elf64_Phdr),
		      header.e_phoff + sizeof(notes)));
	if (many)
		TRY(write_all(fd, &section, sizeof(section), header.e_shoff));
	return write_all(fd, core->notes.bytes, core->notes.size, place);
}

struct error *core_take_clone(struct core_writer *core, pid_t clone)
{
	TRY(source_open(clone, &core->clone));
	core->clone.is_clone = true;
	return NULL;
}

struct error *core_write(struct core_writer *core, struct core_sizes *ret)
{
	uint64_t staged_size = MIN(core->pieces_size, core->stage_size);

	progress_begin(core->options.progress, "writing the core", staged_size + core->late_size);
	TRY(parallel_for(core->piece_count, threads_for(core), write_piece, core));
	TRY(write_headers(core));
	if (ftruncate(core->options.fd, (off_t)core->sizes.file) < 0)
		return error_system("the core cannot be written");
	core->sizes.copied = core->copied;
	core->sizes.unreadable = core->unreadable;
	*ret = core->sizes;
	return NULL;
}
