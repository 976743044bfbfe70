// The class `Sampler` of tests/languages/src/sampler.rs in C, method by method.
//
// Not here: what its methods are for. They are for using all of the library.

#include "gesmas.h"

static const gesmas_value number = GESMAS_FIELD("number");
static const gesmas_map shelf = GESMAS_FIELD("shelf");
static const gesmas_map depths = GESMAS_FIELD("depths");
static const gesmas_deque line = GESMAS_FIELD("line");
static const gesmas_semaphore slot = GESMAS_FIELD("slot");
static const gesmas_deque rung = GESMAS_FIELD("rung");

static gesmas_semaphore door_of(uint32_t door) {
    gesmas_writer key = { 0 };
    gesmas_put_key_u32(&key, door);
    return gesmas_semaphore_at((gesmas_bytes)GESMAS_TEXT("doors"), &key);
}

static void set_number(uint64_t value) {
    gesmas_writer out = { 0 };
    gesmas_put_u64(&out, value);
    gesmas_set(number, &out);
}

// The value as a number, 0 if there is none.
static uint64_t current(void) {
    gesmas_reader value;
    return gesmas_get(number, &value) ? gesmas_take_u64(&value) : 0;
}

static void put_number(gesmas_writer *out, bool is_there, gesmas_reader *value) {
    gesmas_put_bool(out, is_there);
    if (is_there)
        gesmas_put_u64(out, gesmas_take_u64(value));
}

static void put_item(gesmas_writer *out, bool is_there, gesmas_reader *value) {
    gesmas_put_bool(out, is_there);
    if (is_there)
        gesmas_put_bytes(out, gesmas_take_bytes(value));
}

static void fail_with(uint8_t variant) {
    gesmas_writer error = { 0 };
    gesmas_put_u8(&error, variant);
    gesmas_return_error(&error);
}

static gesmas_writer asked(uint64_t value) {
    gesmas_writer error = { 0 };
    gesmas_put_u8(&error, 0);
    gesmas_put_u64(&error, value);
    return error;
}

GESMAS_METHOD(init) {
    gesmas_end_arguments(arguments);
    gesmas_set_count(slot, 2);
    gesmas_return_unit();
}

GESMAS_METHOD(write) {
    uint64_t value = gesmas_take_u64(arguments);
    gesmas_end_arguments(arguments);
    gesmas_reader former;
    bool is_there = gesmas_get(number, &former);
    set_number(value);
    gesmas_writer result = { 0 };
    put_number(&result, is_there, &former);
    gesmas_return(&result);
}

GESMAS_METHOD(forget) {
    gesmas_end_arguments(arguments);
    gesmas_reader former;
    bool is_there = gesmas_remove(number, &former);
    gesmas_writer result = { 0 };
    put_number(&result, is_there, &former);
    gesmas_return(&result);
}

GESMAS_METHOD(shelve) {
    gesmas_bytes name = gesmas_take_text(arguments);
    gesmas_bytes item = gesmas_take_bytes(arguments);
    gesmas_end_arguments(arguments);
    gesmas_writer key = { 0 }, value = { 0 }, result = { 0 };
    gesmas_put_key_bytes(&key, name);
    gesmas_put_bytes(&value, item);
    gesmas_reader former;
    bool is_there = gesmas_map_insert(shelf, &key, &value, &former);
    put_item(&result, is_there, &former);
    gesmas_return(&result);
}

GESMAS_METHOD(unshelve) {
    gesmas_bytes name = gesmas_take_text(arguments);
    gesmas_end_arguments(arguments);
    gesmas_writer key = { 0 }, result = { 0 };
    gesmas_put_key_bytes(&key, name);
    gesmas_reader former;
    bool is_there = gesmas_map_remove(shelf, &key, &former);
    put_item(&result, is_there, &former);
    gesmas_return(&result);
}

GESMAS_METHOD(browse) {
    gesmas_bytes name = gesmas_take_text(arguments);
    gesmas_end_arguments(arguments);
    gesmas_writer key = { 0 }, result = { 0 };
    gesmas_put_key_bytes(&key, name);
    gesmas_reader found, page;
    bool is_there = gesmas_map_get(shelf, &key, &found);
    put_item(&result, is_there, &found);
    gesmas_bytes after = gesmas_written(&key);
    uint32_t count = gesmas_map_scan(shelf, &after, false, 100, &page);
    gesmas_put_u32(&result, count);
    while (count-- > 0) {
        gesmas_reader entry = gesmas_read(gesmas_take_bytes(&page));
        gesmas_put_bytes(&result, gesmas_take_key_bytes(&entry));
        gesmas_put_rest(&result, gesmas_take_bytes(&page));
    }
    gesmas_put_u64(&result, gesmas_map_length(shelf));
    gesmas_return(&result);
}

