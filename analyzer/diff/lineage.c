#include "analyzer/diff/lineage.h"

#include <elf.h>
#include <string.h>
#include <sys/stat.h>

static void find_time(const struct image *image, struct lineage *lineage)
{
	struct stat status;

	lineage->time = image_origin(image).time;
	if (lineage->time) {
		lineage->source = TIME_CORE;
	} else if (stat(image_path(image), &status) == 0 && status.st_mtim.tv_sec > 0) {
		lineage->time = (uint64_t)status.st_mtim.tv_sec * UINT64_C(1000000000) +
				(uint64_t)status.st_mtim.tv_nsec;
		lineage->source = TIME_FILE;
	}
}

struct lineage lineage_of(const struct image *image)
{
	struct lineage lineage = {
		.process = image_origin(image).process,
		.program = image_auxiliary(image, AT_PHDR, 0),
		.vdso = image_auxiliary(image, AT_SYSINFO_EHDR, 0),
	};
	uint64_t random = image_auxiliary(image, AT_RANDOM, 0);

	lineage.has_random = random && image_read(image, random, lineage.random, RANDOM_BYTES);
	find_time(image, &lineage);
	return lineage;
}

enum kinship lineage_compare(const struct lineage *one, const struct lineage *other)
{
	if (!one->has_random || !other->has_random)
		return KIN_UNKNOWN;
	if (memcmp(one->random, other->random, RANDOM_BYTES) != 0)
		return KIN_OTHER_RANDOM;
	if (one->process && other->process && one->process != other->process)
		return KIN_OTHER_ID;
	if (one->program != other->program || one->vdso != other->vdso)
		return KIN_OTHER_PLACE;
	return KIN_SAME_PROCESS;
}

const char *kinship_reason(enum kinship kinship)
{
	static const char *const reasons[] = {
		[KIN_SAME_PROCESS] = "the same AT_RANDOM, program and process id",
		[KIN_OTHER_RANDOM] = "the random bytes of AT_RANDOM differ",
		[KIN_OTHER_ID] = "the ids of the processes differ",
		[KIN_OTHER_PLACE] = "the program is mapped elsewhere",
		[KIN_UNKNOWN] = "the random bytes of AT_RANDOM are missing",
	};

	return reasons[kinship];
}
