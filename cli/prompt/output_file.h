/*
 * Files for what is found, made so that nobody else gets at it, or is harmed.
 *
 * What is new is for its owner only. In a folder in which others can make files, as /tmp, a file or
 * link that is there already may have been put there by them: links are not followed, and files of
 * others are left alone.
 */
#pragma once

#include "analyzer/base/cleanup.h"

/*
 * Open a file to write a report to, which is overwritten from its beginning by those who truncate
 * it. flags may have O_APPEND; without O_NOFOLLOW, links are followed where nobody else can make
 * them. Returns -1 and sets errno: ELOOP for a link, EPERM for what somebody else may have put
 * there.
 */
int output_file_open(const char *path, int flags);

/* A file that has its name only when it is complete. */
struct output_file {
	int fd; /* to read and write */
	char *path;
	char *temporary; /* temporary name until output_file_end(); NULL: none */
};

/*
 * Begin a file in place of a regular one, which is gone at once. Returns -1 and sets errno: EEXIST
 * for what is no regular file.
 */
int output_file_begin(const char *path, struct output_file *ret);

/* Begin a file under a temporary name; a file that exists stays until the new one is complete. */
int output_file_begin_named(const char *path, struct output_file *ret);

/* Give the complete file its name, and return its fd, which is the caller's
 * then; -1: errno says why it could not be named. */
int output_file_complete(struct output_file *file);

/* Leave nothing of a file that was not completed. */
void output_file_deinit(struct output_file *file);
DEFINE_DEINIT(output_file_deinit, struct output_file)
