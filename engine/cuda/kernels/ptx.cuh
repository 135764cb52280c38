// SPDX-License-Identifier: Apache-2.0
// Types, shapes and the PTX instructions that the kernel uses. No header is included anywhere, so
// that NVRTC needs nothing but these files (headers of another CUDA version break such builds).
//
// The host defines: LAYERS DIM FFN HEADS KV_HEADS HEAD_DIM VOCAB GROUP NORM_EPS HAS_BIAS WIDE.
// GROUP is 0 (one weight scale per row) or 32/64/128/192; WIDE is the number of 8-token tiles that a
// block computes at once in prompts of more than 8 tokens. HOST_*_BYTES are the host's own count of
// shared memory, checked here.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define DEVICE static __device__ __forceinline__
#define MEMBER __device__ __forceinline__

constexpr int WARPS = 12;
constexpr int THREADS = WARPS * 32;
constexpr int TILE_TOKENS = 8;    // columns of one MMA
constexpr int TILE_ROWS = 16;     // rows of one MMA
constexpr int STEP = 32;          // K of one MMA
constexpr int TILE_BYTES = 512;   // one packed A operand
constexpr int MAX_TOKENS = 128;   // tokens of one request
constexpr int Q_DIM = HEADS * HEAD_DIM;
constexpr int KV_DIM = KV_HEADS * HEAD_DIM;
constexpr int REPEAT = HEADS / KV_HEADS;

static __host__ __device__ constexpr int max_of(int a, int b) { return a > b ? a : b; }
static __host__ __device__ constexpr int min_of(int a, int b) { return a < b ? a : b; }
static __host__ __device__ constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

// All threads that compute. (The cluster kernel has one warp more, which only moves data.)
DEVICE void block_sync() { asm volatile("bar.sync 0, %0;" ::"n"(THREADS) : "memory"); }

// In the grid kernel read anew at each use: a hoisted threadIdx.x makes the compiler keep the addresses of
// every phase in registers across the loop over instructions, and spill.
DEVICE int thread_index() {
#ifdef CLUSTER
    return threadIdx.x;
#else
    int t;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(t));
    return t;
#endif
}

#define NEG_INF __uint_as_float(0xff800000u)

// ---------------------------------------------------------------- memory

// One 16-byte access that no other thread can see half of (PTX ISA 8.3, `.b128` with `.relaxed`).
DEVICE uint4 load_unit(const uint4* p) {
    u64 lo, hi;
    asm volatile(
        "{\n\t.reg .b128 q;\n\t"
        "ld.relaxed.gpu.global.b128 q, [%2];\n\t"
        "mov.b128 {%0, %1}, q;\n\t}"
        : "=l"(lo), "=l"(hi)
        : "l"(p)
        : "memory");
    return make_uint4((u32)lo, (u32)(lo >> 32), (u32)hi, (u32)(hi >> 32));
}

DEVICE void store_unit(uint4* p, uint4 v) {
    const u64 lo = (u64)v.y << 32 | v.x, hi = (u64)v.w << 32 | v.z;
    asm volatile(
        "{\n\t.reg .b128 q;\n\t"
        "mov.b128 q, {%1, %2};\n\t"
        "st.relaxed.gpu.global.b128 [%0], q;\n\t}" ::"l"(p),
        "l"(lo), "l"(hi)
        : "memory");
}

DEVICE uint4 load_unit_system(const uint4* p) {
    u64 lo, hi;
    asm volatile(
        "{\n\t.reg .b128 q;\n\t"
        "ld.relaxed.sys.global.b128 q, [%2];\n\t"
        "mov.b128 {%0, %1}, q;\n\t}"
        : "=l"(lo), "=l"(hi)
        : "l"(p)
        : "memory");
    return make_uint4((u32)lo, (u32)(lo >> 32), (u32)hi, (u32)(hi >> 32));
}

DEVICE void store_unit_system(uint4* p, uint4 v) {
    const u64 lo = (u64)v.y << 32 | v.x, hi = (u64)v.w << 32 | v.z;
    asm volatile(
        "{\n\t.reg .b128 q;\n\t"
        "mov.b128 q, {%1, %2};\n\t"
        "st.relaxed.sys.global.b128 [%0], q;\n\t}" ::"l"(p),
        "l"(lo), "l"(hi)
        : "memory");
}

