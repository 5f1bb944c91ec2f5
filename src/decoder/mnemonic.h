// The names of the instructions that have to be told apart by name: those that an interpreter
// carries out by hand and those that read or change more than their operands. All others are
// `other`: what they do follows from their operands, and `mnemonic_name` names them.
//
// The second column is the decoder library's name. There, different instructions share two names;
// here movsd and cmpsd are the string instructions (those of SSE2 are `other`), and jmp, call and
// ret are the near ones.
#pragma once

#include <cstdint>

namespace shadowprof::decoder {

// clang-format off
#define SHADOWPROF_MNEMONICS(X) \
    /* Moves and arithmetic */ \
    X(mov, MOV) X(movsx, MOVSX) X(movsxd, MOVSXD) X(movzx, MOVZX) X(movbe, MOVBE) \
    X(movnti, MOVNTI) X(lea, LEA) X(xchg, XCHG) X(bswap, BSWAP) X(add, ADD) X(adc, ADC) \
    X(sub, SUB) X(sbb, SBB) X(cmp, CMP) X(and_, AND) X(or_, OR) X(xor_, XOR) X(not_, NOT) \
    X(neg, NEG) X(inc, INC) X(dec, DEC) X(test, TEST) X(mul, MUL) X(imul, IMUL) X(div, DIV) \
    X(idiv, IDIV) X(xadd, XADD) X(cmpxchg, CMPXCHG) X(cmpxchg8b, CMPXCHG8B) \
    X(cmpxchg16b, CMPXCHG16B) X(adcx, ADCX) X(adox, ADOX) X(cbw, CBW) X(cwde, CWDE) X(cdqe, CDQE) \
    X(cwd, CWD) X(cdq, CDQ) X(cqo, CQO) X(crc32, CRC32) \
    /* Shifts and bits */ \
    X(shl, SHL) X(shr, SHR) X(sar, SAR) X(rol, ROL) X(ror, ROR) X(rcl, RCL) X(rcr, RCR) \
    X(shld, SHLD) X(shrd, SHRD) X(bt, BT) X(bts, BTS) X(btr, BTR) X(btc, BTC) X(bsf, BSF) \
    X(bsr, BSR) X(tzcnt, TZCNT) X(lzcnt, LZCNT) X(popcnt, POPCNT) X(andn, ANDN) X(bextr, BEXTR) \
    X(blsi, BLSI) X(blsmsk, BLSMSK) X(blsr, BLSR) X(bzhi, BZHI) X(mulx, MULX) X(pdep, PDEP) \
    X(pext, PEXT) X(rorx, RORX) X(sarx, SARX) X(shlx, SHLX) X(shrx, SHRX) \
    /* Conditions */ \
    X(seto, SETO) X(setno, SETNO) X(setb, SETB) X(setae, SETNB) X(sete, SETZ) X(setne, SETNZ) \
    X(setbe, SETBE) X(seta, SETNBE) X(sets, SETS) X(setns, SETNS) X(setp, SETP) X(setnp, SETNP) \
    X(setl, SETL) X(setge, SETNL) X(setle, SETLE) X(setg, SETNLE) X(cmovo, CMOVO) \
    X(cmovno, CMOVNO) X(cmovb, CMOVB) X(cmovae, CMOVNB) X(cmove, CMOVZ) X(cmovne, CMOVNZ) \
    X(cmovbe, CMOVBE) X(cmova, CMOVNBE) X(cmovs, CMOVS) X(cmovns, CMOVNS) X(cmovp, CMOVP) \
    X(cmovnp, CMOVNP) X(cmovl, CMOVL) X(cmovge, CMOVNL) X(cmovle, CMOVLE) X(cmovg, CMOVNLE) \
    /* Control flow */ \
    X(jo, JO) X(jno, JNO) X(jb, JB) X(jae, JNB) X(je, JZ) X(jne, JNZ) X(jbe, JBE) X(ja, JNBE) \
    X(js, JS) X(jns, JNS) X(jp, JP) X(jnp, JNP) X(jl, JL) X(jge, JNL) X(jle, JLE) X(jg, JNLE) \
    X(jmp, JMP) X(call, CALL) X(ret, RET) X(loop, LOOP) X(loope, LOOPE) X(loopne, LOOPNE) \
    X(jecxz, JECXZ) X(jrcxz, JRCXZ) X(syscall, SYSCALL) X(sysenter, SYSENTER) X(sysexit, SYSEXIT) \
    X(sysret, SYSRET) X(int_, INT) X(int1, INT1) X(int3, INT3) X(ud0, UD0) X(ud1, UD1) \
    X(ud2, UD2) X(hlt, HLT) X(iret, IRET) X(iretd, IRETD) X(iretq, IRETQ) X(uiret, UIRET) \
    /* Stack and flags */ \
    X(push, PUSH) X(pop, POP) X(pushf, PUSHF) X(pushfq, PUSHFQ) X(popf, POPF) X(popfq, POPFQ) \
    X(enter, ENTER) X(leave, LEAVE) X(lahf, LAHF) X(sahf, SAHF) X(clc, CLC) X(stc, STC) \
    X(cmc, CMC) X(cld, CLD) X(std, STD) \
    /* Strings */ \
    X(movsb, MOVSB) X(movsw, MOVSW) X(movsd, MOVSD) X(movsq, MOVSQ) X(stosb, STOSB) \
    X(stosw, STOSW) X(stosd, STOSD) X(stosq, STOSQ) X(lodsb, LODSB) X(lodsw, LODSW) \
    X(lodsd, LODSD) X(lodsq, LODSQ) X(scasb, SCASB) X(scasw, SCASW) X(scasd, SCASD) \
    X(scasq, SCASQ) X(cmpsb, CMPSB) X(cmpsw, CMPSW) X(cmpsd, CMPSD) X(cmpsq, CMPSQ) X(insb, INSB) \
    X(insw, INSW) X(insd, INSD) X(outsb, OUTSB) X(outsw, OUTSW) X(outsd, OUTSD) X(xlat, XLAT) \
    /* Hints and fences */ \
    X(nop, NOP) X(pause, PAUSE) X(endbr32, ENDBR32) X(endbr64, ENDBR64) X(lfence, LFENCE) \
    X(mfence, MFENCE) X(sfence, SFENCE) X(serialize, SERIALIZE) X(prefetch, PREFETCH) \
    X(prefetchnta, PREFETCHNTA) X(prefetcht0, PREFETCHT0) X(prefetcht1, PREFETCHT1) \
    X(prefetcht2, PREFETCHT2) X(prefetchw, PREFETCHW) X(prefetchwt1, PREFETCHWT1) \
    X(cldemote, CLDEMOTE) X(clflush, CLFLUSH) X(clflushopt, CLFLUSHOPT) X(clwb, CLWB) \
    X(clzero, CLZERO) \
    /* The machine and the system */ \
    X(cpuid, CPUID) X(rdtsc, RDTSC) X(rdtscp, RDTSCP) X(rdpmc, RDPMC) X(rdpid, RDPID) \
    X(rdpru, RDPRU) X(rdrand, RDRAND) X(rdseed, RDSEED) X(xgetbv, XGETBV) X(xsetbv, XSETBV) \
    X(rdfsbase, RDFSBASE) X(rdgsbase, RDGSBASE) X(wrfsbase, WRFSBASE) X(wrgsbase, WRGSBASE) \
    X(rdpkru, RDPKRU) X(wrpkru, WRPKRU) X(ldmxcsr, LDMXCSR) X(stmxcsr, STMXCSR) \
    X(vldmxcsr, VLDMXCSR) X(vstmxcsr, VSTMXCSR) X(xbegin, XBEGIN) X(xend, XEND) X(xabort, XABORT) \
    X(xtest, XTEST) X(xsusldtrk, XSUSLDTRK) X(xresldtrk, XRESLDTRK) X(monitor, MONITOR) \
    X(mwait, MWAIT) X(monitorx, MONITORX) X(mwaitx, MWAITX) X(umonitor, UMONITOR) \
    X(umwait, UMWAIT) X(tpause, TPAUSE) X(in, IN) X(out, OUT) X(cli, CLI) X(sti, STI) \
    X(clui, CLUI) X(stui, STUI) X(testui, TESTUI) X(senduipi, SENDUIPI) X(ptwrite, PTWRITE) \
    X(incsspd, INCSSPD) X(incsspq, INCSSPQ) X(rdsspd, RDSSPD) X(rdsspq, RDSSPQ) \
    X(saveprevssp, SAVEPREVSSP) X(rstorssp, RSTORSSP) X(wrssd, WRSSD) X(wrssq, WRSSQ) \
    X(lss, LSS) X(lfs, LFS) X(lgs, LGS) X(sgdt, SGDT) X(sidt, SIDT) X(sldt, SLDT) X(str, STR) X(smsw, SMSW) X(lar, LAR) X(lsl, LSL) \
    X(verr, VERR) X(verw, VERW) \
    /* Whole register files to and from memory */ \
    X(fxsave, FXSAVE) X(fxsave64, FXSAVE64) X(fxrstor, FXRSTOR) X(fxrstor64, FXRSTOR64) \
    X(xsave, XSAVE) X(xsave64, XSAVE64) X(xsavec, XSAVEC) X(xsavec64, XSAVEC64) \
    X(xsaveopt, XSAVEOPT) X(xsaveopt64, XSAVEOPT64) X(xsaves, XSAVES) X(xsaves64, XSAVES64) \
    X(xrstor, XRSTOR) X(xrstor64, XRSTOR64) X(xrstors, XRSTORS) X(xrstors64, XRSTORS64) \
    X(vzeroupper, VZEROUPPER) X(vzeroall, VZEROALL) \
    /* Memory that no operand shows, or that is not one plain access */ \
    X(maskmovq, MASKMOVQ) X(maskmovdqu, MASKMOVDQU) X(vmaskmovdqu, VMASKMOVDQU) \
    X(vmaskmovps, VMASKMOVPS) X(vmaskmovpd, VMASKMOVPD) X(vpmaskmovd, VPMASKMOVD) \
    X(vpmaskmovq, VPMASKMOVQ) X(tileloadd, TILELOADD) X(tileloaddt1, TILELOADDT1) \
    X(tilestored, TILESTORED) \
    X(movdiri, MOVDIRI) X(movdir64b, MOVDIR64B) X(enqcmd, ENQCMD) X(enqcmds, ENQCMDS)
// clang-format on

enum class Mnemonic : std::uint16_t {
    other,
    jmp_far,
    call_far,
    ret_far,
#define SHADOWPROF_ENUMERATOR(name, library_name) name,
    SHADOWPROF_MNEMONICS(SHADOWPROF_ENUMERATOR)
#undef SHADOWPROF_ENUMERATOR
};

// movs, stos, lods, scas, cmps, ins and outs: those that a repeat prefix repeats.
constexpr bool is_string(Mnemonic m) {
    return m >= Mnemonic::movsb && m <= Mnemonic::outsd;
}

}  // namespace shadowprof::decoder
