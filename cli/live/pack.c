#include "cli/live/pack.h"

#include "analyzer/base/cleanup.h"
#include "analyzer/base/parallel.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

/* Quicker than most disks, and still a third of the size. */
enum { LEVEL = 3 };

struct packer {
	ZSTD_CCtx *context;
	int to;
	void *input, *output;
	size_t input_room, output_room;
	uint64_t size; /* bytes written */
};

static void packer_deinit(struct packer *packer)
{
	ZSTD_freeCCtx(packer->context);
	free(packer->input);
	free(packer->output);
}
DEFINE_DEINIT(packer_deinit, struct packer)

static struct error *packer_init(struct packer *packer, uint64_t size)
{
	packer->context = ZSTD_createCCtx();
	packer->input_room = ZSTD_CStreamInSize();
	packer->output_room = ZSTD_CStreamOutSize();
	packer->input = malloc(packer->input_room);
	packer->output = malloc(packer->output_room);
	TRY_MEMORY(packer->context && packer->input && packer->output);
	ZSTD_CCtx_setParameter(packer->context, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(packer->context, ZSTD_c_checksumFlag, 1);
	/* Refused by a library without threads, which does it alone then. */
	ZSTD_CCtx_setParameter(packer->context, ZSTD_c_nbWorkers, (int)parallel_threads());
	ZSTD_CCtx_setPledgedSrcSize(packer->context, size);
	return NULL;
}

static struct error *write_output(struct packer *packer, size_t size)
{
	const char *next = packer->output;

	packer->size += size;
	while (size > 0) {
		ssize_t written = write(packer->to, next, size);

		if (written < 0 && errno != EINTR)
			return error_system("cannot be written");
		if (written > 0) {
			next += written;
			size -= (size_t)written;
		}
	}
	return NULL;
}

/* Pack size bytes of input; with last, to the end of the frame. */
static struct error *pack(struct packer *packer, size_t size, bool last)
{
	ZSTD_inBuffer input = { packer->input, size, 0 };
	size_t left = 1;

	while (last ? left > 0 : input.pos < input.size) {
		ZSTD_outBuffer output = { packer->output, packer->output_room, 0 };

		left = ZSTD_compressStream2(packer->context, &output, &input,
					    last ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left))
			return error_create(ERROR_SYSTEM, "cannot be packed: %s",
					    ZSTD_getErrorName(left));
		TRY(write_output(packer, output.pos));
	}
	return NULL;
}

struct error *pack_zstd(int from, int to, struct progress *progress, uint64_t *ret_size)
{
	_cleanup_(packer_deinit) struct packer packer = { .to = to };
	struct stat status;
	struct error *error;
	uint64_t done = 0, size;

	if (fstat(from, &status) < 0)
		return error_system("cannot be read");
	size = (uint64_t)status.st_size;
	error = packer_init(&packer, size);
	progress_begin(progress, "packing the core", size);
	while (!error && done < size) {
		ssize_t taken = pread(from, packer.input, packer.input_room, (off_t)done);

		if (taken < 0 && errno == EINTR)
			continue;
		if (taken <= 0)
			return error_system("cannot be read");
		done += (uint64_t)taken;
		TRY(progress_check(progress, (uint64_t)taken));
		error = pack(&packer, (size_t)taken, done == size);
	}
	*ret_size = packer.size;
	return error;
}
