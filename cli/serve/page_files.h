/*
 * The files of the page, which the program carries. Each file of cli/serve/page/ is one, and the
 * build collects them: page.html is what a browser begins with.
 */
#pragma once

struct page_file {
	const char *path, *type;
	const char *text; /* with a zero at its end */
};

extern const struct page_file page_files[]; /* the path is NULL at the end */
