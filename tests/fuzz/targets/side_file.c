/*
 * Side files that tell what is false: edits to those of a few cores, their checksums made to fit
 * again, so that it is the contents that are looked at.
 */
#include "tests/fuzz/core_target.h"

#include "analyzer/analysis/analysis.h"
#include "cli/prompt/execute.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

/* As analyzer/base/side_file.c lays it out. */
enum {
	FILE_SIZE_AT = 24,
	IDENTITY_END = 72,
	SECTIONS_AT = IDENTITY_END,
	HASH_AT = SECTIONS_AT + SIDE_SECTIONS * 24,
	HEADER_SIZE = HASH_AT + 8,
	SMALL = 4096, /* bytes of an array each of whose words counts */
	CORES = 3,
};

struct section {
	uint64_t offset, size, hash;
};

static const char *const NAMES[CORES] = { FUZZ_FILES "/trixie-small.core",
					  FUZZ_FILES "/classes.core",
					  FUZZ_FILES "/collected.core" };
static const struct debug_options options = { .sysroot = "/nonexistent" };

static struct edited_file files[CORES];
static char folder[] = "/tmp/heapcore-fuzz-side.XXXXXX";
static char paths[CORES][sizeof(folder) + 32];

static void remove_files(void)
{
	for (size_t i = 0; i < CORES; i++)
		unlink(paths[i]);
	rmdir(folder);
}

/* Words of the arrays: those of small ones, which are counts, once more. */
static void find_places(struct edited_file *file)
{
	const struct section *sections = (const struct section *)(file->bytes + SECTIONS_AT);

	file->headers = HEADER_SIZE;
	for (size_t i = 0; i < SIDE_SECTIONS; i++) {
		const struct section *section = &sections[i];
		uint64_t place = SECTIONS_AT + i * sizeof(*section);

		if (!section->offset)
			continue;
		places_add(&file->chunks, place);
		places_add(&file->chunks, place + 8);
		if (section->size)
			places_add(&file->first, section->offset);
		for (uint64_t k = 0; k < section->size; k += 4) {
			places_add(&file->words, section->offset + k);
			if (section->size <= SMALL)
				places_add(&file->pointers, section->offset + k);
		}
	}
}

static void make_file(size_t number)
{
	struct progress progress = { .task = NULL };
	_cleanup_(analysis_destroy) struct analysis *analysis = NULL;
	char *path = paths[number];

	snprintf(path, sizeof(paths[number]), "%s/%zu.hcx", folder, number);
	if (analysis_create(NAMES[number], &options, &progress, &analysis) ||
	    analysis_write_side_file(analysis, path))
		abort();
	edited_file_adopt(&files[number], open(path, O_RDWR | O_CLOEXEC), path);
	find_places(&files[number]);
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
	core_target_settle();
	if (!mkdtemp(folder))
		abort();
	atexit(remove_files);
	for (size_t i = 0; i < CORES; i++)
		make_file(i);
	return 0;
}

static void make_hashes_fit(uint8_t *bytes, uint64_t size)
{
	struct section *sections = (struct section *)(bytes + SECTIONS_AT);
	uint64_t hash;

	for (size_t i = 0; i < SIDE_SECTIONS; i++)
		if (sections[i].offset <= size && sections[i].size <= size - sections[i].offset)
			sections[i].hash =
				XXH3_64bits(bytes + sections[i].offset, sections[i].size);
	hash = XXH3_64bits(bytes, HASH_AT);
	memcpy(bytes + HASH_AT, &hash, sizeof(hash));
}

/* Restore or repair the fields that are checked before anything else. */
static void forge(const struct edited_file *file)
{
	_cleanup_(free) uint8_t *bytes = NULL;
	struct stat status;
	uint64_t size;

	if (fstat(file->fd, &status) < 0 || status.st_size < HEADER_SIZE)
		return;
	size = (uint64_t)status.st_size;
	bytes = malloc(size);
	if (!bytes || pread(file->fd, bytes, size, 0) != (ssize_t)size)
		abort();
	memcpy(bytes, file->bytes, IDENTITY_END);
	memcpy(bytes + FILE_SIZE_AT, &size, sizeof(size));
	make_hashes_fit(bytes, size);
	if (pwrite(file->fd, bytes, HEADER_SIZE, 0) != HEADER_SIZE)
		abort();
}

static void look(size_t number, unsigned int choice)
{
	static const char *const lines[] = {
		"summarize used",
		"summarize leaked",
		"enumerate leakroots",
		"explain used --limit 20",
		"explain leaked --limit 20",
		"describe used --limit 30 --show-up-to 40",
		"list used --limit 50 --annotate *.*",
		"list free --limit 50",
		"summarize used --extend ->",
		"explain used --sort-by retained --limit 10",
		"summarize used --sort-by bytes --format json",
		"gate --likely",
		"list garbage --limit 20",
		"count threadonlyanchored",
		"count unreferenced",
		"bill",
		"fragmentation",
		"waste",
		"list regions",
		"memprof sizes",
	};
	enum { COUNT = sizeof(lines) / sizeof(*lines) };
	_cleanup_(session_deinit) struct session session;
	struct error *error;

	session_init(&session, true);
	session.debug = &options;
	error = session_open(&session, NAMES[number]);
	if (!error)
		error = analysis_use_side_file(session.analysis, paths[number]);
	if (error) {
		session_complain(&session, error);
		return;
	}
	execute_line(&session, lines[choice % COUNT]);
	execute_line(&session, lines[choice / COUNT % COUNT]);
	fflush(stdout);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct edited_file *file;

	if (size < CORE_TARGET_HEAD)
		return 0;
	file = &files[bytes[0] % CORES];
	edits_make(file, bytes + CORE_TARGET_HEAD, size - CORE_TARGET_HEAD);
	/* Now and then the checksums are left as they are. */
	if (bytes[3] % 16 != 15)
		forge(file);
	look(bytes[0] % CORES, bytes[1] | (unsigned int)bytes[2] << 8);
	edits_undo(file);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned int seed)
{
	return edits_mutate(bytes, size, most, CORE_TARGET_HEAD, seed);
}