GESMAS_METHOD(mark) {
    int64_t depth = (int64_t)gesmas_take_u64(arguments);
    uint16_t mark = gesmas_take_u16(arguments);
    gesmas_end_arguments(arguments);
    gesmas_writer key = { 0 }, value = { 0 }, result = { 0 };
    gesmas_put_key_i64(&key, depth);
    gesmas_put_u16(&value, mark);
    gesmas_reader former, page;
    gesmas_map_insert(depths, &key, &value, &former);
    uint32_t count = gesmas_map_scan(depths, NULL, true, 100, &page);
    gesmas_put_u32(&result, count);
    while (count-- > 0) {
        gesmas_reader entry = gesmas_read(gesmas_take_bytes(&page));
        gesmas_put_u64(&result, (uint64_t)gesmas_take_key_i64(&entry));
        gesmas_put_rest(&result, gesmas_take_bytes(&page));
    }
    gesmas_return(&result);
}

GESMAS_METHOD(join) {
    gesmas_writer value = { 0 };
    gesmas_put_u64(&value, gesmas_take_u64(arguments));
    bool front = gesmas_take_bool(arguments);
    gesmas_end_arguments(arguments);
    if (front)
        gesmas_push_front(line, &value);
    else
        gesmas_push_back(line, &value);
    gesmas_return_u64(gesmas_deque_length(line));
}

GESMAS_METHOD(part) {
    uint64_t place = gesmas_take_u64(arguments);
    bool front = gesmas_take_bool(arguments);
    gesmas_end_arguments(arguments);
    gesmas_writer result = { 0 };
    gesmas_reader item;
    bool is_there = gesmas_deque_get(line, place, &item);
    put_number(&result, is_there, &item);
    is_there = front ? gesmas_pop_front(line, &item) : gesmas_pop_back(line, &item);
    put_number(&result, is_there, &item);
    gesmas_return(&result);
}

GESMAS_METHOD(facts) {
    gesmas_end_arguments(arguments);
    gesmas_writer result = { 0 };
    gesmas_put_u64(&result, gesmas_random());
    gesmas_put_u64(&result, gesmas_token());
    gesmas_log(3, (gesmas_bytes)GESMAS_TEXT("the facts are asked for"));
    uint64_t session;
    bool is_there = gesmas_session(&session);
    gesmas_put_bool(&result, is_there);
    if (is_there)
        gesmas_put_u64(&result, session);
    gesmas_put_bytes(&result, gesmas_principal());
    gesmas_put_bytes(&result, gesmas_object());
    gesmas_put_u64(&result, gesmas_now());
    gesmas_return(&result);
}

GESMAS_METHOD(pass) {
    uint32_t door = gesmas_take_u32(arguments);
    gesmas_end_arguments(arguments);
    uint64_t before = current();
    if (gesmas_p(door_of(door)))
        gesmas_return_u64(before ^ current());
    else
        gesmas_return_cancelled();
}

GESMAS_METHOD(hurry) {
    gesmas_semaphore door = door_of(gesmas_take_u32(arguments));
    uint64_t duration = gesmas_take_u64(arguments);
    gesmas_end_arguments(arguments);
    gesmas_status status = gesmas_p_for(door, duration);
    if (status == GESMAS_CANCELLED) {
        gesmas_return_cancelled();
        return;
    }
    gesmas_writer result = { 0 };
    gesmas_put_bool(&result, status == GESMAS_GRANTED);
    gesmas_put_bool(&result, gesmas_try_p(door));
    gesmas_return(&result);
}

GESMAS_METHOD(open) {
    uint32_t door = gesmas_take_u32(arguments);
    uint64_t count = gesmas_take_u64(arguments);
    gesmas_end_arguments(arguments);
    gesmas_v_n(door_of(door), count);
    gesmas_return_unit();
}

GESMAS_METHOD(own) {
    uint32_t door = gesmas_take_u32(arguments);
    gesmas_end_arguments(arguments);
    uint64_t permit;
    gesmas_status status = gesmas_acquire(slot, GESMAS_FOR_EVER, 0, GESMAS_INVOCATION, &permit);
    if (status != GESMAS_OWNED || !gesmas_p(door_of(door))) {
        gesmas_return_cancelled();
        return;
    }
    gesmas_writer result = { 0 };
    gesmas_put_bool(&result, gesmas_release(permit));
    gesmas_put_bool(&result, gesmas_release(permit));
    gesmas_return(&result);
}