DEVICE u32 load_word(const u32* p) {
    u32 v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

DEVICE u32 load_word_acquire(const u32* p) {
    u32 v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

DEVICE void store_flag(u32* p, u32 v) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

DEVICE void add_release(u32* p, u32 v) {
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

DEVICE void fence_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

// Weights are read once per pass: keep them out of L1, let L2 fetch 256 bytes at a time.
DEVICE uint4 load_weights(const u8* p) {
    uint4 v;
    asm volatile(
        "ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(p));
    return v;
}

DEVICE void prefetch_l2(const void* p) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
}

// ---------------------------------------------------------------- time

DEVICE u64 now_ns() {
    u64 t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

DEVICE void sleep_ns(u32 ns) { asm volatile("nanosleep.u32 %0;" ::"r"(ns)); }

// ---------------------------------------------------------------- number formats

DEVICE float half_to_float(u16 h) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
}

DEVICE u16 float_to_half(float f) {
    u16 h;
    // Saturate: a key of 70,000 must stay the largest finite half, not become infinity.
    const float clamped = fminf(fmaxf(f, -65504.0f), 65504.0f);
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(clamped));
    return h;
}

DEVICE float2 half2_to_float2(u32 pair) {
    return make_float2(half_to_float((u16)pair), half_to_float((u16)(pair >> 16)));
}

// Four floats to four e4m3 codes, to nearest even, saturating; v.x in the lowest byte.
DEVICE u32 to_e4m3x4(float4 v) {
    u16 lo, hi;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(lo) : "f"(v.y), "f"(v.x));
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(hi) : "f"(v.w), "f"(v.z));
    return (u32)hi << 16 | lo;
}

DEVICE void mma_f16(float (&d)[4], const u32 (&a)[4], uint2 b) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
}

// Activations in shared memory, and D += A * B for one 16x32 tile of weights and one 32x8 tile of
// activations. `mma.sync m16n8k32 e4m3` is native on sm_89 and sm_120. On sm_90 ptxas would expand it to
// two FP16 instructions and convert both operands for each; there we do so ourselves, with
// activations kept as float16 (an e4m3 value is one exactly) and weights converted once for all tokens.
#if __CUDA_ARCH__ == 900
constexpr int CODE_BYTES = 2;

// Four codes to two pairs of float16. Splitting in PTX lets ptxas name the half in the conversion itself.
DEVICE uint2 halves_of(u32 codes) {
    uint2 r;
    asm("{\n\t.reg .b16 l, h;\n\tmov.b32 {l, h}, %2;\n\t"
        "cvt.rn.f16x2.e4m3x2 %0, l;\n\tcvt.rn.f16x2.e4m3x2 %1, h;\n\t}"
        : "=r"(r.x), "=r"(r.y)
        : "r"(codes));
    return r;
}

// Four codes, as they lie in an operand row.
DEVICE void store_word(u8* row, int unit, u32 codes) {
    *reinterpret_cast<uint2*>(row + 8 * unit) = halves_of(codes);
}

struct Fragment {
    u32 first[4], second[4];  // columns 0 .. 15 and 16 .. 31
};

DEVICE Fragment fragment_of(uint4 w) {
    const uint2 x = halves_of(w.x), y = halves_of(w.y), z = halves_of(w.z), v = halves_of(w.w);
    return {{x.x, y.x, x.y, y.y}, {z.x, v.x, z.y, v.y}};
}

// Two chains of dependent instructions, half as long each; `promote` joins them.
struct Accumulator {
    float even[4], odd[4];

    MEMBER void clear() {
        for (int i = 0; i < 4; ++i) even[i] = odd[i] = 0.0f;
    }
    MEMBER float sum(int i) const { return even[i] + odd[i]; }
    // `b`: this lane's column and its first code of the step
    MEMBER void add(const Fragment& w, const u8* b) {
        mma_f16(even, w.first, *reinterpret_cast<const uint2*>(b));
        mma_f16(odd, w.second, *reinterpret_cast<const uint2*>(b + 32));
    }
};
#else
constexpr int CODE_BYTES = 1;

DEVICE void store_word(u8* row, int unit, u32 codes) {
    *reinterpret_cast<u32*>(row + 4 * unit) = codes;
}

typedef uint4 Fragment;
DEVICE Fragment fragment_of(uint4 w) { return w; }

struct Accumulator {
    float d[4];

    MEMBER void clear() {
        for (int i = 0; i < 4; ++i) d[i] = 0.0f;
    }
    MEMBER float sum(int i) const { return d[i]; }
    MEMBER void add(const Fragment& a, const u8* b) {
        const u32 b0 = *reinterpret_cast<const u32*>(b), b1 = *reinterpret_cast<const u32*>(b + 16);
        asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
    }
};
#endif

// ---------------------------------------------------------------- warp

DEVICE float warp_max(float v) {
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, offset));
    return v;
}

// A butterfly: every lane gets the same bits, whatever the order of arrival.
DEVICE float warp_sum(float v) {
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) v += __shfl_xor_sync(0xffffffffu, v, offset);
    return v;
}

DEVICE u64 warp_max(u64 v) {
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) {
        const u64 other = __shfl_xor_sync(0xffffffffu, v, offset);
        v = other > v ? other : v;
    }
    return v;
}
