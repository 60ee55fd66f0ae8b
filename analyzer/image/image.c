#include "analyzer/image/image.h"

#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/image/view.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

enum {
	STRIPE = 4 << 20,    /* of a dump larger than memory: kept, or not */
	REQUEST = 128 << 10, /* Linux cuts what is to be fetched to its read-ahead */
	AHEAD = 32 << 20,
};

const struct mapping *image_find_mapping(const struct image *image, uint64_t address)
{
	return LIST_HOLDER(image->mappings, image->mapping_count, start, end, address);
}

bool image_fits(const struct image *image)
{
	return image->size < image->room;
}

/* Nothing is lost if the advice is not taken. */
static struct image_advice advise(const struct image *image, bool random)
{
	if (!image_fits(image))
		madvise(image->bytes, image->size, random ? MADV_RANDOM : MADV_NORMAL);
	return (struct image_advice){ image, random };
}

struct image_advice image_advise_random(const struct image *image)
{
	return advise(image, true);
}

struct image_advice image_advise_in_order(const struct image *image)
{
	return advise(image, false);
}

void image_advice_end(struct image_advice *advice)
{
	advise(advice->image, !advice->random);
}

/*
 * True if the page cache keeps that stripe of the file. Multiples of the golden ratio spread kept
 * stripes evenly, so that a pass computes on them while it reads others.
 */
static bool is_kept(const struct image *image, uint64_t stripe)
{
	uint64_t place = (uint32_t)(stripe * 2654435769) >> 16;

	return place * image->size < (uint64_t)image->room << 16;
}

/* Unmap those bytes of the file, and drop them from the page cache unless they are kept. */
static void release_bytes(const struct image *image, uint64_t first, uint64_t end)
{
	const uint64_t page = (uint64_t)getpagesize(); /* of this machine */

	first = (first + page - 1) & ~(page - 1);
	end &= ~(page - 1);
	if (first < end)
		madvise(image->bytes + first, end - first, MADV_DONTNEED);
	for (uint64_t next; first < end; first = next) {
		next = (first / STRIPE + 1) * STRIPE < end ? (first / STRIPE + 1) * STRIPE : end;
		if (!is_kept(image, first / STRIPE))
			posix_fadvise(image->fd, (off_t)first, (off_t)(next - first),
				      POSIX_FADV_DONTNEED);
	}
}

/* Have those bytes read in the background. */
static void fetch_bytes(const struct image *image, uint64_t first, uint64_t end)
{
	for (; first < end; first += REQUEST)
		posix_fadvise(image->fd, (off_t)first,
			      (off_t)(end - first < REQUEST ? end - first : REQUEST),
			      POSIX_FADV_WILLNEED);
}

/* Advise the kernel on the bytes of the file that stand at [start, end). */
static void advise_bytes(const struct image *image, uint64_t start, uint64_t end,
			 void (*give)(const struct image *image, uint64_t first, uint64_t end))
{
	size_t i;

	if (image_fits(image))
		return;
	i = LIST_ABOVE(image->regions, image->region_count, end, start);
	for (; i < image->region_count && image->regions[i].start < end; i++) {
		const struct region *region = &image->regions[i];
		uint64_t first = start > region->start ? start : region->start;
		uint64_t last = end < region->end ? end : region->end;
		uint64_t offset = (uint64_t)(region->bytes - image->bytes);

		if (region->origin == REGION_CORE && !region->untouched)
			give(image, offset + (first - region->start),
			     offset + (last - region->start));
	}
}

void image_release(const struct image *image, uint64_t start, uint64_t end)
{
	advise_bytes(image, start, end, release_bytes);
}

void image_fetch(const struct image *image, uint64_t start, uint64_t end)
{
	advise_bytes(image, start, end - start < AHEAD ? end : start + AHEAD, fetch_bytes);
}

