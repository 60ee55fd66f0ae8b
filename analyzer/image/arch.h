/*
 * The contract of an architecture: what is to be known of a processor, and of how Linux and glibc
 * use it, to read a dump of it on a machine of any kind.
 *
 * Each file of architectures/ defines one struct arch; the build collects them, and image->arch is
 * that of the dump. All slots are required unless they say otherwise. Only such a file names
 * registers, their numbers or those of system calls; everything else asks for a role, such as the
 * stack pointer. Words are little-endian, and of 8 bytes, or of 4 where the class is ELFCLASS32:
 * all over the analyzer they are uint64_t, read by image_read_word() and the like.
 *
 * A register is known by its place in the table, which has them in the order of NT_PRSTATUS:
 *
 *	NT_PRSTATUS  | ... signal ... thread ... | 0 | 1 | 2 | ... | register_count - 1 | ... |
 *	                                         registers
 */
#pragma once

#include "analyzer/base/macros.h"

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	PAGE = 4096, /* bytes: pages of every architecture are as large, or a multiple */
	MOST_REGISTERS = 40,
	MOST_UNWOUND = 33,     /* DWARF numbers of registers are smaller, but for return_column */
	NOT_A_REGISTER = 0xff, /* in place of a register, or of its DWARF number */
	VECTOR_SIZE = 64,      /* bytes of a vector register, at most */
};

/* The start of the page with address, and the first page that starts at or above it. */
static inline uint64_t page_below(uint64_t address)
{
	return address & ~(uint64_t)(PAGE - 1);
}

static inline uint64_t page_above(uint64_t address)
{
	return page_below(address + PAGE - 1);
}

struct arch_register {
	const char *name;
	uint8_t unwound; /* its DWARF number, or NOT_A_REGISTER */
	bool preserved;	 /* a function leaves it as its caller had it */
};

/* Registers in a table: with a DWARF number, also preserved by functions, and without. */
#define REGISTER(name, number) \
	{                      \
#name, number  \
	}
#define PRESERVED(name, number)     \
	{                           \
#name, number, true \
	}
#define UNNUMBERED(name)              \
	{                             \
#name, NOT_A_REGISTER \
	}

/* The system calls that the analysis distinguishes. */
enum system_call {
	SYSTEM_CALL_NONE,    /* it runs */
	SYSTEM_CALL_OTHER,   /* none of the following */
	SYSTEM_CALL_EXIT,    /* exit(), exit_group() */
	SYSTEM_CALL_MEMORY,  /* brk(), mmap(), munmap(), mremap(), mprotect(), madvise() */
	SYSTEM_CALL_KILL,    /* kill(), tgkill() */
	SYSTEM_CALL_SUSPEND, /* rt_sigsuspend() */
	/* They fill memory: the second argument says where, the third how much. */
	SYSTEM_CALL_READ,    /* bytes: read(), pread(), recvfrom(), getdents() */
	SYSTEM_CALL_EVENTS,  /* struct epoll_event: epoll_wait(), epoll_pwait() */
	SYSTEM_CALL_READV,   /* struct iovec, each of which says it: readv(), preadv() */
	SYSTEM_CALL_RECVMSG, /* a struct msghdr, with struct iovec: recvmsg() */
};

struct arch_call {
	uint32_t number;
	enum system_call call;
};

/* A system call in a table, whose name is for readers. */
#define CALL(name, number, kind)           \
	{                                  \
		number, SYSTEM_CALL_##kind \
	}

struct arch {
	const char *name;   /* for messages: "x86-64" */
	uint16_t machine;   /* e_machine of the ELF header */
	uint8_t class;	    /* ELFCLASS... of it */
	const char *loader; /* the last part of its path */

	/* NT_PRSTATUS: its least size, and offsets in it. */
	struct {
		uint16_t size, signal, thread, registers;
	} status;
	const struct arch_register *registers;
	uint8_t register_count;
	/* The registers with these roles. */
	uint8_t stack_pointer, instruction;
	/*
	 * Its number, negative outside of one; or, if calls_by_code, the number of what the thread
	 * calls only if it stands at the instruction that does so, where the kernel puts those that
	 * are to call again, or behind it.
	 */
	uint8_t system_call;
	bool calls_by_code;
	uint8_t thread_pointer; /* or NOT_A_REGISTER: a note of its own has it */
	/*
	 * Optional: the register that points near the data of the module that runs, perhaps behind
	 * it, and is saved in frames; 0: none.
	 */
	uint8_t module_pointer;
	/*
	 * Optional: how far above what is the thread pointer here the register points, as
	 * instructions reach below it, too.
	 */
	uint16_t thread_pointer_bias;
	uint32_t thread_pointer_note;
	/* Optional: what of that note it is, of a thread with these registers; 0: not known. */
	uint64_t (*find_thread_pointer)(const uint64_t *registers, const uint8_t *note,
					size_t size);

	/* The display of registers, as sentences of report.h; NULL at the end. */
	const char *shown[4];

