/*
 * The main() of unit tests. Without arguments it runs the tests of all files that it is linked
 * with; an argument names one: "analyzer/graph/roots" for tests/analyzer/graph/roots_test.c, or a
 * folder of them.
 */
#include "tests/assertions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct test_file *files;

void add_test(struct test_file *file, struct unit_test *test)
{
	struct unit_test **place = &file->tests;

	if (!file->tests) {
		file->next = files;
		files = file;
	}
	/* Constructors run in an order that the compiler chooses. */
	while (*place && (*place)->line < test->line)
		place = &(*place)->next;
	test->next = *place;
	*place = test;
	file->count++;
}

/* True if the file is tests/NAME_test.c, or in tests/NAME. */
static bool has_name(const struct test_file *file, const char *name)
{
	static const char folder[] = "/tests/";
	const char *path = file->path;
	size_t length = strlen(name);

	for (const char *next = path; (next = strstr(next, folder)); path = next)
		next += sizeof(folder) - 1;
	return strncmp(path, name, length) == 0 &&
	       (path[length] == '/' || strcmp(path + length, "_test.c") == 0);
}

static bool is_wanted(const struct test_file *file, char **names)
{
	bool wanted = !*names;

	while (!wanted && *names)
		wanted = has_name(file, *names++);
	return wanted;
}

static int run_file(const struct test_file *file)
{
	struct CMUnitTest *tests = calloc(file->count, sizeof(*tests));
	size_t count = 0;
	int failed = 1;

	if (!tests)
		return failed;
	for (const struct unit_test *test = file->tests; test; test = test->next)
		tests[count++] = (struct CMUnitTest){ .name = test->name, .test_func = test->run };
	failed = _cmocka_run_group_tests(file->path, tests, count, file->before, file->after);
	free(tests);
	return failed;
}

int main(int count, char **words)
{
	bool failed = false, found = false;

	for (const struct test_file *file = files; file; file = file->next) {
		if (!is_wanted(file, words + 1))
			continue;
		found = true;
		failed |= run_file(file) != 0;
	}
	if (!found)
		fprintf(stderr, "no test has that name\n");
	return found && !failed ? EXIT_SUCCESS : EXIT_FAILURE;
}
