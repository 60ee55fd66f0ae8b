/*
 * The seccomp filter that lets a program run at full speed, and hands it to its tracer the moment
 * that it is about to exit.
 *
 * That is exit_group, when all threads still live; and sigaltstack, which a thread calls once or
 * twice, for nobody can ask the kernel later where a stack for signals is. One that calls them
 * without a tracer gets ENOSYS, so all children are to be traced as well.
 */
#ifndef ANALYZER_CAPTURE_FILTER_H
#define ANALYZER_CAPTURE_FILTER_H

#include <stdbool.h>

/* What the event message of the stop tells the tracer. */
enum filter_message { FILTER_EXIT, FILTER_SIGNAL_STACK };

/*
 * Install it in this process, for it and all its children to come. *ret_weaker says that
 * set-user-id programs lose that right by it: without privileges, the kernel demands so. Returns an
 * errno. Calls nothing that allocates.
 */
int filter_install(bool *ret_weaker);

#endif
