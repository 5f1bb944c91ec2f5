# Instructions that compilers rarely write and engines easily get wrong, over and over: their memory is
# not quite where the operand says, they use the stack pointer in unusual ways, they are implicit about
# what they access, or they are large. Runs for ever.

.intel_syntax noprefix
.section .bss
    .balign 64
area:   .skip 4096
save:   .skip 4096

.section .rodata
    .balign 64
mask:   .byte 0x80, 0, 0x80, 0x80, 0, 0, 0x80, 0, 0, 0x80, 0x80, 0, 0x80, 0, 0, 0x80
ones:   .quad -1, 0, -1, -1
indices: .long 0, 4, 60, 8, 200, 12, 16, 28
half:   .float 0.5, 1.5, 2.5, 3.5
control: .short 0x27f

.section .data.rel.ro, "aw"
    .balign 8
table:  .quad target_2, target_3

.text
.globl main
.type main, @function
main:
    push rbp
    mov rbp, rsp
    and rsp, -64
    sub rsp, 256
    lea r15, area[rip + 2048]
    lea r14, save[rip]
    xor r12d, r12d

round:
    inc r12
    mov rax, r12
    imul rax, rax, 0x1234567

# The stack pointer
    push rax
    push r12
    pop qword ptr [rsp + 8]
    push qword ptr [rsp]
    pop word ptr [r15 + 6]
    add rsp, 6
    push rsp
    pop rsp
    push rsp
    pop qword ptr [r15 - 8]
    pop rbx
    push r12w
    push -3
    pop rcx
    pop dx
    mov [rsp + 16], rsp
    add [rsp + 16], rsp
    xchg rsp, rsi
    xchg rsp, rsi
    lea rdi, [rsp + rax]
    mov r8, rsp
    enter 32, 0
    mov [rbp - 16], rsp
    leave
    enter 16, 2
    leave
    mov rsp, r8
    pushfq
    pop rcx
    stc
    pushfw
    pop dx
    push rcx
    popfq
    # As Java asks for the flag of alignment checks: nothing here is not aligned.
    mov rdx, rcx
    xor rdx, 0x40000
    push rdx
    popfq
    pushfq
    pop r8
    cmp r8, rcx
    jne 1f
    xor rdx, rdx
1:  push rcx
    popfq
    pushfq
    pop rcx

# Bits far from where the operand points
    movsx rdx, r12b
    bts qword ptr [r15], rdx
    btr word ptr [r15 + 1], r12w
    btc dword ptr [r15 + rdx], edx
    bt qword ptr [r15], rdx
    setc bl
    lock bts qword ptr [r15], r12
    and r12, 0xfff
    bt dword ptr [r15], 77

# Implicit operands
    mov rbx, r15
    mov eax, r12d
    xlatb
    mov rdi, r15
    movdqu xmm0, [r15 - 64]
    movdqu xmm1, mask[rip]
    maskmovdqu xmm0, xmm1
    mov rdx, r12
    mov rax, [r15]
    mul rdx
    cqo
    xor edx, edx
    mov ecx, 7
    div rcx
    cbw
    cwde
    cmpxchg [r15 + 8], r12
    mov rax, [r15 + 16]
    mov rdx, [r15 + 24]
    lock cmpxchg16b [r15 + 16]
    cmpxchg8b [r15 + 32]
    xadd [r15 + 40], rax
    lock xadd [r15 + 44], al
    xchg ah, [rbx + 3]
    mov bh, ah
    add ch, dl
    rcl byte ptr [r15 + 5], cl
    shld [r15 + 8], r12, cl
    movbe ax, [r15 + 9]
    movbe [r15 + 50], eax
    crc32 rax, qword ptr [r15 + 11]
    mov eax, fs:[0]
    xor ecx, ecx
    mov rdi, fs:[rcx + 16]
    mov eax, r12d
    lea r13d, [eax + ecx * 4 + 5]
    lea bx, [rax + rcx]
    movsx r9, byte ptr [r15 + 1]
    lahf
    sahf
    stosb
    nop word ptr [rax + rax * 8]
    prefetcht0 [r15 + rax]

