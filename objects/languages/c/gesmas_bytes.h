// The bytes of gesmas: the way to the host, memory, and what values and keys are encoded as.
//
// docs/abi.md is the page behind it. A class includes gesmas.h, which includes this.
// Invariants: a reader never reads past its bytes, and keeps the first thing that does not decode
// instead of guessing at it. Nothing is ever freed, since each call of a method runs in a fresh
// instance; what was given out stays where it is until the call ends.
// Not here: a C library, and types of 128 bits (an array of 16 bytes has the same encoding).

#ifndef GESMAS_BYTES_H
#define GESMAS_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// ---- the way to the host ----

__attribute__((import_module("gesmas1"), import_name("call")))
uint32_t gesmas_host_call(
    uint32_t op, const void *in, uint32_t in_length, void *out, uint32_t out_capacity);
__attribute__((import_module("gesmas1"), import_name("fetch")))
void gesmas_host_fetch(void *out, uint32_t length);

// Bytes that belong to nobody.
typedef struct { const uint8_t *at; uint32_t length; } gesmas_bytes;

// A literal text as bytes, without the zero at its end.
#define GESMAS_TEXT(text) { (const uint8_t *)(text), sizeof(text) - 1 }

enum {
    GESMAS_OP_GET = 1, GESMAS_OP_SET, GESMAS_OP_REMOVE, GESMAS_OP_SCAN,
    GESMAS_OP_PUSH_BACK, GESMAS_OP_PUSH_FRONT, GESMAS_OP_POP_BACK, GESMAS_OP_POP_FRONT,
    GESMAS_OP_DEQUE_GET, GESMAS_OP_LENGTH,
    GESMAS_OP_MAP_INSERT, GESMAS_OP_MAP_GET, GESMAS_OP_MAP_REMOVE,
    GESMAS_OP_P = 20, GESMAS_OP_V, GESMAS_OP_RELEASE, GESMAS_OP_SET_COUNT, GESMAS_OP_COUNT,
    GESMAS_OP_WAITERS,
    GESMAS_OP_NOW = 30, GESMAS_OP_RANDOM, GESMAS_OP_SESSION, GESMAS_OP_PRINCIPAL, GESMAS_OP_OBJECT,
    GESMAS_OP_TOKEN, GESMAS_OP_LOG,
    GESMAS_OP_WATCH_SESSION = 40, GESMAS_OP_AFTER, GESMAS_OP_CANCEL_ALARM, GESMAS_OP_NOTIFY,
    GESMAS_OP_RETURN = 50, GESMAS_OP_ABORT, GESMAS_OP_CONTINUE, GESMAS_OP_PANIC,
    GESMAS_OP_ARGUMENTS_MALFORMED
};

static inline void gesmas_copy(uint8_t *to, const uint8_t *from, uint32_t length) {
    __builtin_memcpy(to, from, length);
}

// Ends the call with a last host call, which undoes its segment unless it is a Continue.
_Noreturn static inline void gesmas_end_with(uint32_t op, gesmas_bytes request) {
    gesmas_host_call(op, request.at, request.length, NULL, 0);
    __builtin_trap();
}

#define gesmas_panic(text) gesmas_end_with(GESMAS_OP_PANIC, (gesmas_bytes)GESMAS_TEXT(text))

// ---- memory ----

extern uint8_t __heap_base;
// Weak, so that all files of a class share the one.
__attribute__((weak)) uint8_t *gesmas_heap = &__heap_base;

// Makes sure that so many bytes are free at the top of the heap, and leaves them free.
static inline uint8_t *gesmas_reserve(uint32_t length) {
    uint64_t end = (uint64_t)(uintptr_t)gesmas_heap + length;
    uint64_t have = (uint64_t)__builtin_wasm_memory_size(0) << 16;
    if (end > have && __builtin_wasm_memory_grow(0, (end - have + 0xffff) >> 16) == (size_t)-1)
        gesmas_panic("it is out of memory");
    return gesmas_heap;
}

static inline uint8_t *gesmas_allocate(uint32_t length) {
    uint8_t *at = gesmas_reserve(length);
    gesmas_heap = at + length;
    return at;
}

// ---- encoding ----

// Encoded parts in a row. Begins as { 0 }.
typedef struct { uint8_t *at; uint32_t length, capacity; } gesmas_writer;

