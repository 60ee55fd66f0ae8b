#include "analyzer/capture/filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SECCOMP_FILTER_FLAG_SPEC_ALLOW
#define SECCOMP_FILTER_FLAG_SPEC_ALLOW (1UL << 2)
#endif

/*
 * Returns an errno. Without the flag, kernels before 5.16 slow a filtered program down; before 4.17
 * there is no such flag.
 */
static int install(const struct sock_fprog *program)
{
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
		    program) == 0)
		return 0;
	if (errno == EINVAL && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program) == 0)
		return 0;
	return errno;
}

int filter_install(bool *ret_weaker)
{
	/* Programs for other machines, as i386, have other numbers. */
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sigaltstack, 2, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | FILTER_EXIT),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | FILTER_SIGNAL_STACK),
	};
	struct sock_fprog program = {
		.len = sizeof(steps) / sizeof(*steps),
		.filter = steps,
	};
	int failure = install(&program);

	*ret_weaker = false;
	if (failure != EACCES)
		return failure;
	*ret_weaker = true;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return errno;
	return install(&program);
}