# Strings, forwards and backwards, none at all, and ended by what they find
    lea rdi, [r15 + 100]
    lea rsi, [r15 - 100]
    mov ecx, r12d
    and ecx, 63
    rep movsb
    mov ecx, 9
    rep movsq
    mov ecx, 5
    std
    rep stosw
    lodsd
    cmpsb
    cld
    xor ecx, ecx
    rep stosq
    mov ecx, 100
    repne scasb
    lea rdi, [r15 + 100]
    lea rsi, [r15 - 100]
    mov ecx, 60
    repe cmpsb
    lodsw
    mov ecx, 3
    rep lodsb

# Branches
    mov ecx, 3
1:  add rax, rcx
    loop 1b
    mov ecx, 4
2:  test ecx, 2
    loopne 2b
    jrcxz 3f
    xor ecx, ecx
3:  jecxz 4f
    nop
4:  mov eax, r12d
    and eax, 1
    lea rdx, table[rip]
    lea rcx, target_1[rip]
    mov [rsp + 8], rcx
    call [rsp + 8]
    jmp [rdx + rax * 8]
target_2:
    lea rcx, target_3[rip]
    jmp rcx
target_1:
    push 1
    push 2
    call taking_two
    ret
target_3:
    call target_1

# Vectors: partial writes, masks, gathers, and what leaves the upper halves alone
    cvtsi2sd xmm2, r12
    sqrtsd xmm3, xmm2
    movss xmm4, [r15 + 100]
    movhps xmm2, [r15 + 8]
    movlpd [r15 + 56], xmm3
    pinsrw xmm3, eax, 3
    pextrb [r15 + 77], xmm3, 5
    movd eax, xmm3
    ucomisd xmm2, xmm3
    movmskps edx, xmm2
    ldmxcsr [r14 + 4000]
    stmxcsr [r14 + 3000]
    pcmpistri xmm2, [r15 + 16], 0x0c
    mov eax, 1
    cpuid
    test dword ptr has_avx512[rip], 1
    jz 5f
    vmovups ymm5, indices[rip]
    vmovups ymm6, ones[rip]
    vpgatherdd ymm7, [r15 + ymm5], ymm6
    vmovdqu ymm6, ones[rip]
    vmaskmovpd ymm8, ymm6, [r15 + 32]
    vmaskmovpd [r15 + 64], ymm6, ymm7
    mov eax, 0xa5
    kmovd k1, eax
    kmovq k2, [r15]
    kaddd k3, k1, k2
    vpscatterdd [r15 + ymm5]{k1}, ymm7
    vmovdqu64 zmm17{k3}{z}, [r15 + 7]
    vaddps zmm18{k2}, zmm17, half[rip]{1to16}
    vmovdqu8 [r15 + 300]{k2}, zmm18
    vpcompressd [r15 + 500]{k3}, zmm17
    vpexpandd zmm19{k3}{z}, [r15 + 501]
    vpcmpeqb k4{k2}, zmm17, [r15]
    kortestq k4, k3
    vcvttss2si rax, [r15 + 4]
    vpternlogq zmm18, zmm19, zmm17, 0x96
    vmovss xmm20, [r15 + 4]
    vextracti32x4 [r15 + 600], zmm19, 2
    vzeroupper
5:
    mov eax, 0xe7
    xor edx, edx
    test dword ptr has_avx512[rip], 1
    jz 6f
    xsavec [r14]
    pxor xmm2, xmm2
    xrstor [r14]
6:  fxsave [r14 + 3072]

# x87
    fld1
    fldpi
    fadd st, st(1)
    fild qword ptr [r15]
    fmulp
    fst dword ptr [r15 + 20]
    fstp tbyte ptr [r15 + 30]
    fbstp [r15 + 700]
    fldcw control[rip]
    fnstsw ax
    fnstcw [r15 + 28]
    finit
    emms
    movq mm1, [r15]
    paddb mm1, [r15 + 8]
    movq [r15 + 720], mm1
    emms
    jmp round

taking_two:
    mov r10, [rsp + 8]
    add r10, [rsp + 16]
    ret 16

.section .data
has_avx512: .long 0

.section .init_array, "aw"
    .quad look_at_processor
.text
# AVX-512 with byte and word elements implies everything else that is used.
look_at_processor:
    push rbx
    mov dword ptr save[rip + 4000], 0x1f80
    mov eax, 7
    xor ecx, ecx
    cpuid
    shr ebx, 30
    and ebx, 1
    mov has_avx512[rip], ebx
    pop rbx
    ret
.section .note.GNU-stack, "", @progbits