static inline void gesmas_put(gesmas_writer *out, const void *bytes, uint32_t length) {
    if (out->capacity - out->length < length) {
        uint32_t capacity = 2 * (out->length + length) + 48;
        uint8_t *at = gesmas_allocate(capacity);
        gesmas_copy(at, out->at, out->length);
        out->at = at;
        out->capacity = capacity;
    }
    gesmas_copy(out->at + out->length, bytes, length);
    out->length += length;
}

// Numbers are little-endian here as they are in WebAssembly. Signed ones have the bytes of the
// unsigned ones that they are cast to.
static inline void gesmas_put_u8(gesmas_writer *out, uint8_t number) {
    gesmas_put(out, &number, 1);
}
static inline void gesmas_put_u16(gesmas_writer *out, uint16_t number) {
    gesmas_put(out, &number, 2);
}
static inline void gesmas_put_u32(gesmas_writer *out, uint32_t number) {
    gesmas_put(out, &number, 4);
}
static inline void gesmas_put_u64(gesmas_writer *out, uint64_t number) {
    gesmas_put(out, &number, 8);
}
static inline void gesmas_put_bool(gesmas_writer *out, bool flag) { gesmas_put_u8(out, flag); }

// Bytes that take the rest.
static inline void gesmas_put_rest(gesmas_writer *out, gesmas_bytes bytes) {
    gesmas_put(out, bytes.at, bytes.length);
}

// Bytes or a text, led by their length.
static inline void gesmas_put_bytes(gesmas_writer *out, gesmas_bytes bytes) {
    gesmas_put_u32(out, bytes.length);
    gesmas_put_rest(out, bytes);
}

static inline gesmas_bytes gesmas_written(const gesmas_writer *out) {
    return (gesmas_bytes){ out->at, out->length };
}

// Keys of maps and sets sort as their bytes do. A signed key is the unsigned one with its sign bit
// flipped; parts of a tuple follow each other.
static inline void gesmas_put_key_unsigned(gesmas_writer *out, uint64_t number, uint32_t width) {
    while (width-- > 0)
        gesmas_put_u8(out, (uint8_t)(number >> (8 * width)));
}

static inline void gesmas_put_key_u32(gesmas_writer *out, uint32_t key) {
    gesmas_put_key_unsigned(out, key, 4);
}
static inline void gesmas_put_key_u64(gesmas_writer *out, uint64_t key) {
    gesmas_put_key_unsigned(out, key, 8);
}
static inline void gesmas_put_key_i64(gesmas_writer *out, int64_t key) {
    gesmas_put_key_u64(out, (uint64_t)key ^ (1ULL << 63));
}

static inline void gesmas_put_key_bytes(gesmas_writer *out, gesmas_bytes key) {
    for (uint32_t index = 0; index < key.length; index++) {
        gesmas_put_u8(out, key.at[index]);
        if (key.at[index] == 0)
            gesmas_put_u8(out, 0xff);
    }
    gesmas_put_u16(out, 0);
}

// ---- decoding ----

// Encoded bytes that have not been taken yet. The first thing that does not decode is kept as
// `malformed`, and all that is taken after it is zero.
typedef struct { const uint8_t *at; uint32_t left; gesmas_bytes malformed; } gesmas_reader;

static inline gesmas_reader gesmas_read(gesmas_bytes bytes) {
    return (gesmas_reader){ bytes.at, bytes.length, { NULL, 0 } };
}

static inline void gesmas_refuse(gesmas_reader *in, gesmas_bytes why) {
    if (!in->malformed.at)
        in->malformed = why;
    in->left = 0;
}

#define gesmas_malformed(in, text) gesmas_refuse(in, (gesmas_bytes)GESMAS_TEXT(text))

// Takes so many bytes as they are: an array of bytes.
static inline gesmas_bytes gesmas_take(gesmas_reader *in, uint32_t length) {
    if (in->malformed.at || in->left < length) {
        gesmas_malformed(in, "it ends too early");
        return (gesmas_bytes){ NULL, 0 };
    }
    gesmas_bytes taken = { in->at, length };
    in->at += length;
    in->left -= length;
    return taken;
}

static inline uint64_t gesmas_take_unsigned(gesmas_reader *in, uint32_t width) {
    gesmas_bytes taken = gesmas_take(in, width);
    uint64_t number = 0;
    for (uint32_t index = 0; index < taken.length; index++)
        number |= (uint64_t)taken.at[index] << (8 * index);
    return number;
}

