/*
 * An entry point for programs that are linked to a fixed address. Their heap follows them, so low
 * that mere numbers look like pointers into it, and hide leaks by chance. This moves the end of the
 * heap up before anything else is done, and begins the program then. Link with
 * -Wl,-e,high_heap_start.
 *
 * Nothing of libc can be used here: it has not begun yet.
 */
#ifdef __i386__
/* All addresses are low. */
__asm__(".globl high_heap_start\nhigh_heap_start:\n\tjmp _start\n");
#else
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

/* Above all 32-bit numbers, and no pair of small ones. */
static const uintptr_t HIGH_HEAP = 0x3700000000;
/* The kernel grants this much at once on any machine. */
static const uintptr_t STEP = (uintptr_t)1 << 30;
static const uintptr_t PAGE = 4096;

#ifdef __aarch64__
static uintptr_t ask_kernel(long call, uintptr_t first, uintptr_t second)
{
	register long x8 __asm__("x8") = call;
	register uintptr_t x0 __asm__("x0") = first, x1 __asm__("x1") = second;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1) : "memory");
	return x0;
}

/* x0 is for the program: what the loader wants to be called in the end. */
__asm__(".globl high_heap_start\n"
	"high_heap_start:\n\t"
	"stp x0, x30, [sp, #-16]!\n\tbl move_heap\n\tldp x0, x30, [sp], #16\n\tb _start\n");
#elif defined(__riscv)
static uintptr_t ask_kernel(long call, uintptr_t first, uintptr_t second)
{
	register long a7 __asm__("a7") = call;
	register uintptr_t a0 __asm__("a0") = first, a1 __asm__("a1") = second;

	__asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1) : "memory");
	return a0;
}

/* a0 is for the program: what the loader wants to be called in the end. */
__asm__(".globl high_heap_start\n"
	"high_heap_start:\n\t"
	"addi sp, sp, -16\n\tsd a0, 0(sp)\n\tcall move_heap\n\t"
	"ld a0, 0(sp)\n\taddi sp, sp, 16\n\ttail _start\n");
#elif defined(__powerpc64__)
static uintptr_t ask_kernel(long call, uintptr_t first, uintptr_t second)
{
	register long r0 __asm__("r0") = call;
	register uintptr_t r3 __asm__("r3") = first, r4 __asm__("r4") = second;

	__asm__ volatile("sc"
			 : "+r"(r0), "+r"(r3), "+r"(r4)
			 :
			 : "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "cr0", "ctr",
			   "memory");
	return r3;
}

/* r7 is for the program: what the loader wants to be called in the end; r12 is where it begins. */
__asm__(".globl high_heap_start\n"
	"high_heap_start:\n\t"
	"stdu 1, -64(1)\n\tstd 7, 48(1)\n\tbl move_heap\n\tnop\n\t"
	"ld 7, 48(1)\n\taddi 1, 1, 64\n\tbcl 20, 31, 1f\n1:\tmflr 12\n\t"
	"addis 12, 12, (_start - 1b)@ha\n\taddi 12, 12, (_start - 1b)@l\n\t"
	"mtctr 12\n\tbctr\n");
#else
static uintptr_t ask_kernel(long call, uintptr_t first, uintptr_t second)
{
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(call), "D"(first), "S"(second)
			 : "rcx", "r11", "memory");
	return (uintptr_t)result;
}

/* rdx is for the program: what the loader wants to be called in the end. */
__asm__(".globl high_heap_start\n"
	"high_heap_start:\n\t"
	"push %rdx\n\tpush %rdx\n\tcall move_heap\n\tpop %rdx\n\tpop %rdx\n\tjmp _start\n");
#endif

/* The break moves up step by step; what it leaves behind is given back. */
__attribute__((used, no_stack_protector)) static void move_heap(void)
{
	uintptr_t start = (ask_kernel(SYS_brk, 0, 0) + PAGE - 1) & -PAGE;

	while (start < HIGH_HEAP && ask_kernel(SYS_brk, start + STEP, 0) == start + STEP) {
		ask_kernel(SYS_munmap, start, STEP);
		start += STEP;
	}
}
#endif