	/*
	 * DWARF numbers are below unwound_count; the caller's place is what unwound_return was: a
	 * register that calls write, if return_is_register, else the instruction pointer.
	 */
	uint8_t unwound_count, unwound_return;
	bool return_is_register;
	uint8_t return_column; /* the DWARF number of unwound_return, if it is another; optional */
	bool signs_returns;    /* upper bits of return addresses may be a signature */

	uint16_t red_zone;	    /* bytes below the stack pointer that a function may use */
	uint8_t address_bits;	    /* of programs' addresses */
	uint64_t tag_bits;	    /* of a pointer, that the processor ignores; optional */
	uint32_t signal_stack_size; /* SIGSTKSZ */

	uint8_t event_size; /* of struct epoll_event */
	/* The calls that anybody asks for, and the instructions that make them, one at least. */
	const struct arch_call *calls;
	size_t call_count;
	uint8_t call_codes[2][4];
	uint8_t call_code_count, call_code_size;

	/*
	 * glibc's struct pthread, which is the thread control block or stands next to it: how far
	 * above its start the thread pointer is, by version; then offsets in it, of which 0 is
	 * none.
	 */
	struct {
		uint16_t pointer; /* 0: TLS is below it (variant II), else above (variant I) */
		uint16_t most;	  /* pointer in any version */
		uint16_t self;	  /* its own address once more, which the first word is, too */
		int16_t dtv;	  /* from the thread pointer on: where the dtv's address is */
		/*
		 * Distance from the thread pointer to the variables of the first module, above it
		 * (variant I), before alignment; the words between the pointer and the dtv's
		 * address are 0.
		 */
		uint16_t variables;
		uint16_t list, tid, cancel;
		/*
		 * Offset of robust_head.futex_offset, whose value is -20. If it is not there, it
		 * and the following fields are 4 bytes further on, because glibc has an unused
		 * number behind tid. 0: alignment hides the difference.
		 */
		uint16_t robust;
	} pthread;

	/* The note with all vector registers, besides NT_FPREGSET. */
	uint32_t vectors_note;
	/* Bytes of a note that has all of these which are no register's, by address. Optional. */
	struct {
		uint16_t start, end;
	} vectors_head[2];
	/*
	 * The note that says which bits of a pointer may be a signature: two words, of data and of
	 * code; and whether the instruction takes a signed pointer to data. Both are optional.
	 */
	uint32_t signature_note;
	bool (*takes_signed_data)(uint32_t instruction);
	/*
	 * A vector register that the note has in pieces, put together, of which so many bytes are
	 * known; 0: there is none with this number. Optional.
	 */
	size_t (*read_vector)(const uint8_t *note, size_t size, size_t number,
			      uint8_t ret[VECTOR_SIZE]);

	/*
	 * The calling convention, in DWARF numbers: where parameters and results are, and what
	 * points to the caller's frame pointer, at this distance below the canonical frame address.
	 */
	uint8_t parameters[6], result, frame_pointer, frame_pointer_depth;

	int disassembler, disassembler_mode; /* capstone's cs_arch and cs_mode */
	/* The DWARF number of a register of capstone's, or of what it is part of. Optional. */
	uint8_t (*disassembled)(unsigned int number);
};

extern const struct arch *const architectures[]; /* NULL at the end */

/* Bytes of a word, and so of a register. */
static inline unsigned int arch_word_size(const struct arch *arch)
{
	return arch->class == ELFCLASS32 ? 4 : 8;
}

/* The word of that size at bytes. */
static inline uint64_t load_word(const uint8_t *bytes, unsigned int word_size)
{
	uint64_t word;
	uint32_t narrow;

	if (word_size == sizeof(narrow)) {
		memcpy(&narrow, bytes, sizeof(narrow));
		return narrow;
	}
	memcpy(&word, bytes, sizeof(word));
	return word;
}

static inline enum system_call arch_system_call(const struct arch *arch, uint64_t number)
{
	/* Its sign is that of a word. */
	if (number >> (8 * arch_word_size(arch) - 1) & 1)
		return SYSTEM_CALL_NONE;
	for (size_t i = 0; i < arch->call_count; i++)
		if (arch->calls[i].number == number)
			return arch->calls[i].call;
	return SYSTEM_CALL_OTHER;
}

/*
 * Registers, which are in the order of the table, by their DWARF numbers; those without stay as
 * they are. Returns a bit for each that has one.
 */
static inline uint64_t arch_unwound(const struct arch *arch, const uint64_t *registers,
				    uint64_t ret[static MOST_UNWOUND])
{
	uint64_t known = 0;

	for (size_t i = 0; i < arch->register_count; i++) {
		uint8_t number = arch->registers[i].unwound;

		if (number == NOT_A_REGISTER)
			continue;
		ret[number] = registers[i];
		known |= UINT64_C(1) << number;
	}
	return known;
}

/* The DWARF number of the register with this number. */
static inline unsigned int arch_dwarf_number(const struct arch *arch, unsigned int number)
{
	return arch->return_column && number == arch->unwound_return ? arch->return_column : number;
}

static inline uint8_t arch_unwound_stack_pointer(const struct arch *arch)
{
	return arch->registers[arch->stack_pointer].unwound;
}
