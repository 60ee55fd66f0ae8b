/*
 * In place of the parts of Capstone for machines whose code nobody asks for, in a static heapcore:
 * they would be a fifth of it. Capstone refers to these functions, and calls those of a machine
 * only when it is opened for it.
 */
#include <stdlib.h>

/* The prototypes are Capstone's; here only the names count. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define NEVER_CALLED(name) \
	void name(void);   \
	void name(void)    \
	{                  \
		abort();   \
	}
#define WITHOUT(machine)                    \
	NEVER_CALLED(machine##_global_init) \
	NEVER_CALLED(machine##_option)

WITHOUT(ARM)
WITHOUT(BPF)
WITHOUT(EVM)
WITHOUT(M680X)
WITHOUT(M68K)
WITHOUT(MOS65XX)
WITHOUT(Mips)
WITHOUT(SH)
WITHOUT(Sparc)
WITHOUT(SystemZ)
WITHOUT(TMS320C64x)
WITHOUT(TRICORE)
WITHOUT(WASM)
WITHOUT(XCore)

/* The other way to write what is never written. */
NEVER_CALLED(X86_ATT_printInst)
