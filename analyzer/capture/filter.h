/*
 * The seccomp filter that lets a program run at full speed, and hands it to
 * its tracer the moment that it is about to exit.
 *
 * Only exit_group is handed over, when all threads still live. Whoever calls
 * it without a tracer gets ENOSYS, so all children are to be traced as well.
 */
#ifndef ANALYZER_CAPTURE_FILTER_H
#define ANALYZER_CAPTURE_FILTER_H

#include <stdbool.h>

/*
 * Install it in this process, for it and all its children to come. *ret_weaker
 * says that set-user-id programs lose that right by it: without privileges,
 * the kernel demands so. Returns an errno. Calls nothing that allocates.
 */
int filter_install(bool *ret_weaker);

#endif
