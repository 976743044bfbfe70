// A bounded queue in C: the same as the standard class Queue (objects/classes/queue), method by method.
//
// Invariant: outside of a segment, the permits of `filled` that are counted or on their way to a
// consumer are as many as the items, and those with the permits of `room` add up to the capacity.
// Not here: redelivery. An item is the reply to the consumer's call.

#include "gesmas.h"

static const gesmas_deque items = GESMAS_FIELD("items");
static const gesmas_semaphore room = GESMAS_FIELD("free");
static const gesmas_semaphore filled = GESMAS_FIELD("filled");

static void append(gesmas_bytes item) {
    gesmas_writer value = { 0 };
    gesmas_put_bytes(&value, item);
    gesmas_push_back(items, &value);
    gesmas_v(filled);
}

static gesmas_bytes take(void) {
    gesmas_reader value;
    if (!gesmas_pop_front(items, &value))
        gesmas_panic("a permit is an item");
    gesmas_bytes item = gesmas_take_bytes(&value);
    gesmas_end_response(&value);
    gesmas_v(room);
    return item;
}

// An option of bytes: none, or the item that is taken now.
static void return_taken(bool is_there) {
    gesmas_writer result = { 0 };
    gesmas_put_bool(&result, is_there);
    if (is_there)
        gesmas_put_bytes(&result, take());
    gesmas_return(&result);
}

GESMAS_METHOD(init) {
    uint32_t capacity = gesmas_take_u32(arguments);
    gesmas_end_arguments(arguments);
    if (capacity == 0) {
        // The error ZeroCapacity of the class, its first and only one.
        gesmas_writer error = { 0 };
        gesmas_put_u8(&error, 0);
        gesmas_return_error(&error);
        return;
    }
    gesmas_set_count(room, capacity);
    gesmas_return_unit();
}

GESMAS_METHOD(produce) {
    gesmas_bytes item = gesmas_take_bytes(arguments);
    gesmas_end_arguments(arguments);
    if (!gesmas_p(room)) {
        gesmas_return_cancelled();
        return;
    }
    append(item);
    gesmas_return_unit();
}

GESMAS_METHOD(try_produce) {
    gesmas_bytes item = gesmas_take_bytes(arguments);
    gesmas_end_arguments(arguments);
    bool is_free = gesmas_try_p(room);
    if (is_free)
        append(item);
    gesmas_return_bool(is_free);
}

GESMAS_METHOD(produce_for) {
    gesmas_bytes item = gesmas_take_bytes(arguments);
    uint64_t duration = gesmas_take_u64(arguments);
    gesmas_end_arguments(arguments);
    gesmas_status status = gesmas_p_for(room, duration);
    if (status == GESMAS_CANCELLED) {
        gesmas_return_cancelled();
        return;
    }
    if (status == GESMAS_GRANTED)
        append(item);
    gesmas_return_bool(status == GESMAS_GRANTED);
}

GESMAS_METHOD(consume) {
    gesmas_end_arguments(arguments);
    if (gesmas_p(filled))
        gesmas_return_bytes(take());
    else
        gesmas_return_cancelled();
}

GESMAS_METHOD(try_consume) {
    gesmas_end_arguments(arguments);
    return_taken(gesmas_try_p(filled));
}

GESMAS_METHOD(consume_for) {
    uint64_t duration = gesmas_take_u64(arguments);
    gesmas_end_arguments(arguments);
    gesmas_status status = gesmas_p_for(filled, duration);
    if (status == GESMAS_CANCELLED)
        gesmas_return_cancelled();
    else
        return_taken(status == GESMAS_GRANTED);
}

GESMAS_METHOD(length) {
    gesmas_end_arguments(arguments);
    gesmas_return_u64(gesmas_deque_length(items));
}
