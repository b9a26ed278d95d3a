/* LLVM, loaded when code is made for the first time: most commands need none of it, and to load it
 * takes several times as long as all else that a process does before it begins. */
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

/* Loads it, once in a process, with its target for this computer's processor: to be called before
 * any of its functions. What is missing, in the words of the dynamic linker, or NULL. */
const char *llvm_missing(void);
const struct llvm *llvm(void);

#endif
