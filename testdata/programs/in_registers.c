/*
 * Blocks held by nothing but a register: general ones, MMX, and vector ones as far as the processor
 * has them, where an address need not be aligned and may lie across the halves of one.
 *
 * Two threads hold such blocks, the main one and another; a third says when.
 */

#include "truth.h"

#include <cpuid.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#ifdef __i386__
enum { BASIC_SLOTS = 6, AVX_SLOTS = 0, AVX512_SLOTS = 0 };
#else
enum { BASIC_SLOTS = 8, AVX_SLOTS = 3, AVX512_SLOTS = 2 };
#endif
enum { SLOTS = BASIC_SLOTS + AVX_SLOTS + AVX512_SLOTS, HOLDERS = 2 };
enum { AVX = 1, AVX512 = 2 };

#define MASK ((uintptr_t)0x6c3a9f0055aa1278)

/* Masked, as memory must not hold these. */
static uint64_t slots[HOLDERS][SLOTS];
static uint64_t features;
static atomic_int holding;

static uint64_t find_features(void)
{
	uint64_t found = 0;
	unsigned int eax, ebx, ecx, edx, enabled, enabled_high;

	if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & bit_OSXSAVE))
		return 0;
	__asm__("xgetbv" : "=a"(enabled), "=d"(enabled_high) : "c"(0));
	if ((ecx & bit_AVX) && (enabled & 0x06) == 0x06)
		found |= AVX;
	if (found && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ebx & bit_AVX512F) &&
	    (enabled & 0xe6) == 0xe6)
		found |= AVX512;
	return found;
}

static OUT_OF_LINE void populate(void)
{
	size_t count = BASIC_SLOTS + (features & AVX ? AVX_SLOTS : 0) +
		       (features & AVX512 ? AVX512_SLOTS : 0);

	for (size_t holder = 0; holder < HOLDERS; holder++) {
		for (size_t i = 0; i < count; i++) {
			void *block = truth_block(100 + i);

			truth_kept(block);
			truth_lost(truth_block(200));
			slots[holder][i] = ((uintptr_t)block + i) ^ MASK;
		}
	}
}

/* clang-format off */
#ifdef __i386__
/* Load slot number into eax. */
#define LOAD(number) "movl 8*" #number "(%%edi), %%eax; xorl %%ecx, %%eax;"

static OUT_OF_LINE _Noreturn void hold(const uint64_t *masked)
{
	__asm__ volatile(
		LOAD(0) "movl %%eax, %%ebx;"
		LOAD(1) "movl %%eax, %%ebp;"
		LOAD(2) "movd %%eax, %%mm3;"
		LOAD(3) "movd %%eax, %%xmm5;"
		LOAD(4) "movd %%eax, %%xmm6; pslldq $8, %%xmm6;"
		LOAD(5) "movd %%eax, %%xmm7; pslldq $3, %%xmm7;"
		"xorl %%edi, %%edi; lock incl (%%edx);2: movl $29, %%eax; int $0x80; jmp 2b" /* pause */
		:
		: "D"(masked), "d"(&holding), "c"(MASK)
		: "memory");
	__builtin_unreachable();
}
#else
/* Load slot number into rax. */
#define LOAD(number) "movq 8*" #number "(%%rdi), %%rax; xorq %%rcx, %%rax;"

static OUT_OF_LINE _Noreturn void hold(const uint64_t *masked)
{
	__asm__ volatile(
		LOAD(0) "movq %%rax, %%rbx;"
		LOAD(1) "movq %%rax, %%r13;"
		LOAD(2) "movq %%rax, %%r9;"
		LOAD(3) "movq %%rax, %%mm3;"
		LOAD(4) "movq %%rax, %%xmm5;"
		LOAD(5) "movq %%rax, %%xmm6; pslldq $8, %%xmm6;"
		LOAD(6) "movq %%rax, %%xmm7; pslldq $3, %%xmm7;"
		LOAD(7) "movq %%rax, %%xmm15; pslldq $5, %%xmm15;testq $1, %%rsi; jz 1f;"

		/* At the start of the upper half, inside it, and across. */
		LOAD(8) "vmovq %%rax, %%xmm0;vinsertf128 $1, %%xmm0, %%ymm8, %%ymm8;"
		LOAD(9) "vmovq %%rax, %%xmm0; vpslldq $7, %%xmm0, %%xmm0;vinsertf128 $1, %%xmm0, %%ymm9, %%ymm9;"
		LOAD(10) "vmovq %%rax, %%xmm0; vpslldq $12, %%xmm0, %%xmm10;vpsrldq $4, %%xmm0, %%xmm0;vinsertf128 $1, %%xmm0, %%ymm10, %%ymm10;vxorps %%xmm0, %%xmm0, %%xmm0;testq $2, %%rsi; jz 1f;"

		/* In the highest quarter, and in a register of AVX-512 only. */
		LOAD(11) "vmovq %%rax, %%xmm0; vpslldq $3, %%xmm0, %%xmm0;vinserti32x4 $3, %%xmm0, %%zmm11, %%zmm11;"
		LOAD(12) "vmovq %%rax, %%xmm0; vpslldq $6, %%xmm0, %%xmm0;vinserti32x4 $2, %%xmm0, %%zmm20, %%zmm20;vpxord %%zmm0, %%zmm0, %%zmm0;"

		"1: xorl %%edi, %%edi; xorl %%esi, %%esi; lock incl (%%rdx);2: movl $34, %%eax; syscall; jmp 2b" /* pause */
		:
		: "D"(masked), "S"(features), "d"(&holding), "c"(MASK)
		: "memory");
	__builtin_unreachable();
}
#endif
/* clang-format on */

static void *second_holder(void *argument)
{
	truth_scrub();
	hold(slots[1]);
	return argument;
}

static void *announcing_thread(void *argument)
{
	while (atomic_load(&holding) < HOLDERS)
		sched_yield();
	truth_ready();
	return argument;
}

static OUT_OF_LINE void start_thread(void *(*run)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, NULL))
		truth_fail("create a thread");
}

int main(void)
{
	truth_open();
	features = find_features();
	populate();
	start_thread(second_holder);
	start_thread(announcing_thread);
	truth_scrub();
	hold(slots[0]);
}