GESMAS_METHOD(keep) {
    uint64_t duration = gesmas_take_u64(arguments);
    gesmas_end_arguments(arguments);
    uint64_t permit;
    gesmas_status status = gesmas_acquire(slot, GESMAS_FOR, duration, GESMAS_SESSION, &permit);
    if (status >= GESMAS_CANCELLED) {
        fail_with(status == GESMAS_CANCELLED ? 1 : 2);
        return;
    }
    gesmas_writer result = { 0 };
    gesmas_put_bool(&result, status == GESMAS_OWNED);
    if (status == GESMAS_OWNED)
        gesmas_put_u64(&result, permit);
    gesmas_return(&result);
}

GESMAS_METHOD(give) {
    uint64_t permit = gesmas_take_u64(arguments);
    gesmas_end_arguments(arguments);
    gesmas_return_bool(gesmas_release(permit));
}

GESMAS_METHOD(census) {
    gesmas_semaphore door = door_of(gesmas_take_u32(arguments));
    gesmas_end_arguments(arguments);
    gesmas_writer result = { 0 };
    gesmas_put_u64(&result, gesmas_count(slot));
    gesmas_put_u64(&result, gesmas_count(door));
    gesmas_put_u64(&result, gesmas_waiters(door));
    gesmas_return(&result);
}

GESMAS_METHOD(later) {
    uint64_t duration = gesmas_take_u64(arguments);
    gesmas_writer given = { 0 };
    gesmas_put_u64(&given, gesmas_take_u64(arguments));
    gesmas_end_arguments(arguments);
    gesmas_return_u64(gesmas_after(duration, (gesmas_bytes)GESMAS_TEXT("ring"), &given));
}

GESMAS_METHOD(mourn) {
    uint64_t session = gesmas_take_u64(arguments);
    gesmas_end_arguments(arguments);
    gesmas_writer given = { 0 };
    gesmas_put_u64(&given, session);
    gesmas_return_u64(gesmas_watch_session(session, (gesmas_bytes)GESMAS_TEXT("ring"), &given));
}

GESMAS_METHOD(unset) {
    uint64_t alarm = gesmas_take_u64(arguments);
    gesmas_end_arguments(arguments);
    gesmas_return_bool(gesmas_cancel_alarm(alarm));
}

GESMAS_METHOD(tell) {
    uint64_t session = gesmas_take_u64(arguments);
    gesmas_bytes payload = gesmas_take_bytes(arguments);
    gesmas_end_arguments(arguments);
    gesmas_return_bool(gesmas_notify(session, payload));
}

GESMAS_METHOD(fail) {
    uint64_t value = gesmas_take_u64(arguments);
    gesmas_end_arguments(arguments);
    set_number(value);
    gesmas_writer error = asked(value);
    gesmas_return_error(&error);
}

GESMAS_METHOD(abort) {
    uint32_t door = gesmas_take_u32(arguments);
    uint64_t value = gesmas_take_u64(arguments);
    gesmas_end_arguments(arguments);
    if (!gesmas_p(door_of(door))) {
        fail_with(1);
        return;
    }
    set_number(value);
    gesmas_writer error = asked(value);
    gesmas_abort(&error);
}

GESMAS_METHOD(fall) {
    gesmas_end_arguments(arguments);
    set_number(0);
    gesmas_panic("it falls");
}

GESMAS_METHOD(rounds) {
    uint32_t door = gesmas_take_u32(arguments);
    uint64_t left = gesmas_take_u64(arguments);
    gesmas_end_arguments(arguments);
    if (!gesmas_p(door_of(door))) {
        gesmas_return_cancelled();
        return;
    }
    if (left > 0) {
        gesmas_writer given = { 0 };
        gesmas_put_u32(&given, door);
        gesmas_put_u64(&given, left - 1);
        gesmas_continue_with((gesmas_bytes)GESMAS_TEXT("rounds"), &given);
    }
    gesmas_return_u64(current());
}

GESMAS_METHOD(look) {
    gesmas_end_arguments(arguments);
    gesmas_writer result = { 0 };
    gesmas_reader value;
    bool is_there = gesmas_get(number, &value);
    put_number(&result, is_there, &value);
    gesmas_put_u64(&result, gesmas_deque_length(rung));
    gesmas_return(&result);
}

GESMAS_METHOD(ring) {
    uint64_t value = gesmas_take_u64(arguments);
    gesmas_end_arguments(arguments);
    uint64_t permit, session;
    gesmas_status status = gesmas_acquire(slot, GESMAS_FOR, 1000000000, GESMAS_SESSION, &permit);
    bool no_session = !gesmas_session(&session) && status == GESMAS_NO_SESSION;
    gesmas_writer noted = { 0 }, item = { 0 };
    gesmas_put_u64(&noted, value);
    gesmas_put_bool(&noted, no_session);
    gesmas_put_bytes(&item, gesmas_written(&noted));
    gesmas_push_back(rung, &item);
    gesmas_return_unit();
}
