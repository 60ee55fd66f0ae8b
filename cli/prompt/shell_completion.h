/*
 * Completion of heapcore's command line by a shell: see packaging/completions.
 *
 *	heapcore --complete run --time        --timeout
 *	heapcore --complete core count le     leaked, leakroots
 *
 * The arguments are the words typed behind the program's name, the last of which is to be
 * completed and may be empty. The program answers from the tables that drive its parsers, so the
 * shells' scripts never fall behind.
 */
#pragma once

#define COMPLETE "--complete"

/* Write what the last word may become, a line each; nothing where a file's name is due. */
int complete_main(int count, char **arguments);