void image_advance(const struct image *image, uint64_t start, uint64_t end)
{
	uint64_t ahead;

	image_release(image, start, end);
	if (!__builtin_add_overflow(end, AHEAD, &ahead))
		image_fetch(image, end - start < AHEAD ? ahead - (end - start) : end, ahead);
}

const struct region *image_find(const struct image *image, uint64_t address)
{
	return LIST_HOLDER(image->regions, image->region_count, start, end, address);
}

const uint8_t *image_bytes(const struct image *image, uint64_t address, uint64_t *ret_size)
{
	const struct region *region = image_find(image, address);

	if (!region || !region->bytes)
		return NULL;
	*ret_size = region->end - address;
	return region->bytes + (address - region->start);
}

uint64_t image_next_data(const struct image *image, uint64_t address)
{
	const struct region *region = image_find(image, address);
	uint64_t offset;
	off_t data;

	if (!region || region->origin != REGION_CORE)
		return address;
	if (region->untouched)
		return region->end;
	offset = (uint64_t)(region->bytes - image->bytes) + (address - region->start);
	data = lseek(image->fd, (off_t)offset, SEEK_DATA);
	/* ENXIO: nothing but a hole up to the end of the file. */
	if (data < 0)
		return errno == ENXIO ? region->end : address;
	if ((uint64_t)data - offset >= region->end - address)
		return region->end;
	return address + ((uint64_t)data - offset);
}

uint64_t image_next_hole(const struct image *image, uint64_t address)
{
	const struct region *region = image_find(image, address);
	uint64_t offset;
	off_t hole;

	if (!region || region->origin != REGION_CORE)
		return region ? region->end : address;
	if (region->untouched)
		return address;
	offset = (uint64_t)(region->bytes - image->bytes) + (address - region->start);
	hole = lseek(image->fd, (off_t)offset, SEEK_HOLE);
	if (hole < 0 || (uint64_t)hole - offset >= region->end - address)
		return region->end;
	return address + ((uint64_t)hole - offset);
}

struct own_note image_note(const struct image *image, uint32_t type)
{
	for (size_t i = 0; i < image->note_count; i++)
		if (image->notes[i].type == type)
			return image->notes[i];
	return (struct own_note){ .type = type };
}

bool image_is_slim(const struct image *image)
{
	return image_note(image, NOTE_SLIM).bytes != NULL;
}

uint64_t image_random_hash(const struct image *image)
{
	enum { RANDOM_BYTES = 16 };
	uint64_t address = image_auxiliary(image, AT_RANDOM, 0);
	uint8_t bytes[RANDOM_BYTES];

	if (image->origin.random)
		return image->origin.random;
	return address && image_read(image, address, bytes, RANDOM_BYTES)
		       ? XXH3_64bits(bytes, RANDOM_BYTES)
		       : 0;
}

bool image_keeps_content(const struct image *image)
{
	return image_note(image, NOTE_KEPT).size >= sizeof(struct note_range);
}

static struct note_range note_range(const struct own_note *note, size_t number)
{
	struct note_range range;

	memcpy(&range, note->bytes + number * sizeof(range), sizeof(range));
	return range;
}

bool image_has_content(const struct image *image, uint64_t address, uint64_t *ret_run)
{
	struct own_note note = image_note(image, NOTE_KEPT);
	size_t count = note.bytes ? note.size / sizeof(struct note_range) : 0;
	size_t next = BISECT(i, 0, count, note_range(&note, i).end <= address);
	struct note_range range = { UINT64_MAX, UINT64_MAX };

	*ret_run = MAX(UINT64_MAX - address, 1);
	if (!image_is_slim(image))
		return true;
	if (next < count)
		range = note_range(&note, next);
	if (range.start <= address && address < range.end)
		*ret_run = range.end - address;
	else if (range.start > address)
		*ret_run = range.start - address;
	return range.start <= address && address < range.end;
}

bool image_has_contents(const struct image *image, uint64_t address, uint64_t size)
{
	uint64_t run;

	return image_has_content(image, address, &run) && run >= size;
}

