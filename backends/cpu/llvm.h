/* LLVM, loaded when the first of its functions is called: most commands need none of it, and to
 * load it takes several times as long as all else that a process does before it begins. */
#ifndef ISAMAP_BACKENDS_CPU_LLVM_H
#define ISAMAP_BACKENDS_CPU_LLVM_H

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Linker.h>
#include <llvm-c/Object.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

/* From here on each function's name is its entry in the table that llvm() returns. Made of the
 * calls in this folder (cmake/llvm_calls.cmake). */
#include "llvm_calls.h"

const struct llvm *llvm(void);
void llvm_native(void); /* this computer's target can be asked for */

#endif