static inline uint8_t gesmas_take_u8(gesmas_reader *in) {
    return (uint8_t)gesmas_take_unsigned(in, 1);
}
static inline uint16_t gesmas_take_u16(gesmas_reader *in) {
    return (uint16_t)gesmas_take_unsigned(in, 2);
}
static inline uint32_t gesmas_take_u32(gesmas_reader *in) {
    return (uint32_t)gesmas_take_unsigned(in, 4);
}
static inline uint64_t gesmas_take_u64(gesmas_reader *in) { return gesmas_take_unsigned(in, 8); }

static inline bool gesmas_take_bool(gesmas_reader *in) {
    uint8_t flag = gesmas_take_u8(in);
    if (flag > 1)
        gesmas_malformed(in, "a flag is neither 0 nor 1");
    return flag == 1;
}

// Bytes led by their length.
static inline gesmas_bytes gesmas_take_bytes(gesmas_reader *in) {
    return gesmas_take(in, gesmas_take_u32(in));
}

// Takes the bytes that make up one character of UTF-8; zero if there is none at the start.
static inline uint32_t gesmas_character(const uint8_t *at, uint32_t left) {
    uint8_t lead = at[0];
    if (lead < 0x80)
        return 1;
    uint32_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || left < length)
        return 0;
    for (uint32_t index = 1; index < length; index++)
        if ((at[index] & 0xc0) != 0x80)
            return 0;
    // What has a shorter form, surrogates, and what is beyond the last character.
    bool wrong = (lead == 0xe0 && at[1] < 0xa0) || (lead == 0xed && at[1] > 0x9f) ||
                 (lead == 0xf0 && at[1] < 0x90) || (lead == 0xf4 && at[1] > 0x8f);
    return wrong ? 0 : length;
}

// A text led by its length.
static inline gesmas_bytes gesmas_take_text(gesmas_reader *in) {
    gesmas_bytes text = gesmas_take_bytes(in);
    for (uint32_t index = 0; index < text.length;) {
        uint32_t length = gesmas_character(text.at + index, text.length - index);
        if (length == 0) {
            gesmas_malformed(in, "a text is not UTF-8");
            return (gesmas_bytes){ NULL, 0 };
        }
        index += length;
    }
    return text;
}

// Keys of maps and sets, of the bytes of an entry.
static inline uint64_t gesmas_take_key_unsigned(gesmas_reader *in, uint32_t width) {
    gesmas_bytes taken = gesmas_take(in, width);
    uint64_t number = 0;
    for (uint32_t index = 0; index < taken.length; index++)
        number = number << 8 | taken.at[index];
    return number;
}

static inline uint32_t gesmas_take_key_u32(gesmas_reader *in) {
    return (uint32_t)gesmas_take_key_unsigned(in, 4);
}
static inline uint64_t gesmas_take_key_u64(gesmas_reader *in) {
    return gesmas_take_key_unsigned(in, 8);
}
static inline int64_t gesmas_take_key_i64(gesmas_reader *in) {
    return (int64_t)(gesmas_take_key_u64(in) ^ (1ULL << 63));
}

// Bytes or a text.
static inline gesmas_bytes gesmas_take_key_bytes(gesmas_reader *in) {
    gesmas_writer bytes = { 0 };
    for (;;) {
        uint8_t byte = gesmas_take_u8(in);
        uint8_t next = byte == 0 ? gesmas_take_u8(in) : 0;
        if (byte == 0 && next == 0)
            return gesmas_written(&bytes);
        if (byte == 0 && next != 0xff)
            gesmas_malformed(in, "a zero byte in a key is not escaped");
        gesmas_put_u8(&bytes, byte);
    }
}

// A count of items of which each takes `least` bytes or more.
static inline uint32_t gesmas_take_count(gesmas_reader *in, uint32_t least) {
    uint32_t count = gesmas_take_u32(in);
    if ((uint64_t)count * least > in->left) {
        gesmas_malformed(in, "a count is greater than the input can hold");
        return 0;
    }
    return count;
}

static inline gesmas_bytes gesmas_take_rest(gesmas_reader *in) { return gesmas_take(in, in->left); }

static inline void gesmas_take_end(gesmas_reader *in) {
    if (in->left > 0)
        gesmas_malformed(in, "bytes follow after its end");
}

#endif
