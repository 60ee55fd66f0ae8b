/*
 * Memory that a library loses: in its destructor when the program ends, and by being closed while
 * it has some.
 *
 *	libraries CASE leak|clean
 *
 * The library is library.so in the directory of the program.
 */
#include "testdata/programs/gate/cases.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

static void *load(bool leak)
{
	char path[PATH_MAX + 16] = "";
	void *library;
	void (*start)(int);

	if (readlink("/proc/self/exe", path, PATH_MAX) < 0)
		abort();
	strcpy(strrchr(path, '/'), "/library.so");
	library = dlopen(path, RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	start = (void (*)(int))dlsym(library, "library_start");
	start(leak);
	return library;
}

static void destructor(bool leak)
{
	load(leak);
}

static void closed(bool leak)
{
	dlclose(load(leak));
}

const struct leak_case cases[] = {
	{ "destructor", destructor },
	{ "closed", closed },
	{ NULL, NULL },
};
