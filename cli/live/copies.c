#include "cli/live/copies.h"

#include "analyzer/base/temporary.h"

#include <stdlib.h>

const char *copies_folder(void)
{
	const char *folder = getenv("TMPDIR");

	return folder && *folder ? folder : "/tmp";
}

struct error *copies_open(int *ret)
{
	return temporary_open(copies_folder(), ret);
}