bool image_read(const struct image *image, uint64_t address, void *ret, size_t size)
{
	uint8_t *to = ret;

	while (size > 0) {
		uint64_t available;
		const uint8_t *from = image_bytes(image, address, &available);

		if (!from)
			return false;
		available = MIN(available, size);
		memcpy(to, from, available);
		to += available;
		address += available;
		size -= available;
	}
	return true;
}

bool image_read_u64(const struct image *image, uint64_t address, uint64_t *ret)
{
	return image_read(image, address, ret, sizeof(*ret));
}

bool image_read_u32(const struct image *image, uint64_t address, uint32_t *ret)
{
	return image_read(image, address, ret, sizeof(*ret));
}

bool image_read_word(const struct image *image, uint64_t address, uint64_t *ret)
{
	uint8_t bytes[sizeof(*ret)];
	unsigned int size = image_word_size(image);

	if (!image_read(image, address, bytes, size))
		return false;
	*ret = load_word(bytes, size);
	return true;
}

bool image_read_words(const struct image *image, uint64_t address, uint64_t *ret, size_t count)
{
	unsigned int size = image_word_size(image);

	if (!image_read(image, address, ret, count * size))
		return false;
	/* From the last one on: none is overwritten before it is read. */
	if (size < sizeof(*ret))
		for (size_t i = count; i-- > 0;)
			ret[i] = load_word((const uint8_t *)ret + i * size, size);
	return true;
}

bool image_signal_is_foreign(const struct image *image, const struct image_thread *thread)
{
	return thread->signal_sent && image->origin.process &&
	       thread->signal_sender != image->origin.process;
}

/* A debugger stops a process by a signal of its own. */
int image_fatal_signal(const struct image *image)
{
	int signal = image->thread_count ? image->threads[0].signal : 0;
	bool by_debugger = signal == SIGTRAP || signal == SIGSTOP || signal == SIGINT;

	return image->origin.by_debugger && by_debugger ? 0 : signal;
}

const char *image_text(const struct image *image, uint64_t address)
{
	uint64_t size;
	const uint8_t *text = image_bytes(image, address, &size);

	return text && memchr(text, 0, size) ? (const char *)text : NULL;
}

uint64_t image_auxiliary(const struct image *image, uint64_t type, uint64_t fallback)
{
	for (size_t i = 0; i < image->auxiliary_count; i++)
		if (image->auxiliary[i].type == type)
			return image->auxiliary[i].value;
	return fallback;
}

uint64_t image_page_size(const struct image *image)
{
	enum { LARGEST_PAGE = 1 << 18 };
	uint64_t size = image_auxiliary(image, AT_PAGESZ, PAGE);

	return size >= PAGE && size <= LARGEST_PAGE && !(size & (size - 1)) ? size : PAGE;
}

bool view_move(struct view *view, uint64_t address)
{
	const struct region *region = image_find(view->image, address);

	if (!region || !region->bytes)
		return false;
	view->start = region->start;
	view->size = region->end - region->start;
	view->bytes = region->bytes;
	view->least =
		image_word_size(view->image) == sizeof(uint64_t) ? sizeof(uint64_t) : UINT64_MAX;
	return true;
}

bool view_odd_word(const struct view *view, uint64_t address, const uint8_t *bytes, uint64_t known,
		   uint64_t *ret)
{
	unsigned int size = image_word_size(view->image);

	if (known < size)
		return image_read_word(view->image, address, ret);
	*ret = load_word(bytes, size);
	return true;
}

uint64_t view_reach(const struct view *view, uint64_t address, uint64_t end)
{
	const struct region *region;

	while (address < end && (region = image_find(view->image, address)) && !region->mapping)
		address = region->end;
	return address < end ? address : end;
}

bool view_is_absent(const struct view *view, uint64_t address)
{
	const struct region *region = image_find(view->image, address);

	return region && !region->bytes;
}
