/*
 * Files for what is found, made so that nobody else gets at it, or is harmed.
 *
 * What is new is for its owner only. In a folder in which others can make
 * files, as /tmp, a file or link that is there already may have been put there
 * by them: links are not followed, and files of others are left alone.
 */
#ifndef CLI_OUTPUT_FILE_H
#define CLI_OUTPUT_FILE_H

/*
 * Open a file to write a report to, which is overwritten from its beginning by
 * whoever truncates it. flags may have O_APPEND; without O_NOFOLLOW, links are
 * followed where nobody else can make them. Returns -1 and sets errno: ELOOP
 * for a link, EPERM for what somebody else may have put there.
 */
int output_file_open(const char *path, int flags);

/*
 * Make a file anew, to be read and written, in place of a regular file that is
 * there. Returns -1 and sets errno: EEXIST for what is no regular file.
 */
int output_file_replace(const char *path);

#endif
