// What a class of gesmas is written with in C.
//
// docs/abi.md is the page behind it: each function here is one host call of that page.
// Invariants: arguments that are not those of the interface end the call as that, and a response that
// is not of its form ends it with a panic; each function makes one host call and no other.
// Not here: the owners of permits, and checks of what a class sends, which the host makes.

#ifndef GESMAS_H
#define GESMAS_H

#include "gesmas_bytes.h"

// ---- methods ----

// A method, a handler or `init` of the interface. Its body takes its `arguments` and then says that
// they end, so that a call with others is told so; it ends with one of `gesmas_return…`.
#define GESMAS_METHOD(name)                                                              \
    static void gesmas_body_##name(gesmas_reader *arguments);                            \
    __attribute__((export_name("m_" #name))) void gesmas_enter_##name(uint32_t length) { \
        uint8_t *at = gesmas_allocate(length);                                           \
        gesmas_host_fetch(at, length);                                                   \
        gesmas_reader arguments = gesmas_read((gesmas_bytes){ at, length });             \
        gesmas_body_##name(&arguments);                                                  \
    }                                                                                    \
    static void gesmas_body_##name(gesmas_reader *arguments)

// The arguments have been taken: ends the call if they were not those of the interface.
static inline void gesmas_end_arguments(gesmas_reader *arguments) {
    gesmas_take_end(arguments);
    if (arguments->malformed.at)
        gesmas_end_with(GESMAS_OP_ARGUMENTS_MALFORMED, arguments->malformed);
}

static inline void gesmas_return_kind(uint8_t kind, gesmas_bytes payload) {
    gesmas_writer request = { 0 };
    gesmas_put_u8(&request, kind);
    gesmas_put_rest(&request, payload);
    gesmas_host_call(GESMAS_OP_RETURN, request.at, request.length, NULL, 0);
}

// The last call of a method, which then returns: with a result, or with an error of its class.
static inline void gesmas_return(const gesmas_writer *result) {
    gesmas_return_kind(0, gesmas_written(result));
}
static inline void gesmas_return_error(const gesmas_writer *error) {
    gesmas_return_kind(1, gesmas_written(error));
}
// When a P was cancelled.
static inline void gesmas_return_cancelled(void) {
    gesmas_return_kind(2, (gesmas_bytes){ NULL, 0 });
}
static inline void gesmas_return_unit(void) { gesmas_return_kind(0, (gesmas_bytes){ NULL, 0 }); }
static inline void gesmas_return_bool(bool flag) {
    gesmas_return_kind(0, (gesmas_bytes){ (const uint8_t *)&flag, 1 });
}
static inline void gesmas_return_u64(uint64_t number) {
    gesmas_return_kind(0, (gesmas_bytes){ (const uint8_t *)&number, 8 });
}
static inline void gesmas_return_bytes(gesmas_bytes bytes) {
    gesmas_writer result = { 0 };
    gesmas_put_bytes(&result, bytes);
    gesmas_return(&result);
}

// Ends the call with an error of its class, and undoes its segment.
_Noreturn static inline void gesmas_abort(const gesmas_writer *error) {
    gesmas_end_with(GESMAS_OP_ABORT, gesmas_written(error));
}

// Starts over in another method with an empty journal: for loops that block again and again.
_Noreturn static inline void gesmas_continue_with(gesmas_bytes method, const gesmas_writer *arguments) {
    gesmas_writer request = { 0 };
    gesmas_put_bytes(&request, method);
    gesmas_put_rest(&request, gesmas_written(arguments));
    gesmas_end_with(GESMAS_OP_CONTINUE, gesmas_written(&request));
}

// ---- host calls ----

// Most responses are shorter and need no second call.
#define GESMAS_RESPONSE 256

// Makes a host call and keeps its response.
static inline gesmas_reader gesmas_ask(uint32_t op, const gesmas_writer *request) {
    uint8_t *out = gesmas_reserve(GESMAS_RESPONSE);
    uint32_t length = gesmas_host_call(op, request->at, request->length, out, GESMAS_RESPONSE);
    if (length > GESMAS_RESPONSE) {
        gesmas_reserve(length);
        gesmas_host_fetch(out, length);
    }
    gesmas_heap = out + length;
    return gesmas_read((gesmas_bytes){ out, length });
}

// A response that is not of its form is of another host.
static inline void gesmas_end_response(gesmas_reader *response) {
    gesmas_take_end(response);
    if (response->malformed.at)
        gesmas_panic("the host's response does not decode");
}

// Calls that are answered nothing, a number, a flag, and bytes or none.
static inline void gesmas_tell(uint32_t op, const gesmas_writer *request) {
    gesmas_reader response = gesmas_ask(op, request);
    gesmas_end_response(&response);
}

static inline uint64_t gesmas_number(uint32_t op, const gesmas_writer *request) {
    gesmas_reader response = gesmas_ask(op, request);
    uint64_t number = gesmas_take_u64(&response);
    gesmas_end_response(&response);
    return number;
}

static inline bool gesmas_flag(uint32_t op, const gesmas_writer *request) {
    gesmas_reader response = gesmas_ask(op, request);
    bool flag = gesmas_take_bool(&response);
    gesmas_end_response(&response);
    return flag;
}

static inline bool gesmas_optional(
    uint32_t op, const gesmas_writer *request, gesmas_reader *value) {
    *value = gesmas_ask(op, request);
    return gesmas_take_bool(value);
}

// Requests of the forms that many calls share.
static inline gesmas_writer gesmas_of_bytes(gesmas_bytes name) {
    gesmas_writer request = { 0 };
    gesmas_put_rest(&request, name);
    return request;
}

static inline gesmas_writer gesmas_of_number(uint64_t number, gesmas_bytes rest) {
    gesmas_writer request = { 0 };
    gesmas_put_u64(&request, number);
    gesmas_put_rest(&request, rest);
    return request;
}

static inline gesmas_writer gesmas_of_two(gesmas_bytes led, const gesmas_writer *rest) {
    gesmas_writer request = { 0 };
    gesmas_put_bytes(&request, led);
    gesmas_put_rest(&request, gesmas_written(rest));
    return request;
}

// ---- state ----

// Fields of the class: `static const gesmas_deque items = GESMAS_FIELD("items");`
typedef struct { gesmas_bytes name; } gesmas_value;
typedef struct { gesmas_bytes name; } gesmas_map;
typedef struct { gesmas_bytes name; } gesmas_deque;
typedef struct { gesmas_bytes name; } gesmas_semaphore;
#define GESMAS_FIELD(text) { GESMAS_TEXT(text) }

// Those that answer a bool and fill in a `former` or a value tell whether there is one; it is for the
// class to take it apart.
static inline bool gesmas_get(gesmas_value field, gesmas_reader *value) {
    gesmas_writer request = gesmas_of_bytes(field.name);
    return gesmas_optional(GESMAS_OP_GET, &request, value);
}
static inline void gesmas_set(gesmas_value field, const gesmas_writer *value) {
    gesmas_writer request = gesmas_of_two(field.name, value);
    gesmas_tell(GESMAS_OP_SET, &request);
}
static inline bool gesmas_remove(gesmas_value field, gesmas_reader *former) {
    gesmas_writer request = gesmas_of_bytes(field.name);
    return gesmas_optional(GESMAS_OP_REMOVE, &request, former);
}

// A set is a map with values of no bytes.
static inline bool gesmas_map_insert(
    gesmas_map map, const gesmas_writer *key, const gesmas_writer *value, gesmas_reader *former) {
    gesmas_writer request = { 0 };
    gesmas_put_bytes(&request, map.name);
    gesmas_put_bytes(&request, gesmas_written(key));
    gesmas_put_rest(&request, gesmas_written(value));
    return gesmas_optional(GESMAS_OP_MAP_INSERT, &request, former);
}
static inline bool gesmas_map_get(gesmas_map map, const gesmas_writer *key, gesmas_reader *value) {
    gesmas_writer request = gesmas_of_two(map.name, key);
    return gesmas_optional(GESMAS_OP_MAP_GET, &request, value);
}
static inline bool gesmas_map_remove(
    gesmas_map map, const gesmas_writer *key, gesmas_reader *former) {
    gesmas_writer request = gesmas_of_two(map.name, key);
    return gesmas_optional(GESMAS_OP_MAP_REMOVE, &request, former);
}
static inline uint64_t gesmas_map_length(gesmas_map map) {
    gesmas_writer request = gesmas_of_bytes(map.name);
    return gesmas_number(GESMAS_OP_LENGTH, &request);
}

// A page of entries, from the least key up or from the greatest down: their count, and a reader from
// which the bytes of each key and each value are taken. A null `after` begins at the end. A page may
// be short; only an empty one is the last.
static inline uint32_t gesmas_map_scan(
    gesmas_map map, const gesmas_bytes *after, bool reverse, uint32_t entries,
    gesmas_reader *page) {
    gesmas_writer request = { 0 };
    gesmas_put_bytes(&request, map.name);
    gesmas_put_bool(&request, after != NULL);
    if (after)
        gesmas_put_bytes(&request, *after);
    gesmas_put_bool(&request, reverse);
    gesmas_put_u32(&request, entries);
    *page = gesmas_ask(GESMAS_OP_SCAN, &request);
    return gesmas_take_count(page, 8);
}

static inline void gesmas_push_back(gesmas_deque deque, const gesmas_writer *item) {
    gesmas_writer request = gesmas_of_two(deque.name, item);
    gesmas_tell(GESMAS_OP_PUSH_BACK, &request);
}
static inline void gesmas_push_front(gesmas_deque deque, const gesmas_writer *item) {
    gesmas_writer request = gesmas_of_two(deque.name, item);
    gesmas_tell(GESMAS_OP_PUSH_FRONT, &request);
}
static inline bool gesmas_pop_back(gesmas_deque deque, gesmas_reader *item) {
    gesmas_writer request = gesmas_of_bytes(deque.name);
    return gesmas_optional(GESMAS_OP_POP_BACK, &request, item);
}
static inline bool gesmas_pop_front(gesmas_deque deque, gesmas_reader *item) {
    gesmas_writer request = gesmas_of_bytes(deque.name);
    return gesmas_optional(GESMAS_OP_POP_FRONT, &request, item);
}
static inline bool gesmas_deque_get(gesmas_deque deque, uint64_t index, gesmas_reader *item) {
    gesmas_writer request = gesmas_of_number(index, deque.name);
    return gesmas_optional(GESMAS_OP_DEQUE_GET, &request, item);
}
static inline uint64_t gesmas_deque_length(gesmas_deque deque) {
    gesmas_writer request = gesmas_of_bytes(deque.name);
    return gesmas_number(GESMAS_OP_LENGTH, &request);
}

// ---- semaphores ----

typedef enum { GESMAS_FOR_EVER, GESMAS_NOT_AT_ALL, GESMAS_FOR, GESMAS_UNTIL } gesmas_wait;
typedef enum { GESMAS_NOBODY, GESMAS_INVOCATION, GESMAS_SESSION } gesmas_owner;
typedef enum {
    GESMAS_GRANTED, GESMAS_OWNED, GESMAS_WOULD_WAIT, GESMAS_TIME_UP, GESMAS_CANCELLED,
    GESMAS_SESSION_OVER, GESMAS_NO_SESSION
} gesmas_status;

// The semaphore of a key, of a field of semaphores named by keys.
static inline gesmas_semaphore gesmas_semaphore_at(gesmas_bytes field, const gesmas_writer *key) {
    gesmas_writer name = gesmas_of_bytes(field);
    gesmas_put_u8(&name, 0);
    gesmas_put_rest(&name, gesmas_written(key));
    return (gesmas_semaphore){ gesmas_written(&name) };
}

// A P in full. Where `time` says nothing it is 0; the permit's number is for `release`.
static inline gesmas_status gesmas_acquire(
    gesmas_semaphore semaphore, gesmas_wait wait, uint64_t time, gesmas_owner owner,
    uint64_t *permit) {
    gesmas_writer request = { 0 };
    gesmas_put_u8(&request, (uint8_t)wait);
    gesmas_put_u64(&request, time);
    gesmas_put_u8(&request, (uint8_t)owner);
    gesmas_put_rest(&request, semaphore.name);
    gesmas_reader response = gesmas_ask(GESMAS_OP_P, &request);
    gesmas_status status = (gesmas_status)gesmas_take_u8(&response);
    *permit = gesmas_take_u64(&response);
    gesmas_end_response(&response);
    return status;
}

// Blocks until there is a permit. False: the call was cancelled; it may clean up, and returns so.
static inline bool gesmas_p(gesmas_semaphore semaphore) {
    uint64_t permit;
    return gesmas_acquire(semaphore, GESMAS_FOR_EVER, 0, GESMAS_NOBODY, &permit) == GESMAS_GRANTED;
}
// Takes a permit if there is one and nobody waits for it.
static inline bool gesmas_try_p(gesmas_semaphore semaphore) {
    uint64_t permit;
    return gesmas_acquire(semaphore, GESMAS_NOT_AT_ALL, 0, GESMAS_NOBODY, &permit) == GESMAS_GRANTED;
}
// Blocks for so many nanoseconds at most: granted, time up, or cancelled.
static inline gesmas_status gesmas_p_for(gesmas_semaphore semaphore, uint64_t nanoseconds) {
    uint64_t permit;
    gesmas_status status = gesmas_acquire(semaphore, GESMAS_FOR, nanoseconds, GESMAS_NOBODY, &permit);
    return status == GESMAS_WOULD_WAIT ? GESMAS_TIME_UP : status;
}
static inline bool gesmas_release(uint64_t permit) {
    gesmas_writer request = gesmas_of_number(permit, (gesmas_bytes){ NULL, 0 });
    return gesmas_flag(GESMAS_OP_RELEASE, &request);
}
static inline void gesmas_v_n(gesmas_semaphore semaphore, uint64_t count) {
    gesmas_writer request = gesmas_of_number(count, semaphore.name);
    gesmas_tell(GESMAS_OP_V, &request);
}
static inline void gesmas_v(gesmas_semaphore semaphore) { gesmas_v_n(semaphore, 1); }
// In `init` only.
static inline void gesmas_set_count(gesmas_semaphore semaphore, uint64_t count) {
    gesmas_writer request = gesmas_of_number(count, semaphore.name);
    gesmas_tell(GESMAS_OP_SET_COUNT, &request);
}
static inline uint64_t gesmas_count(gesmas_semaphore semaphore) {
    gesmas_writer request = gesmas_of_bytes(semaphore.name);
    return gesmas_number(GESMAS_OP_COUNT, &request);
}
static inline uint64_t gesmas_waiters(gesmas_semaphore semaphore) {
    gesmas_writer request = gesmas_of_bytes(semaphore.name);
    return gesmas_number(GESMAS_OP_WAITERS, &request);
}

// ---- context ----

static const gesmas_writer gesmas_nothing = { 0 };

static inline uint64_t gesmas_now(void) { return gesmas_number(GESMAS_OP_NOW, &gesmas_nothing); }
static inline uint64_t gesmas_random(void) {
    return gesmas_number(GESMAS_OP_RANDOM, &gesmas_nothing);
}
static inline uint64_t gesmas_token(void) {
    return gesmas_number(GESMAS_OP_TOKEN, &gesmas_nothing);
}
// False in a handler, which has no session.
static inline bool gesmas_session(uint64_t *session) {
    gesmas_reader response;
    bool is_there = gesmas_optional(GESMAS_OP_SESSION, &gesmas_nothing, &response);
    *session = is_there ? gesmas_take_u64(&response) : 0;
    gesmas_end_response(&response);
    return is_there;
}
// Texts are without a zero at their end.
static inline gesmas_bytes gesmas_principal(void) {
    gesmas_reader text = gesmas_ask(GESMAS_OP_PRINCIPAL, &gesmas_nothing);
    return gesmas_take_rest(&text);
}
static inline gesmas_bytes gesmas_object(void) {
    gesmas_reader text = gesmas_ask(GESMAS_OP_OBJECT, &gesmas_nothing);
    return gesmas_take_rest(&text);
}
// Level 1 is an error, 2 a warning, 3 information, 4 for debugging.
static inline void gesmas_log(uint8_t level, gesmas_bytes text) {
    gesmas_writer request = { 0 };
    gesmas_put_u8(&request, level);
    gesmas_put_rest(&request, text);
    gesmas_tell(GESMAS_OP_LOG, &request);
}

static inline uint64_t gesmas_alarm(
    uint32_t op, uint64_t number, gesmas_bytes handler, const gesmas_writer *arguments) {
    gesmas_writer request = { 0 };
    gesmas_put_u64(&request, number);
    gesmas_put_bytes(&request, handler);
    gesmas_put_rest(&request, gesmas_written(arguments));
    return gesmas_number(op, &request);
}
// Invokes a handler once when a session is over; once after so many nanoseconds.
static inline uint64_t gesmas_watch_session(
    uint64_t session, gesmas_bytes handler, const gesmas_writer *arguments) {
    return gesmas_alarm(GESMAS_OP_WATCH_SESSION, session, handler, arguments);
}
static inline uint64_t gesmas_after(
    uint64_t nanoseconds, gesmas_bytes handler, const gesmas_writer *arguments) {
    return gesmas_alarm(GESMAS_OP_AFTER, nanoseconds, handler, arguments);
}
static inline bool gesmas_cancel_alarm(uint64_t alarm) {
    gesmas_writer request = gesmas_of_number(alarm, (gesmas_bytes){ NULL, 0 });
    return gesmas_flag(GESMAS_OP_CANCEL_ALARM, &request);
}
// Sends an event to a session; false when it is over.
static inline bool gesmas_notify(uint64_t session, gesmas_bytes payload) {
    gesmas_writer request = gesmas_of_number(session, payload);
    return gesmas_flag(GESMAS_OP_NOTIFY, &request);
}

#endif
